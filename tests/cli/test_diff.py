"""`diff`: two models by structure, with the exit status of the command of that name."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.report.made import json_schema

Cli = Callable[..., Any]


@pytest.fixture
def pair(cli: Cli, models: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A model and what comes of it at opset 13."""
    assert cli("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "13.onnx", "--opset", "13").status == 0
    return models / "skl_gmm_20.onnx", tmp_path / "13.onnx"


def test_json_follows_the_schema(cli: Cli, pair: tuple[Path, Path]) -> None:
    found = json.loads(cli("diff", "--json", *pair).out)
    schema = {"$ref": "#/$defs/model", "$defs": json_schema()["$defs"]}
    jsonschema.validate(found, schema)
    assert found["verdict"] == "differs"
    assert found["difference"]["facts"][0] == {"kind": "version", "what": "opset", "before": "20", "after": "13"}


def test_every_form_of_report(cli: Cli, pair: tuple[Path, Path], tmp_path: Path) -> None:
    reports = [tmp_path / f"report.{form}" for form in ("html", "md", "xml", "json")]
    assert cli("diff", *pair, *(word for path in reports for word in ("--report", path))).status == 1
    html, markdown, junit, plain = (path.read_text("utf-8") for path in reports)
    assert "Nodes that differ" in html
    assert html.count('<ol class="nodes">') == 4
    assert "- **version** opset: 20 -> 13\n" in markdown
    assert junit.count("<failure") == 5
    jsonschema.validate(json.loads(plain), json_schema())


def test_standard_input_is_a_model(cli: Cli, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = pair
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(before.read_bytes())))
    assert cli("diff", "-", before).out.startswith(f"- -> {before}: the same structure")


def test_beside_standard_input_other_models_are_read_from_their_files(
    cli: Cli, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = pair
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(after.read_bytes())))
    assert cli("diff", before, "-").out.startswith(f"{before} -> -: ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(after.read_bytes())))
    found = [json.loads(line) for line in cli("inspect", "-", before, "--json", "--for", "mnn").out.splitlines()]
    assert [(one["path"], one["opsets"]["ai.onnx"]) for one in found] == [("-", 13), (str(before), 20)]


def test_standard_input_has_its_own_name_in_messages(
    cli: Cli, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    ran = cli("diff", "-", pair[1])
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: - is empty")
