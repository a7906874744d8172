"""`check`: verdicts, exit statuses and the four forms of its report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx
import pytest

Cli = Callable[..., Any]


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    shutil.copy(models / "skl_gnb_13.onnx", tmp_path / "fits.onnx")
    shutil.copy(models / "skl_gmm_20.onnx", tmp_path / "rewrite.onnx")
    graph = 'g (string[2] x) => (bool[2] y) { y = RegexFullMatch <pattern = "a+"> (x) }'
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {graph}'), tmp_path / "refused.onnx")
    (tmp_path / "unreadable.onnx").write_bytes(b"no model")
    return tmp_path


def test_json_has_a_version_and_a_verdict_per_model(cli: Cli, folder: Path) -> None:
    ran = cli("check", folder, "--opset", 13, "--report", "-")
    report = json.loads(ran.out)
    assert report["schema"] == 2
    verdicts = {Path(model["path"]).stem: model["verdict"] for model in report["models"]}
    assert verdicts == {"fits": "fits", "rewrite": "rewrite", "refused": "refused", "unreadable": "unreadable"}
    rewrite = next(model for model in report["models"] if model["verdict"] == "rewrite")
    assert rewrite["opset"] == {"source": 20, "target": 13}
    assert {site["op_type"] for site in rewrite["sites"]} == {"ReduceSumSquare", "ReduceLogSumExp"}


def test_github_annotations_have_the_documented_form(cli: Cli, folder: Path) -> None:
    odd = folder / "a,b:c%.onnx"
    shutil.copy(folder / "rewrite.onnx", odd)
    lines = cli("check", odd, folder / "refused.onnx", "--opset", 13, "--format", "github").out.splitlines()
    place = str(odd).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    assert lines[0].startswith(f"::warning file={place},title=reducelower::does not fit opset 13: 3 nodes to rewrite")
    assert all(line.startswith("::error file=") for line in lines[1:])
    assert len(lines) > 1


def test_junit_counts_failures_and_errors(cli: Cli, folder: Path, tmp_path: Path) -> None:
    cli("check", folder, "--opset", 13, "--report", tmp_path / "report.xml")
    suite = ElementTree.parse(tmp_path / "report.xml").find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "2", "1")
    assert len(suite.findall("testcase")) == 4
    assert len(suite.findall("testcase/failure")) == 2
    assert len(suite.findall("testcase/error")) == 1


@pytest.mark.parametrize("form", [["--format", "text"], ["--format", "github"], ["--json"], ["--report", "-"]])
def test_several_processes_give_the_same_report(cli: Cli, folder: Path, form: list[str]) -> None:
    alone, together = (cli("check", folder, "--opset", 13, *form, "--jobs", jobs) for jobs in (1, 2))
    assert alone == together
