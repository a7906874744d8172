"""What the judges get wrong, beside numbers that follow from the operators' pages by hand or by numpy.

Each case is one gap of `known_gaps.toml`: the judge gets it wrong, and is not asked about it, or not for all digits.
Once a newer runtime gets it right, its gap can go.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from tools.fuzz.comparing import difference
from tools.fuzz.gaps import facts_of, gap_of, is_single
from tools.fuzz.runtimes import run
from tools.fuzz.versions import measured

INF = math.inf
F = np.float32


@dataclass(frozen=True)
class Wrong:
    """A model that a judge gets wrong.

    Attributes:
        judge: which one.
        model: inputs, outputs, constants and nodes as ONNX text.
        opset: its opset version.
        feeds: values of its inputs.
        right: values of its outputs.
        single: whether all that is wrong is that doubles have the digits of floats.
    """

    judge: str
    model: str
    opset: int
    feeds: Mapping[str, Any]
    right: Sequence[Any]
    single: bool = False


X = np.array([1.5, -1.25, 0.3])
SIGNAL = np.array([-3.0, -1.5, 0.25])
BATCH = np.arange(12, dtype=F).reshape(2, 2, 3)
STATISTIC = np.array([1, 2], F)
MEAN, VARIANCE = (BATCH.mean(axis=(0, 2)) + STATISTIC) / 2, (BATCH.var(axis=(0, 2)) + STATISTIC) / 2
KEYS = np.array([[1, 0], [0, 1], [1, 1], [2, 2]], F).reshape(1, 1, 4, 2)
QUERY = np.array([[1, 2]], F).reshape(1, 1, 1, 2)


def attended(keys: np.ndarray) -> np.ndarray:
    """What the query gets of keys that are values, too."""
    weights = np.exp(QUERY[0, 0] @ keys.T / math.sqrt(2))
    return (weights / weights.sum() @ keys).reshape(1, 1, 1, 2)


TRAINED = "y, m, v = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, s, s, s) a = Abs (m) b = Abs (v)"

WRONG = {
    "Gelu of doubles": Wrong(
        "onnxruntime", "(double[3] x) => (double[3] y) {y = Gelu <approximate = \"tanh\"> (x)}", 20, {"x": X},
        [X / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))], single=True,
    ),
    "Gelu of doubles by its own arithmetic": Wrong(
        "reference", "(double[3] x) => (double[3] y) {y = Gelu (x)}", 20, {"x": X},
        [X / 2 * (1 + np.vectorize(math.erf)(X / math.sqrt(2)))], single=True,
    ),
    "inverse DFT of doubles": Wrong(
        "onnxruntime", "(double[1, 3, 1] x) => (double[1, 3, 2] y) {y = DFT <inverse = 1> (x)}", 18,
        {"x": SIGNAL.reshape(1, 3, 1)}, [np.fft.ifft(SIGNAL).view(np.float64).reshape(1, 3, 2)], single=True,
    ),
    "window in doubles": Wrong(
        "onnxruntime", "(int64 n) => (double[7] y) {y = BlackmanWindow <output_datatype = 11> (n)}", 17,
        {"n": np.array(7)},
        [0.42 - 0.5 * np.cos(2 * math.pi * np.arange(7) / 7) + 0.08 * np.cos(4 * math.pi * np.arange(7) / 7)],
        single=True,
    ),
    "statistics written over what is read again": Wrong(
        "onnxruntime", f"(float[2, 2, 3] x) => (float[2] a, float[2] b) <float[2] s = {{1, 2}}> {{{TRAINED}}}", 15,
        {"x": BATCH}, [np.abs(MEAN), np.abs(VARIANCE)],
    ),
    "nothing split by number": Wrong(
        "onnxruntime", "(float[0] x) => (float[0] y) {y = Split <num_outputs = 1> (x)}", 18, {"x": np.zeros(0, F)},
        [np.zeros(0, F)],
    ),
    "new keys that are no query's past": Wrong(
        "onnxruntime", "(float[1, 1, 1, 2] q, float[1, 1, 2, 2] k, float[1, 1, 2, 2] p) => (float[1, 1, 1, 2] y) "
        "{y, pk, pv = Attention <is_causal = 1> (q, k, k, , p, p)}", 24,
        {"q": QUERY, "p": KEYS[:, :, :2], "k": KEYS[:, :, 2:]}, [attended(KEYS[0, 0, :3])],  # j <= i + 2
    ),
    "the lowest number for infinity": Wrong(
        "onnxruntime", "(float[1, 1, 2, 1] q) => (float[1, 1, 2, 2] m) "
        "{y, , , m = Attention <is_causal = 1, qk_matmul_output_mode = 2> (q, q, q)}", 23,
        {"q": np.array([[[[1], [2]]]], F)}, [np.array([[[[1, -INF], [2, 4]]]], F)],
    ),
    "the product before softcap": Wrong(
        "reference", "(float[1, 1, 2, 1] q) => (float[1, 1, 2, 2] m) {y, , , m = Attention <softcap = 2.0> (q, q, q)}",
        23, {"q": np.array([[[[1], [2]]]], F)}, [np.array([[[[1, 2], [2, 4]]]], F)],
    ),
    "the mean of an infinity": Wrong(
        "onnxruntime", "(float[1, 2] x, float[2] s) => (float[1, 2] y, float[1, 1] m) "
        "{y, m = LayerNormalization (x, s)}", 17, {"x": np.array([[-INF, 1]], F), "s": np.ones(2, F)},
        [np.full((1, 2), math.nan, F), np.array([[-INF]], F)],
    ),
    "ignored numbers in the mean": Wrong(
        "reference", "(float[2, 2] x) => (float y) <int64[2] t = {0, -1}> "
        "{y = NegativeLogLikelihoodLoss <ignore_index = -1> (x, t)}", 13,
        {"x": np.array([[-1, 5], [7, 9]], F)}, [np.array(1, F)],
    ),
    "an aspect ratio kept along an axis from the end": Wrong(
        "onnxruntime", "(float[1, 2] x) => (float[1, 4] y) <int64[1] s = {4}> "
        "{y = Resize <axes = [-1], keep_aspect_ratio_policy = \"not_larger\"> (x, , , s)}", 18,
        {"x": np.array([[1, 2]], F)}, [np.array([[1, 1, 2, 2]], F)],
    ),
    "whole numbers quantized": Wrong(
        "reference", "(int32[1] x) => (uint8[1] y) <float s = {1}, uint8 z = {3}> {y = QuantizeLinear (x, s, z)}", 13,
        {"x": np.array([2**31 - 1], np.int32)}, [np.array([255], np.uint8)],
    ),
    "the mean of halves": Wrong(
        "reference", "(float16[1, 3] x, float16[3] s) => (float16[1, 3] y, float[1, 1] m) "
        "{y, m = LayerNormalization (x, s)}", 17,
        {"x": np.array([[1, 2, 2]], np.float16), "s": np.ones(3, np.float16)},
        [np.array([[-math.sqrt(2), math.sqrt(0.5), math.sqrt(0.5)]], np.float16), np.array([[5 / 3]], F)],
    ),
    "roots of floats below doubles": Wrong(
        "reference", "(double[1, 1, 1] x, float[1] s) => (double[1, 1, 1] y) {y = BatchNormalization (x, s, s, s, s)}",
        15, {"x": np.ones((1, 1, 1)), "s": np.array([3], F)}, [np.array([[[3 - 6 / math.sqrt(3 + 1e-5)]]])],
        single=True,
    ),
    "doubles shrunk as floats": Wrong(
        "onnxruntime", "(double[1] x) => (double[1] y) {y = Shrink <bias = 0.25> (x)}", 9, {"x": np.array([1.1])},
        [np.array([0.85])], single=True,
    ),
    "doubles shrunk that no float holds": Wrong(
        "onnxruntime", "(double[1] x) => (double[1] y) {y = Shrink <bias = 0.25> (x)}", 9, {"x": np.array([1e300])},
        [np.array([1e300])],
    ),
    "what does not vary": Wrong(
        "onnxruntime", "(float[1, 1, 1, 2] x) => (float[1, 1, 1, 2] y) "
        "{y = MeanVarianceNormalization <axes = [3]> (x)}", 11, {"x": np.full((1, 1, 1, 2), 0.5, F)},
        [np.zeros((1, 1, 1, 2), F)],
    ),
    "a scale of zero": Wrong(
        "reference", "(int32[1] x, int32 s) => (uint8[1] y) <uint8 z = {0}> {y = QuantizeLinear (x, s, z)}", 21,
        {"x": np.array([4], np.int32), "s": np.array(0, np.int32)}, [np.array([255], np.uint8)],
    ),
    "corners of a dimension of size 1": Wrong(
        "onnxruntime", "(float[1, 2, 3] t) => (float[1, 1, 2, 2] y) <int64[4] z = {1, 1, 1, 2}> "
        "{y = AffineGrid <align_corners = 1> (t, z)}", 20, {"t": np.arange(6, dtype=F).reshape(1, 2, 3)},
        [np.array([[[[1, -2], [1, 4]]]], F)],  # at y = -1
    ),
    "places in doubles": Wrong(
        "reference", "(double[1, 2, 3] t) => (double[1, 1, 3, 2] y) <int64[4] z = {1, 1, 1, 3}> "
        "{y = AffineGrid (t, z)}", 20,
        {"t": np.array([[[1, 0, 0], [0, 1, 0]]], float)}, [np.array([[[[-2 / 3, 0], [0, 0], [2 / 3, 0]]]])],
        single=True,
    ),
    "NaN behind infinity": Wrong(
        "onnxruntime", "(float[2] x) => (float[1] y) {y = ReduceLogSumExp (x)}", 18,
        {"x": np.array([INF, math.nan], F)}, [np.array([math.nan], F)],
    ),
    "what steps yield": Wrong(
        "reference", "(int64 n) => (float[a, b, c] y) <bool t = {1}> {y = Loop (n, t) <body = b (int64 i, bool g) => "
        "(bool h, float[1, 2] v) {h = Identity (g) v = Constant <value = float[1, 2] {1, 2}> ()}>}", 13,
        {"n": np.array(2)}, [np.array([[[1, 2]], [[1, 2]]], F)],
    ),
    "infinity quantized": Wrong(
        "reference", "(float[2] x) => (uint8[2] y) <float s = {1}, uint8 z = {0}> {y = QuantizeLinear (x, s, z)}", 13,
        {"x": np.array([INF, -INF], F)}, [np.array([255, 0], np.uint8)],
    ),
    "infinity quantized by blocks": Wrong(
        "onnxruntime", "(float16[1, 2] x) => (uint8[1, 2] y) <float16[1, 1] s = {15360}, uint8[1, 1] z = {0}> "
        "{y = QuantizeLinear <axis = 1, block_size = 2> (x, s, z)}", 21,
        {"x": np.array([[INF, -INF]], np.float16)}, [np.array([[255, 0]], np.uint8)],
    ),
    "strings in runs": Wrong(
        "onnxruntime", "(string[2, 2] x, int64[1] i) => (string[1, 2] y) {y = Gather (x, i)}", 13,
        {"x": np.array([["a", "b"], ["c", "d"]], object), "i": np.array([1])}, [np.array([["c", "d"]], object)],
    ),
    "strings in a triangle": Wrong(
        "reference", "(string[2, 2] x) => (string[2, 2] y) {y = Trilu (x)}", 14,
        {"x": np.array([["a", "b"], ["c", "d"]], object)}, [np.array([["a", "b"], ["", "d"]], object)],
    ),
    "a size that is rounded down": Wrong(
        "reference", "(float[1, 1, 1, 5] x) => (float[1, 1, 1, c] y) <float[4] s = {1, 1, 1, 1.4}> {y = Resize "
        "<mode = \"linear\", coordinate_transformation_mode = \"align_corners\"> (x, , s)}", 13,
        {"x": np.arange(5, dtype=F).reshape(1, 1, 1, 5)}, [np.linspace(0, 4, 7, dtype=F).reshape(1, 1, 1, 7)],
    ),
    "strides longer than the window": Wrong(
        "onnxruntime", "(float[1, 1, 6] x) => (float[1, 1, 2] y) "
        "{y = AveragePool <kernel_shape = [1], strides = [3], auto_pad = \"SAME_UPPER\"> (x)}", 13,
        {"x": np.arange(6, dtype=F).reshape(1, 1, 6)}, [np.array([[[0, 3]]], F)],
    ),
    "nothing reduced along a negative axis": Wrong(
        "onnxruntime", "(float[2, 0] x) => (float[n] y) {y = ReduceMax <axes = [-2], keepdims = 0> (x)}", 13,
        {"x": np.zeros((2, 0), F)}, [np.zeros(0, F)],
    ),
    "halves clipped as floats": Wrong(
        "onnxruntime", "(float16[2] x) => (float16[2] y) {y = Clip (x)}", 11, {"x": np.array([INF, -INF], np.float16)},
        [np.array([65504, -65504], np.float16)],
    ),
    "the variance of halves": Wrong(
        "reference", "(float16[1, 1, 2] x, float[1] s) => (float16[1, 1, 2] y, float[1] m, float[1] v) "
        "{y, m, v = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, s, s, s)}", 15,
        {"x": np.array([[[300, -400]]], np.float16), "s": np.array([3], F)},
        [np.array([[[6, 0]]], np.float16), np.array([-23.5], F), np.array([(350**2 + 3) / 2], F)],
    ),
    "a chance of one": Wrong(
        "onnxruntime", "(float[2] x) => (float[2] y) {y = Bernoulli (x)}", 15, {"x": np.array([0, 1], F)},
        [np.array([0, 1], F)],
    ),
    "weights of whole numbers": Wrong(
        "reference", "(int32[1, 1, 2, 2] x, float[1, 1, 1, 2] g) => (int32[1, 1, 1, 1] y) {y = GridSample (x, g)}", 16,
        {"x": np.array([[[[0, 10], [20, 30]]]], np.int32), "g": np.zeros((1, 1, 1, 2), F)},
        [np.array([[[[15]]]], np.int32)],
    ),
    "half a pixel too early": Wrong(
        "reference", "(float[1, 1, 4, 4] x, float[1, 4] r, int64[1] b) => (float[1, 1, 1, 1] y) "
        "{y = RoiAlign <output_height = 1, output_width = 1, sampling_ratio = 1> (x, r, b)}", 10,
        {"x": np.arange(16, dtype=F).reshape(1, 1, 4, 4), "r": np.array([[0, 0, 2, 2]], F), "b": np.array([0])},
        [np.array([[[[5]]]], F)],  # at (1, 1), the middle of the region
    ),
    "imaginary parts": Wrong(
        "reference", "(complex64[1, 1, 1, 1] x) => (complex64[1, 1, 1, 2] y) <float[4] s = {1, 1, 1, 2}> "
        "{y = Resize (x, , s)}", 13, {"x": np.array([[[[1 + 2j]]]], np.complex64)},
        [np.array([[[[1 + 2j, 1 + 2j]]]], np.complex64)],
    ),
}  # fmt: skip


def model_of(case: Wrong) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {case.opset}]> g {case.model}')


@measured
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_judge_is_wrong_where_a_gap_says_so(case: Wrong) -> None:
    model = model_of(case)
    onnx.checker.check_model(model, full_check=True)
    facts = facts_of(model, case.feeds.values())
    found = run(case.judge, model, case.feeds).values
    assert found is None or any(difference(one, other) for one, other in zip(case.right, found, strict=True)), found
    assert (gap_of(case.judge, facts.also(found or ())) is None) == case.single
    assert is_single(case.judge, facts) or not case.single
    if case.single:
        assert found is not None
        assert not any(difference(one, other, single=True) for one, other in zip(case.right, found, strict=True))


@measured
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_the_other_judge_is_right_unless_it_has_a_gap_too_or_does_not_run_it(case: Wrong) -> None:
    model = model_of(case)
    other = "reference" if case.judge == "onnxruntime" else "onnxruntime"
    facts = facts_of(model, case.feeds.values())
    found = run(other, model, case.feeds).values
    if found is not None and gap_of(other, facts) is None and not is_single(other, facts):
        assert not any(difference(one, two) for one, two in zip(case.right, found, strict=True))
