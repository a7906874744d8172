"""What the reference evaluator is given in place of its own operators is right where those are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from tools.fuzz.comparing import difference
from tools.fuzz.runtimes import run
from tools.fuzz.versions import measured

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
    "an end before the first dimension": (
        "(float[2, 3] x) => (int64[a] y) {y = Shape <end = -3> (x)}", {"x": np.zeros((2, 3), F)}, np.zeros(0, np.int64),
    ),
    "a start before the first element": (
        "(float[3] x) => (float[n] y) <int64[1] s = {-9}, int64[1] e = {-99}, int64[1] a = {0}, int64[1] k = {-1}> "
        "{y = Slice (x, s, e, a, k)}", {"x": np.arange(3, dtype=F)}, np.zeros(1, F),
    ),
    "two infinities added in logarithms": (
        "(float[2] x) => (float[1] y) {y = ReduceLogSumExp (x)}", {"x": np.array([math.inf, math.inf], F)},
        np.array([math.inf], F),
    ),
    "the sum of halves near 1": (
        "(float16[3] x) => (float16[1] y) {y = ReduceLogSumExp (x)}",
        {"x": np.array([-0.125, -2.875, -2.625], np.float16)},
        np.array([math.log(math.exp(-0.125) + math.exp(-2.875) + math.exp(-2.625))], np.float16),
    ),
    "an infinite slope": (
        "(float[2] x, float[1] s) => (float[2] y) {y = PRelu (x, s)}",
        {"x": np.array([1, 0], F), "s": np.array([math.inf], F)}, np.array([1, 0], F),
    ),
    "a norm of magnitudes": (
        "(float[1, 2] x) => (float[1, 2] y) {y = LpNormalization <p = 1> (x)}", {"x": np.array([[1, -3]], F)},
        np.array([[0.25, -0.75]], F),
    ),
}  # fmt: skip


@measured
@pytest.mark.parametrize(("body", "feeds", "right"), BETTER.values(), ids=BETTER)
def test_it_is_right_where_the_evaluator_is_not(body: str, feeds: dict[str, Any], right: np.ndarray) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 19]> g {body}')
    found = run("reference", model, feeds).values
    assert found is not None
    assert not difference(right, found[0])
    with np.errstate(all="ignore"):
        (own,) = ReferenceEvaluator(model).run(None, feeds)
    assert difference(right, own)


def test_axes_are_inserted_together_below_13() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["" : 11]> g (float[2, 3] x) => (float[2, 1, 3, 1] y) '
        "{ y = Unsqueeze <axes = [-3, -1]> (x) }"
    )
    found = run("reference", model, {"x": np.zeros((2, 3), F)}).values
    assert found is not None
    assert found[0].shape == (2, 1, 3, 1)


def test_an_output_without_a_name_is_no_input_that_is_left_out() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 14]> g (float[2] x) => (float[2] y, int64[1] i) '
        "<int64[1] k = {1}, float high = {9}> { , i = TopK (x, k) y = Clip (x, , high) }"
    )
    found = run("reference", model, {"x": np.array([1, 5], F)}).values
    assert found is not None
    np.testing.assert_array_equal(found[0], [1, 5])
