"""`diff`: two models by structure, with the exit status of the command of that name."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest

from tests.report.made import json_schema

Cli = Callable[..., Any]


@pytest.fixture
def pair(cli: Cli, models: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A model and what comes of it at opset 13."""
    assert cli("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "13.onnx", "--opset", "13").status == 0
    return models / "skl_gmm_20.onnx", tmp_path / "13.onnx"


def test_the_status_is_that_of_diff(cli: Cli, pair: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = pair
    same = cli("diff", before, before)
    assert (same.status, same.err) == (0, "")
    assert same.out == f"{before} -> {before}: the same structure: 13 nodes, whatever they are called\n"
    assert cli("diff", before, after).status == 1
    (tmp_path / "no.onnx").write_bytes(b"no model")
    trouble = cli("diff", before, tmp_path / "no.onnx")
    assert trouble.status == 2
    assert trouble.err.startswith("error: ")
    assert trouble.out == ""


def test_text_names_what_differs(cli: Cli, pair: tuple[Path, Path]) -> None:
    lines = [line.split() for line in cli("diff", *pair).out.splitlines()]
    assert ["version", "opset:", "20", "->", "13"] in lines
    assert ["ReduceSumSquare:", "attribute", "axes:", "not", "given", "->", "[1]"] in lines


def test_text_says_which_outputs_come_from_elsewhere(cli: Cli, tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y, float[2] z)'
    for name, nodes in (("a", "y = Abs (x) z = Neg (x)"), ("b", "z = Abs (x) y = Neg (x)")):
        onnx.save(onnx.parser.parse_model(f"{head} {{ {nodes} }}"), tmp_path / f"{name}.onnx")
    lines = cli("diff", tmp_path / "a.onnx", tmp_path / "b.onnx").out.splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "connected   graph", "output 'y'", "connected   graph", "output 'z'",
    ]  # fmt: skip


def test_text_shows_some_of_many_nodes(cli: Cli, tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] v20)'
    chain = " ".join(f"v{at + 1} = Neg (v{at})" for at in range(20))
    for name, nodes in (("a", f"v0 = Abs (x) {chain}"), ("b", "v20 = Abs (x)")):
        onnx.save(onnx.parser.parse_model(f"{head} {{ {nodes} }}"), tmp_path / f"{name}.onnx")
    lines = [line.strip() for line in cli("diff", tmp_path / "a.onnx", tmp_path / "b.onnx").out.splitlines()]
    assert sum(line.startswith("- Neg") for line in lines) == 12
    assert "- and 8 more nodes" in lines


def test_quiet_leaves_the_status(cli: Cli, pair: tuple[Path, Path]) -> None:
    ran = cli("diff", "-q", *pair)
    assert (ran.status, ran.out, ran.err) == (1, "", "")


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
    found = [json.loads(line) for line in cli("inspect", "-", before, "--json").out.splitlines()]
    assert [(one["path"], one["opsets"]["ai.onnx"]) for one in found] == [("-", 13), (str(before), 20)]


def test_standard_input_has_its_own_name_in_messages(
    cli: Cli, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    ran = cli("diff", "-", pair[1])
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: - is empty")
