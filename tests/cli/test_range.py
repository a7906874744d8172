"""A form that loses range is said to do so wherever an outcome is told, verified or not."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]

LOSES = "infinite"
VERIFIED = pytest.mark.parametrize("verify", ["--verify", "--no-verify"])


@pytest.fixture
def model(models: Path, tmp_path: Path) -> Path:
    """One LogSumExp, which overflows in the specification's body, and two sums of squares, which do not."""
    shutil.copy(models / "skl_gmm_20.onnx", tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


@VERIFIED
def test_one_warning_says_so(verify: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("expand", model, "-o", tmp_path / "out.onnx", verify)
    assert ran.status == 0, ran.err
    warned = " ".join(ran.out.partition("  warning ")[2].partition("  written ")[0].split())
    assert warned.startswith("ReduceLogSumExp 'Re_ReduceLogSumExp': equal for magnitudes up to ")
    assert warned.endswith("as the specification's body is (--rules stable is not)")


@VERIFIED
def test_quiet_runs_warn(verify: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("expand", model, "-o", tmp_path / "out.onnx", verify, "-q")
    assert (ran.status, ran.out) == (0, "")
    assert re.match(r"warning: .*infinite.*\n$", ran.err)


@VERIFIED
def test_the_line_of_each_of_many_models_says_so(verify: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    shutil.copy(model, tmp_path / "other.onnx")
    ran = cli("expand", tmp_path / "model.onnx", tmp_path / "other.onnx", "--output-dir", tmp_path / "out", verify)
    assert [LOSES in line for line in ran.out.splitlines()[:2]] == [True, True]


@VERIFIED
def test_annotations_say_so(verify: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("expand", model, "-o", tmp_path / "out.onnx", verify, "--format", "github")
    assert re.match(r"::warning file=.*infinite", ran.out)


@VERIFIED
def test_json_says_so(verify: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    found = json.loads(cli("expand", model, "-o", tmp_path / "out.onnx", verify, "--json").out)
    assert LOSES in found["warnings"][0]


@VERIFIED
@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("html", r'<header class="verdict warning">.*infinite.*</header>'),
        ("md", r"^## [^\n]*infinite"),
        ("xml", r'<skipped message="[^"]*infinite'),
        ("json", r'"warnings": \[\s*"[^"]*infinite'),
    ],
)
def test_reports_say_so(verify: str, form: str, place: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    cli("expand", model, "-o", tmp_path / "out.onnx", verify, "--report", tmp_path / f"report.{form}")
    assert re.search(place, (tmp_path / f"report.{form}").read_text("utf-8"), re.S)


@pytest.mark.parametrize("rules", ["stable", "core"])
def test_a_form_that_keeps_range_is_not_accused(rules: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("expand", model, "-o", tmp_path / "out.onnx", "--no-verify", "--rules", rules)
    assert LOSES not in ran.out


def test_comparing_the_files_says_what_expanding_said(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("expand", model, "-o", tmp_path / "out.onnx")
    again = cli("verify", model, tmp_path / "out.onnx")
    assert (ran.status, again.status) == (0, 0)
    warned = [text.out.partition("  warning ")[2].partition("  written ")[0].split() for text in (ran, again)]
    assert warned[0]
    assert warned[0] == warned[1]


def test_the_bound_is_where_the_form_overflows(cli: Cli, models: Path, tmp_path: Path) -> None:
    """The specification's body computes Exp in double, of which log(largest double) is 709.78."""
    ran = cli("expand", models / "torch_lse_dyn_20.onnx", "-o", tmp_path / "out.onnx", "--json")
    (warning,) = json.loads(ran.out)["warnings"]
    bound = float(re.search(r"for magnitudes up to ([\d.e+]+);", warning)[1])  # type: ignore[index]
    assert 700 < bound < 709.79
