"""What a branch holds that is never taken is asked neither of the source nor of the result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

Cli = Callable[..., Any]

_TAKEN = "then_branch = t () => (float[3, 1] u) { u = ReduceSum (x, a) }"
_NEVER = "else_branch = e () => (float[3, 1] v) { w = FancyOp (x) v = ReduceSum (w, a) }"

_CONDITIONS = {
    "an initializer": (
        "g (float[3, 4] x) => (float[3, 1] y) <bool c = {1}, int64[1] a = {1}> "
        f"{{ y = If (c) <{_TAKEN}, {_NEVER}> }}"
    ),
    "a node": (
        "g (float[3, 4] x) => (float[3, 1] y) <int64[1] a = {1}> "
        f"{{ c = Constant <value = bool[1] {{1}}> () y = If (c) <{_TAKEN}, {_NEVER}> }}"
    ),
    "around a body": (
        "g (float[3, 4] x, int64 n, bool d) => (float[3, 4] y) <bool c = {1}, int64[1] a = {1}> "
        "{ y = Loop (n, d, x) <body = b (int64 i, bool e, float[3, 4] s) => (bool f, float[3, 4] r) "
        f"{{ f = Identity (e) z = If (c) <{_TAKEN}, {_NEVER}> r = Add (s, z) }}> }}"
    ),
}


def saved(tmp_path: Path, body: str, ir_version: int = 8) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": 13]> {body}'), path)
    return path


@pytest.mark.parametrize("opset", ["11", "13", "18"])
@pytest.mark.parametrize("condition", _CONDITIONS)
def test_a_branch_that_is_never_taken_may_hold_anything(cli: Cli, tmp_path: Path, condition: str, opset: str) -> None:
    source, output = saved(tmp_path, _CONDITIONS[condition]), tmp_path / "out.onnx"
    ran = cli("convert", source, "-o", output, "--opset", opset)
    assert (ran.status, ran.err) == (0, "")
    made = onnx.load(output)
    onnx.checker.check_model(made, full_check=True)
    feeds: dict[str, Any] = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
    if condition == "around a body":
        feeds |= {"n": np.array(1), "d": np.array(True)}
    (y,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feeds)
    sums = np.array([[6], [22], [38]], np.float32)
    np.testing.assert_array_equal(y, feeds["x"] + sums if condition == "around a body" else sums)


def test_check_says_so_too(cli: Cli, tmp_path: Path) -> None:
    ran = cli("check", saved(tmp_path, _CONDITIONS["an initializer"]), "--opset", "11")
    assert (ran.status, ran.err) == (1, "")
    assert "2 nodes to rewrite" in ran.out


def test_the_other_name_of_the_default_domain_is_no_unknown_operator(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path, "g (float[3] x) => (float[3] y) { y = Neg (x) }")
    model = onnx.load(path)
    model.graph.node[0].domain = model.opset_import[0].domain = "ai.onnx"
    onnx.save(model, path)
    ran = cli("convert", path, "-o", tmp_path / "out.onnx", "--opset", "11")
    assert ran.status == 1
    assert "the domain of Neg is spelled 'ai.onnx'" in ran.err
    assert "--repair fixes that" in ran.err


@pytest.mark.parametrize("inputs", ["float[3, 4] x, bool c", "float[3, 4] x, bool c = {1}"])
def test_a_condition_that_a_caller_may_change_takes_either_branch(cli: Cli, tmp_path: Path, inputs: str) -> None:
    body = f"g ({inputs}) => (float[3, 1] y) <int64[1] a = {{1}}> {{ y = If (c) <{_TAKEN}, {_NEVER}> }}"
    ran = cli("convert", saved(tmp_path, body), "-o", tmp_path / "out.onnx", "--opset", "11")
    assert ran.status == 1
    assert "ONNX has no operator 'FancyOp'" in ran.err
    assert not (tmp_path / "out.onnx").exists()


def test_what_is_taken_is_asked(cli: Cli, tmp_path: Path) -> None:
    body = _CONDITIONS["an initializer"].replace("c = {1}", "c = {0}")
    assert cli("convert", saved(tmp_path, body), "-o", tmp_path / "out.onnx", "--opset", "11").status == 1
