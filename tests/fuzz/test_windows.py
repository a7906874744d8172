"""What the reference evaluator is given for operators that slide a window is right where its own is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from tests.fuzz.comparing import difference
from tests.fuzz.runtimes import run

F = np.float32
ONE = np.ones((1, 1, 1, 1), np.uint8)
QUANTIZED = "<float s = {1}, float h = {2}, uint8 z = {0}, uint8 o = {1}>"

BETTER = {
    "NaN in the gap of a window": (
        "(float[1, 1, 3] x) => (float[1, 1, 1] y) <float[1, 1, 2] w = {1, 1}> {y = Conv <dilations = [2]> (x, w)}",
        {"x": np.array([[[1, math.nan, 2]]], F)}, np.array([[[3]]], F),
    ),
    "a tie before an odd zero point": (  # 1 / 2 is 0, to the even, and 1 is added
        "(uint8[1, 1, 1, 1] x, uint8[1, 1, 1, 1] w) => (uint8[1, 1, 1, 1] y) "
        f"{QUANTIZED} {{y = QLinearConv (x, s, z, w, s, z, h, o)}}", {"x": ONE, "w": ONE}, ONE,
    ),
    "a tie in a matrix": (
        f"(uint8[1, 1] x, uint8[1, 1] w) => (uint8[1, 1] y) {QUANTIZED} {{y = QLinearMatMul (x, s, z, w, s, z, h, o)}}",
        {"x": ONE[0, 0], "w": ONE[0, 0]}, ONE[0, 0],
    ),
    "a window that rounding up adds": (
        "(float[1, 1, 3] x) => (float[1, 1, 2] y) {y = LpPool <kernel_shape = [2], dilations = [2], strides = [2], "
        "pads = [0, 1], ceil_mode = 1> (x)}", {"x": np.array([[[1, 2, 3]]], F)}, np.array([[[math.hypot(1, 3), 3]]], F),
    ),
    "a norm whose powers no half holds": (
        "(float16[1, 1, 2] x) => (float16[1, 1, 1] y) {y = LpPool <kernel_shape = [2]> (x)}",
        {"x": np.array([[[300, 400]]], np.float16)}, np.array([[[500]]], np.float16),
    ),
    "gaps of windows without padding": (
        '(float[1, 1, 6] x) => (float[1, 1, c] y) {y = AveragePool <kernel_shape = [2], dilations = [3], '
        'auto_pad = "VALID"> (x)}', {"x": np.arange(6, dtype=F).reshape(1, 1, 6)}, np.array([[[1.5, 2.5, 3.5]]], F),
    ),
    "pads of unequal sides": (
        "(float[1, 1, 4, 6] x) => (float[1, 1, a, b] y) {y = MaxPool <kernel_shape = [2, 2], pads = [1, 0, 1, 1]> (x)}",
        {"x": np.ones((1, 1, 4, 6), F)}, np.ones((1, 1, 5, 6), F),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "feeds", "right"), BETTER.values(), ids=BETTER)
def test_it_is_right_where_the_evaluator_is_not(body: str, feeds: dict[str, Any], right: np.ndarray) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 19]> g {body}')
    found = run("reference", model, feeds).values
    assert found is not None
    assert not difference(right, found[0])
    with np.errstate(all="ignore"):
        (own,) = ReferenceEvaluator(model).run(None, feeds)
    assert difference(right, own)


@pytest.mark.parametrize("op_type", ["Conv", "LpPool", "MaxPool", "AveragePool", "QLinearConv"])
@pytest.mark.parametrize("where", [
    "strides = [2, 1]", "pads = [1, 0, 2, 1], strides = [2, 3]", 'auto_pad = "SAME_UPPER", strides = [2, 2]',
    'auto_pad = "SAME_LOWER"', 'auto_pad = "VALID"', "dilations = [2, 1], pads = [1, 1, 1, 1]",
])  # fmt: skip
def test_it_agrees_with_onnxruntime(op_type: str, where: str) -> None:
    rng = np.random.default_rng(8)
    kind = "uint8" if op_type == "QLinearConv" else "float"
    x, w = rng.integers(0, 9, (2, 4, 6, 7)), rng.integers(0, 5, (6, 2, 3, 2))
    b = rng.integers(-9, 9, 6)
    node = {
        "Conv": f"Conv <group = 2, {where}> (x, w, b)",
        "LpPool": f"LpPool <kernel_shape = [3, 2], p = 3, {where}> (x)",
        "MaxPool": f"MaxPool <kernel_shape = [3, 2], {where}> (x)",
        "AveragePool": f"AveragePool <kernel_shape = [3, 2], count_include_pad = {len(where) % 2}, {where}> (x)",
        "QLinearConv": f"QLinearConv <group = 2, {where}> (x, xs, xz, w, ws, wz, ys, yz, b)",
    }[op_type]
    given = f"{kind}[2, 4, 6, 7] x, {kind}[6, 2, 3, 2] w, {'int32' if kind == 'uint8' else kind}[6] b"
    scales = (
        "<float xs = {0.5}, uint8 xz = {3}, float[6] ws = {1, 2, 0.5, 0.25, 1, 1}, uint8[6] wz = {1, 1, 1, 1, 1, 1}"
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 19]> g ({given}) => ({kind}[a, b, c, d] y) '
        f"{scales}, float ys = {{4}}, uint8 yz = {{7}}> {{y = {node}}}"
    )
    dtype = np.dtype("uint8" if kind == "uint8" else "float32")
    feeds = {"x": x.astype(dtype), "w": w.astype(dtype), "b": b.astype("int32" if kind == "uint8" else dtype)}
    wanted, found = (run(runtime, model, feeds) for runtime in ("onnxruntime", "reference"))
    assert wanted.values is not None, wanted.error
    assert found.values is not None, found.error
    assert not difference(wanted.values[0], found.values[0])
