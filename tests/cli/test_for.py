"""What depends on the runtimes that are installed: models for one, and what is found of one."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest

Cli = Callable[..., Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    text = "g (float[2,3] x) => (float[2,1] y) { y = ReduceL1 <axes = [1]> (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": 13]> {text}'), path)
    return path


def test_the_result_is_run_where_it_is_for(cli: Cli, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--for", "openvino")
    assert ran.status == 0, ran.err
    assert "onnxruntime, onnxruntime / openvino" in " ".join(ran.out.split())


def test_what_was_verified_in_another_release_is_said(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--for", "onnxruntime@1.16")
    said = f"note verified in onnxruntime {onnxruntime.__version__}, which is installed, not in 1.16"
    assert said in " ".join(ran.out.split())
    same = cli("convert", model, "-o", tmp_path / "same.onnx", "--for", f"onnxruntime@{onnxruntime.__version__}")
    assert "which is installed" not in same.out


@pytest.mark.skipif(find_spec("MNN") is not None, reason="the runtime is installed here")
def test_strictly_a_model_is_right_for_a_runtime_only_in_that_runtime(cli: Cli, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    arguments = ("convert", model, "-o", output, "--opset", 13, "--for", "mnn")
    ran = cli(*arguments, "--verify-strict")
    assert (ran.status, output.exists()) == (1, False)
    assert "mnn" in ran.err
    assert cli(*arguments).status == 0
    assert output.exists()


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceLogSum", "ReduceLogSumExp"])
def test_what_openvino_gets_wrong_is_found_and_named(cli: Cli, tmp_path: Path, op_type: str) -> None:
    pytest.importorskip("openvino")
    read = "p" if op_type == "ReduceLogSum" else "r"
    nodes = f"p = Exp (x) r = Neg (p) n = {op_type} <axes = [1]> ({read}) y = Neg (n)"
    text = f'<ir_version: 8, opset_import: ["": 13]> g (float[4, 3] x) => (float[4, 1] y) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    report = tmp_path / "report.json"
    ran = cli("verify", tmp_path / "model.onnx", "--runtime", "openvino", "--report", report)
    assert ran.status == 1, ran.out
    assert f"by {op_type}" in ran.out
    assert json.loads(report.read_text())["models"][0]["verification"]["first"]["op_type"] == op_type
