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


@pytest.mark.parametrize(("name", "status"), [("fits", 0), ("rewrite", 1), ("refused", 1), ("unreadable", 2)])
def test_the_status_says_whether_there_is_work(cli: Cli, folder: Path, name: str, status: int) -> None:
    assert cli("check", folder / f"{name}.onnx", "--opset", 13).status == status


def test_text_names_what_would_be_rewritten(cli: Cli, folder: Path) -> None:
    ran = cli("check", folder / "rewrite.onnx", folder / "fits.onnx", "--opset", 13)
    assert ran.out.splitlines() == [
        f"{folder / 'rewrite.onnx'}: does not fit opset 13: 3 nodes to rewrite (1 ReduceLogSumExp, 2 ReduceSumSquare)",
        "2 models: 1 fits, 1 to convert",
    ]
    assert ran.err == ""


def test_one_model_that_fits_says_so(cli: Cli, folder: Path) -> None:
    assert cli("check", folder / "fits.onnx", "--opset", 13).out == f"{folder / 'fits.onnx'}: fits opset 13\n"


def test_an_operator_that_must_not_remain_is_work(cli: Cli, folder: Path) -> None:
    ran = cli("check", folder / "rewrite.onnx", "--without", "ReduceLogSumExp")
    assert ran.status == 1
    assert "1 node to rewrite (ReduceLogSumExp)" in ran.out


def test_a_model_that_states_a_wrong_rank_is_refused_as_by_convert_and_inspect(cli: Cli, tmp_path: Path) -> None:
    graph = "g (float[2,3] x) => (float[2] y) { y = Exp (x) }"
    model = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}'), model)
    inspected = cli("inspect", model)
    assert inspected.status == 1
    for ran in (cli("check", model, "--opset", 13), cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13)):
        assert ran.status == 1
        assert "differ in rank: (2) vs (1); --repair fixes that" in ran.err
        said = " ".join(ran.err.split(": ", 2)[2].split())
        assert said in " ".join(inspected.out.split())


def test_types_of_inner_values_that_nodes_do_not_yield_stop_no_command(cli: Cli, tmp_path: Path) -> None:
    graph = "g (float[2,3] x) => (float[2,3] y) <float[2] z> { z = Neg (x) y = Exp (z) }"
    model = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}'), model)
    assert "not valid" not in cli("inspect", model).out
    for ran in (cli("check", model, "--opset", 13), cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13)):
        assert "Repaired: dropped the types it states of 'z'" in ran.out
    asked = cli("check", model, "--opset", 18)
    assert asked.status == 1
    assert "does not fit opset 18: it states types that its nodes do not yield" in asked.out


def test_nothing_is_changed(cli: Cli, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    cli("check", folder, "--opset", 13)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


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
