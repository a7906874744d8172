"""Reports and verification settings from the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

Cli = Callable[..., Any]

FORMS = ["json", "xml", "md", "html"]


@pytest.fixture
def model(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(models / "skl_gmm_20.onnx", tmp_path / "model.onnx"))


def save(path: Path, text: str, opset: int = 18) -> Path:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}'), path)
    return path


def refused(path: Path) -> Path:
    return save(path, 'g (string[2] x) => (bool[2] y) { y = RegexFullMatch <pattern = "a+"> (x) }', 20)


def verdicts(path: Path) -> list[str]:
    return [item["verdict"] for item in json.loads(path.read_text())["models"]]


def test_every_form_in_one_run(cli: Cli, model: Path, tmp_path: Path) -> None:
    reports = [tmp_path / f"report.{form}" for form in FORMS]
    arguments = [item for path in reports for item in ("--report", path)]
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13, *arguments)
    assert (ran.status, ran.err) == (0, "")
    assert verdicts(reports[0]) == ["converted"]
    assert ElementTree.parse(reports[1]).getroot().get("failures") == "0"
    assert reports[2].read_text().startswith("## ✅")
    assert '<ol class="nodes">' in reports[3].read_text()


def test_expand_reports_too(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("expand", model, "-o", tmp_path / "out.onnx", "--report", tmp_path / "report.json")
    assert ran.status == 0
    assert json.loads((tmp_path / "report.json").read_text())["command"] == "expand"


def test_a_refused_model_has_a_report(cli: Cli, tmp_path: Path) -> None:
    refused(tmp_path / "refused.onnx")
    for command in (["convert", "-o", tmp_path / "out.onnx"], ["check"]):
        report = tmp_path / f"{command[0]}.json"
        ran = cli(*command, tmp_path / "refused.onnx", "--opset", 13, "--report", report)
        assert ran.status == 1
        assert verdicts(report) == ["refused"]
        (refusal,) = json.loads(report.read_text())["models"][0]["refusals"]
        assert refusal["operator"] == "RegexFullMatch"


@pytest.mark.parametrize("jobs", [1, 2])
def test_many_models_share_one_report(cli: Cli, model: Path, tmp_path: Path, jobs: int) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copy(model, folder / "a.onnx")
    refused(folder / "b.onnx")
    (folder / "c.onnx").write_bytes(b"no model")
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    arguments = ("--opset", 13, "--jobs", jobs, "--report", report, "--report", page)
    assert cli("convert", folder, "--output-dir", tmp_path / "out", *arguments).status == 2
    assert verdicts(report) == ["converted", "refused", "unreadable"]
    assert page.read_text().count('class="model"') == 3
    assert cli("check", folder, *arguments).status == 2
    assert verdicts(report) == ["rewrite", "refused", "unreadable"]


def test_verify_reports_both_models(cli: Cli, model: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert cli("verify", model, model, "--report", report).status == 0
    (found,) = json.loads(report.read_text())["models"]
    assert (found["verdict"], found["output"]) == ("equivalent", str(model))
    assert {item["name"] for item in found["verification"]["outputs"]} == {"label", "probabilities"}


@pytest.fixture
def mean(tmp_path: Path) -> Path:
    text = "g (float[batch, 3] x) => (float[batch, 1] y) <int64[1] a = {1}> { y = ReduceMean (x, a) }"
    return save(tmp_path / "mean.onnx", text)


def data_folder(folder: Path, expected: float) -> Path:
    data = folder / "data" / "test_data_set_0"
    data.mkdir(parents=True)
    for name, value in (("input_0", np.ones((2, 3), np.float32)), ("output_0", np.full((2, 1), expected, np.float32))):
        (data / f"{name}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    return data.parent


def test_outputs_of_test_data_are_compared(cli: Cli, mean: Path, tmp_path: Path) -> None:
    arguments = ("convert", mean, "-o", tmp_path / "out.onnx", "--opset", 13, "--force", "--test-data")
    assert cli(*arguments, data_folder(tmp_path / "right", 1.0)).status == 0
    wrong = cli(*arguments, data_folder(tmp_path / "wrong", 2.0))
    assert wrong.status == 1
    assert "expected" in wrong.err
    nothing = cli(*arguments, tmp_path)
    assert nothing.status == 2
    assert "test_data_set_0" in nothing.err


def test_strictness_makes_a_model_that_cannot_run_a_failure(cli: Cli, tmp_path: Path) -> None:
    given = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18, "mine": 1]> g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}>'
        " { z = mine.Unknown (x) y = ReduceMean (z, a) }"
    )
    onnx.save(given, tmp_path / "custom.onnx")
    arguments = ("convert", tmp_path / "custom.onnx", "-o", tmp_path / "out.onnx", "--opset", 13)
    strict = cli(*arguments, "--verify-strict", "--report", tmp_path / "report.json")
    assert strict.status == 1
    assert "could not be verified" in strict.err
    assert verdicts(tmp_path / "report.json") == ["not shown"]
    assert not (tmp_path / "out.onnx").exists()
    lenient = cli(*arguments)
    assert lenient.status == 0
    assert "the rewrite also holds by itself" in " ".join(lenient.out.split())


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceLogSum", "ReduceLogSumExp"])
def test_what_openvino_gets_wrong_is_found_and_named(cli: Cli, tmp_path: Path, op_type: str) -> None:
    pytest.importorskip("openvino")
    path = save(
        tmp_path / "model.onnx",
        f"g (float[4, 3] x) => (float[4, 1] y) {{ p = Exp (x) r = Neg (p) n = {op_type} <axes = [1]> (r) y = Neg (n) }}"
        if op_type != "ReduceLogSum"
        else f"g (float[4, 3] x) => (float[4, 1] y) {{ p = Exp (x) n = {op_type} <axes = [1]> (p) y = Neg (n) }}",
        13,
    )
    report = tmp_path / "report.json"
    ran = cli("verify", path, "--runtime", "openvino", "--report", report)
    assert ran.status == 1, ran.out
    assert f"by {op_type}" in ran.out
    assert json.loads(report.read_text())["models"][0]["verification"]["first"]["op_type"] == op_type
