"""What onnx's reference evaluator gets wrong, and the witness gets right."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from reducelower import convert_version
from reducelower.verification import verify
from reducelower.verification.running.evaluator import Evaluator
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import CannotRunError, Source

from .models import model

POWER = "g (float[N, 4] x) => (float[N, 4] y) <float h = {0.5}>"
WINDOW = "y = MaxPool <kernel_shape = [2, 2], pads = [1, 0, 1, 0]> (x)"
POOLED = "g (float[1, 1, 3, 6] x) => (float[A, B, C, D] y) { %s }"
FUNCTION = f'<opset_import: ["": 18], domain: "local"> Pool (x) => (y) {{ {WINDOW} }}'


def test_a_power_of_one_half_is_no_root_of_minus_infinity() -> None:
    (found,) = Evaluator(model(f"{POWER} {{ y = Pow (x, h) }}")).run(None, {"x": np.array([[-np.inf, 4]], np.float32)})
    np.testing.assert_array_equal(found, [[np.inf, 2]])
    root, power = model(f"{POWER} {{ y = Sqrt (x) }}"), model(f"{POWER} {{ y = Pow (x, h) }}")
    assert verify(root, power).verdict == "different"
    assert verify(power, root).verdict == "different"


@pytest.mark.parametrize(("body", "function"), [(WINDOW, ""), ("y = local.Pool (x)", FUNCTION)])
def test_pads_of_a_window_are_those_before_and_then_those_behind(body: str, function: str) -> None:
    x = np.random.default_rng(1).standard_normal((1, 1, 3, 6)).astype(np.float32)
    (found,) = Evaluator(model(POOLED % body, functions=function)).run(None, {"x": x})
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)), constant_values=-np.inf)
    expected = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), axis=(2, 3)).max(axis=(-1, -2))
    np.testing.assert_array_equal(found, expected)


def test_logarithms_of_small_probabilities_are_finite() -> None:
    side = model("g (float[N, 3] x) => (float[N, 3] y) { y = LogSoftmax (x) }")
    (found,) = Evaluator(side).run(None, {"x": np.array([[0, -1000, 1000], [1, 1, 1]], np.float32)})
    np.testing.assert_allclose(found, [[-1000, -2000, 0], [-np.log(3)] * 3], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_logarithms_of_probabilities_along_any_axis(axis: int) -> None:
    side = model(f"g (float[2, 3, 4] x) => (float[2, 3, 4] y) {{ y = LogSoftmax <axis = {axis}> (x) }}")
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    (found,) = Evaluator(side).run(None, {"x": x})
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(found, np.log(powers / powers.sum(axis, keepdims=True)), rtol=1e-5)


LOOPED = (
    "g (float[2, 3] x) => (float[2, 3] y, float[T, 2, 3] a, float[T] s) <int64 n = {3}, bool on = {1}> "
    "{ y, a, s = Loop (n, on, x) <body = b (int64 i, bool c, float[2, 3] v) "
    "=> (bool d, float[2, 3] w, float[2, 3] t, float r) "
    "{ d = Identity (c)  w = Add (v, v)  t = Identity (v)  f = Cast <to = 1> (i)  r = Neg (f) }> }"
)


def test_what_the_turns_of_a_loop_give_lies_along_an_axis_of_its_own() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    last, all_of_them, numbers = Evaluator(model(LOOPED)).run(None, {"x": x})
    np.testing.assert_array_equal(last, 8 * x)
    np.testing.assert_array_equal(all_of_them, np.stack([x, 2 * x, 4 * x]))
    np.testing.assert_array_equal(numbers, [0, -1, -2])


def test_a_loop_of_no_turn_is_no_evidence() -> None:
    """The evaluator does not know the shape of what a turn would give, which onnxruntime takes from the graph."""
    side = model(
        "g (int64 n) => (float[M, 2] y) <bool go = {1}> { y = Loop (n, go) <body = b (int64 i, bool c) => "
        "(bool d, float[2] r) <float[2] k = {1, 2}> { d = Identity (c)  r = Identity (k) }> }"
    )
    session = runtime_named("reference").load(Source(side))
    assert session.run({"n": np.array(2)})[0].shape == (2, 2)
    with pytest.raises(CannotRunError) as caught:
        session.run({"n": np.array(0)})
    assert caught.value.unsupported


def test_a_quotient_is_not_taken_in_another_type_than_that_of_the_scale() -> None:
    text = "g (float[N] x, %s s) => (uint8[N] y) { y = QuantizeLinear <output_dtype = 2> (x, s) }"
    x = np.array([12.254294, 2.5], np.float32)
    (found,) = Evaluator(model(text % "float", 23)).run(None, {"x": x, "s": np.float32(0.5)})
    np.testing.assert_array_equal(found, [25, 5])
    with pytest.raises(NotImplementedError, match="scale"):
        Evaluator(model(text % "float16", 23)).run(None, {"x": x, "s": np.float16(0.5)})


@pytest.mark.parametrize("said", ["axis = 0", "axis = 0, block_size = 2", ""])
def test_quotients_beyond_an_int32_are_saturated(said: str) -> None:
    text = "g (float[A] x, float[B] s, int8[C] p) => (int8[A] y) {{ y = QuantizeLinear <{}> (x, s, p) }}"
    x = np.array([3e9, -3e38, np.inf, -np.inf, 2.5, -0.5], np.float32)
    scales = {"axis = 0": [0.5, 1, 2, 4, 1, 1], "axis = 0, block_size = 2": [0.5, 2, 1], "": [1]}[said]
    feeds = {"x": x, "s": np.array(scales, np.float32), "p": np.full(len(scales), 1, np.int8)}
    (found,) = Evaluator(model(text.format(said).replace("<>", ""), 21)).run(None, feeds)
    np.testing.assert_array_equal(found, [127, -128, 127, -128, 3, 1])


@pytest.mark.parametrize(
    ("opset", "node", "expected"),
    [
        (11, "Clip (x, low)", [1, 1, 65504, np.nan]),
        (13, "Clip (x)", [-65504, 0.5, 65504, np.nan]),
        (13, 'Clip (x, "", low)', [-65504, 0.5, 1, np.nan]),
        (6, "Clip <min = 1.0> (x)", [1, 1, np.inf, np.nan]),  # its largest is that of single precision
        (6, "Clip <max = 1.0> (x)", [-np.inf, 0.5, 1, np.nan]),
    ],
)
def test_a_bound_that_is_left_out_is_the_largest_number(opset: int, node: str, expected: list[float]) -> None:
    """Sources: the pages of Clip at opset 6, 11 and 13."""
    one = "<float16 low = {15360}>"  # its bits
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g (float16[4] x) => (float16[4] y) {one} {{ y = {node} }}'
    side = parser.parse_model(text)
    (found,) = Evaluator(side).run(None, {"x": np.array([-np.inf, 0.5, np.inf, np.nan], np.float16)})
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.array(expected, np.float16))


CONV = "g (float[1, 2, 5, 5] x, float[2, 2, 2, 2] w) => (float[A, B, C, D] y) {{ y = Conv <{}> (x, w) }}"
POOL = "g (float[1, 2, 5, 5] x) => (float[A, B, C, D] y) {{ y = AveragePool <kernel_shape = [2, 2]{}> (x) }}"
NORM = "g ({0}[2, 3] x, {0}[3] w) => ({0}[2, 3] y) {{ y = LayerNormalization (x, w) }}"
RNN = "g (float[2, 1, 3] x, float[{}, 4, 3] w, float[{}, 4, 4] r{}) => (float[a, b, c, d] y) {{ y = {} }}"
BOTH = 'RNN <direction = "bidirectional", hidden_size = 4> (x, w, r)'


@pytest.mark.parametrize(
    ("text", "opset", "wrong"),
    [
        (CONV.format("strides = [2, 2]"), 17, []),
        (CONV.format("dilations = [1, 1]"), 17, []),
        (CONV.format("dilations = [2, 1]"), 17, ["Conv"]),
        (POOL.format(", pads = [1, 0, 0, 1]"), 19, []),
        (POOL.format(", ceil_mode = 1"), 19, ["AveragePool"]),
        (POOL.format(', auto_pad = "VALID"'), 19, ["AveragePool"]),
        (NORM.format("float"), 17, []),
        (NORM.format("float16"), 17, ["LayerNormalization"]),
        (RNN.format(2, 2, "", BOTH), 14, []),
        (RNN.format(1, 1, "", "RNN <hidden_size = 4, clip = 1.0> (x, w, r)"), 14, ["RNN"]),
        (RNN.format(1, 1, ", int32[1] n", 'RNN <hidden_size = 4> (x, w, r, "", n)'), 14, ["RNN"]),
        ("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", 12, ["Softmax"]),
        ("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", 13, []),
        ("g (float[3] x) => (float[3] y) { y = Shrink (x) z = Abs (x) }", 13, ["Shrink"]),
    ],
)
def test_what_it_gets_wrong_as_it_stands_is_no_evidence(text: str, opset: int, wrong: list[str]) -> None:
    assert wrong_in_reference(model(text, opset)) == wrong


@pytest.mark.parametrize("cast", ["Cast <to = 22> (x)", "CastLike (x, k)"])
def test_floats_are_rounded_on_the_way_to_four_bits(cast: str) -> None:
    """The page of these types: to the nearest, ties to even; whole numbers lose their high bits, as in Cast."""
    text = "g (float[7] x) => (float[7] y) { h = Constant <value_ints = [1]> ()  k = Cast <to = 22> (h)"
    given = model(f"{text}  c = {cast}  y = Cast <to = 1> (c) }}", 21)
    (found,) = Evaluator(given).run(None, {"x": np.float32([0.5, 0.6, 1.5, 2.5, -1.5, -7.9, 9])})
    assert found.tolist() == [0, 1, 2, 2, -2, -8, -7]


@pytest.mark.parametrize(("policy", "rows", "columns"), [("not_larger", 6, 9), ("not_smaller", 8, 12)])
def test_a_policy_of_resize_holds_for_axes_from_the_back(policy: str, rows: int, columns: int) -> None:
    """onnxruntime leaves the policy out there, and the sizes with it; one factor for both axes: 8/4 or 9/6."""
    given = model(
        "g (float[1, 1, 4, 6] x) => (float[A, B, C, D] y) <int64[2] s = {8, 9}> { y = Resize "
        f'<mode = "nearest", keep_aspect_ratio_policy = "{policy}", axes = [-2, -1]> (x, , , s) }}',
        18,
    )
    (found,) = Evaluator(given).run(None, {"x": np.zeros((1, 1, 4, 6), np.float32)})
    assert found.shape == (1, 1, rows, columns)
    made = convert_version(given, 13)
    said = verify(given, made)
    assert (said.verdict, said.departs) == ("equivalent", ("y",))
    assert said.departed == (
        "onnxruntime diverges from the specification on output 'y' of the source in shape; onnx.reference agrees with "
        "the converted model",
    )
