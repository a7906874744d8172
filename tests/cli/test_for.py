"""`--for`: models for a runtime, checked and converted from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.runtimes.toaster import HEAD

Cli = Callable[..., Any]

FACT = """
[[fact]]
says = "ReduceL1 reduces every axis."
operators = ["ReduceL1"]
is = "wrong"
evidence = { measured = "toaster 1.0", on = 2026-11-21 }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    text = "g (float[2,3] x) => (float[2,1] y) { y = ReduceL1 <axes = [1]> (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": 13]> {text}'), path)
    return path


@pytest.fixture
def toaster(tmp_path: Path) -> Path:
    path = tmp_path / "toaster.toml"
    path.write_text(HEAD + FACT)
    return path


def test_convert_for_a_target_file(cli: Cli, model: Path, toaster: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    ran = cli("convert", model, "-o", output, "--for", toaster)
    assert ran.status == 0, ran.err
    assert "1 node: ReduceL1" in ran.out
    assert "because on toaster 1.0: ReduceL1 reduces every axis (1 node)" in " ".join(ran.out.split())
    assert "note not verified on toaster: there is no adapter for it written" in " ".join(ran.out.split())
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    found = onnxruntime.InferenceSession(output).run(None, {"x": x})[0]
    np.testing.assert_array_equal(found, [[6], [15]])


def test_check_names_the_node_and_the_reason(cli: Cli, model: Path, toaster: Path) -> None:
    ran = cli("check", model, "--for", toaster)
    assert ran.status == 1
    assert "1 node to rewrite (ReduceL1)" in ran.out
    assert "on toaster 1.0: ReduceL1 reduces every axis (1 node)" in ran.out
    report = json.loads(cli("check", model, "--for", toaster, "--report", "-").out)
    (site,) = report["models"][0]["sites"]
    assert site["because"] == "ReduceL1 reduces every axis."


def test_check_is_silent_about_a_model_that_is_right_there(cli: Cli, model: Path, toaster: Path) -> None:
    toaster.write_text(HEAD + FACT.replace("ReduceL1", "ReduceL2"))
    ran = cli("check", model, "--for", toaster)
    assert ran.status == 0
    assert "fits opset 13 on toaster 1.0" in ran.out


def test_check_says_what_would_go_wrong_at_the_models_own_opset(cli: Cli, model: Path, toaster: Path) -> None:
    onnx_model = onnx.load(model)
    onnx_model.graph.node.add(op_type="ReduceL1", input=["y"], output=["z"])
    onnx_model.graph.output.add().CopyFrom(onnx.helper.make_tensor_value_info("z", 1, [1, 1]))
    onnx_model.opset_import[0].version = 11
    onnx.save(onnx_model, model)
    toaster.write_text(HEAD + FACT.replace('is = "wrong"', 'is = "refused"\nopsets = "-12"').replace("13", "12"))
    ran = cli("check", model, "--for", toaster)
    assert "opset 11 -> 13" in ran.out
    assert "on toaster 1.0, at its own opset 11: ReduceL1 reduces every axis (2 nodes)" in " ".join(ran.out.split())


def test_for_and_opset_and_without_go_together(cli: Cli, model: Path, toaster: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    ran = cli("convert", model, "-o", output, "--for", toaster, "--opset", 18, "--without", "ReduceSum", "--no-verify")
    assert ran.status == 1
    assert "ReduceSum" in ran.err
    ran = cli("convert", model, "-o", output, "--for", toaster, "--opset", 18, "--no-verify")
    assert ran.status == 0
    assert onnx.load(output).opset_import[0].version == 18
    ran = cli("convert", model, "-o", output, "--for", toaster, "--opset", 22, "--no-verify", "--force")
    assert ran.status == 2
    assert "toaster 1.0 reads opsets 9-21, not 22" in ran.err


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
