"""What onnx's reference evaluator gets wrong, and the witness gets right."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from reducelower.verification import verify
from reducelower.verification.running.evaluator import Evaluator
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import CannotRunError, Source

from .models import model

POWER = "g (float[N, 4] x) => (float[N, 4] y) <float h = {0.5}>"
GATHERED = "g (complex64[A, B] x, int64[C, D] i) => (complex64[C, D] y) { y = GatherElements <axis = 0> (x, i) }"
WINDOW = "y = MaxPool <kernel_shape = [2, 2], pads = [1, 0, 1, 0]> (x)"
POOLED = "g (float[1, 1, 3, 6] x) => (float[A, B, C, D] y) { %s }"
FUNCTION = f'<opset_import: ["": 18], domain: "local"> Pool (x) => (y) {{ {WINDOW} }}'


def test_a_power_of_one_half_is_no_root_of_minus_infinity() -> None:
    (found,) = Evaluator(model(f"{POWER} {{ y = Pow (x, h) }}")).run(None, {"x": np.array([[-np.inf, 4]], np.float32)})
    np.testing.assert_array_equal(found, [[np.inf, 2]])
    root, power = model(f"{POWER} {{ y = Sqrt (x) }}"), model(f"{POWER} {{ y = Pow (x, h) }}")
    assert verify(root, power).verdict == "different"
    assert verify(power, root).verdict == "different"


def test_elements_of_more_than_32_rows_are_gathered() -> None:
    data = np.arange(80, dtype=np.complex64).reshape(40, 2) * (1 + 2j)
    indices = np.array([[39, 0], [-1, 33]])
    (found,) = Evaluator(model(GATHERED)).run(None, {"x": data, "i": indices})
    np.testing.assert_array_equal(found, np.take_along_axis(data, indices, 0))


@pytest.mark.parametrize(("body", "function"), [(WINDOW, ""), ("y = local.Pool (x)", FUNCTION)])
def test_pads_of_a_window_are_those_before_and_then_those_behind(body: str, function: str) -> None:
    x = np.random.default_rng(1).standard_normal((1, 1, 3, 6)).astype(np.float32)
    (found,) = Evaluator(model(POOLED % body, functions=function)).run(None, {"x": x})
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)), constant_values=-np.inf)
    expected = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), axis=(2, 3)).max(axis=(-1, -2))
    np.testing.assert_array_equal(found, expected)


def _windows(x: np.ndarray, pads: list[int], of_pads: float) -> np.ndarray:
    before, behind = pads[:2], pads[2:]
    padded = np.pad(x, [(0, 0), (0, 0), *zip(before, behind, strict=True)], constant_values=of_pads)
    return np.lib.stride_tricks.sliding_window_view(padded, (2, 3), axis=(2, 3))[:, :, ::2]


@pytest.mark.parametrize("counts", [0, 1])
@pytest.mark.parametrize("pads", [[1, 0, 1, 0], [0, 2, 1, 0], [0, 0, 0, 0]])
def test_means_of_windows(pads: list[int], counts: int) -> None:
    said = f"kernel_shape = [2, 3], strides = [2, 1], pads = {pads}, count_include_pad = {counts}"
    side = model(POOLED % f"y = AveragePool <{said}> (x)")
    x = np.random.default_rng(1).standard_normal((1, 1, 3, 6)).astype(np.float32)
    (found,) = Evaluator(side).run(None, {"x": x})
    expected = np.nanmean(_windows(x.astype(np.float64), pads, 0 if counts else np.nan), axis=(-1, -2))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_norms_of_windows() -> None:
    side = model(POOLED % "y = LpPool <kernel_shape = [2, 3], strides = [2, 1], pads = [0, 2, 1, 0], p = 3> (x)")
    x = np.random.default_rng(1).standard_normal((1, 1, 3, 6)).astype(np.float32)
    (found,) = Evaluator(side).run(None, {"x": x})
    expected = np.cbrt((_windows(np.abs(x).astype(np.float64), [0, 2, 1, 0], 0) ** 3).sum(axis=(-1, -2)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


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


def test_integers_of_64_bits_are_shrunk_exactly() -> None:
    side = model("g (int64[3] x) => (int64[3] y) { y = Shrink <lambd = 1.5, bias = 1.0> (x) }")
    (found,) = Evaluator(side).run(None, {"x": np.array([2**62 + 3, 1, -(2**62) - 5])})
    np.testing.assert_array_equal(found, [2**62 + 2, 0, -(2**62) - 4])


@pytest.mark.parametrize(("opset", "node"), [(13, "ReduceMean <axes = [1], keepdims = 0> (x)"), (18, "ReduceMean (x)")])
def test_a_mean_of_half_precision_does_not_overflow(opset: int, node: str) -> None:
    side = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float16[2, 3] x) => (float16[A] y) {{ y = {node} }}'
    )
    (found,) = Evaluator(side).run(None, {"x": np.full((2, 3), 60000, np.float16)})
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found.ravel(), np.full(found.size, 60000, np.float16))


@pytest.mark.parametrize("pads", [[0, 0, 2, 1], [1, 2, 0, 1]])
def test_between_dilated_weights_lies_nothing(pads: list[int]) -> None:
    said = f"dilations = [2, 1], strides = [1, 2], pads = {pads}, group = 2"
    inputs = "float[N, 4, 5, 6] x, float[6, 2, 2, 3] w, float[6] b"
    side = model(f"g ({inputs}) => (float[A, B, C, D] y) {{ y = Conv <{said}> (x, w, b) }}")
    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 5, 6), (6, 2, 2, 3), (6,)))
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:2], pads[2:], strict=True)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, :, ::2, ::2]
    halves = [np.einsum("nchwij,mcij->nmhw", windows[:, 2 * at : 2 * at + 2], w[3 * at : 3 * at + 3]) for at in (0, 1)]
    (found,) = Evaluator(side).run(None, {"x": x, "w": w, "b": b})
    np.testing.assert_allclose(found, np.concatenate(halves, axis=1) + b[:, None, None], rtol=1e-4, atol=1e-5)
    x[0, 0, 2, 2] = np.inf
    (found,) = Evaluator(side).run(None, {"x": x, "w": w, "b": b})
    assert not np.isnan(found).any()
    assert np.isinf(found).any()


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


@pytest.mark.parametrize("opset", [11, 13])
def test_negative_axes_count_from_the_back_of_what_unsqueeze_gives(opset: int) -> None:
    given = "y = Unsqueeze <axes = [-3, -2]> (x)" if opset < 13 else "y = Unsqueeze (x, a)"
    shapes = "(complex64[3, 5, 1] x) => (complex64[A, B, C, D, E] y)"
    side = model(f"g {shapes} <int64[2] a = {{-3, -2}}> {{ {given} }}", opset)
    (found,) = Evaluator(side).run(None, {"x": np.zeros((3, 5, 1), np.complex64)})
    assert found.shape == (3, 5, 1, 1, 1)


def test_a_crop_wants_a_size_for_each_axis() -> None:
    text = "g (float[A, B, C] x, int64[K] s) => (float[D, E, F] y) { y = CenterCropPad <axes = [2, 0]> (x, s) }"
    evaluator, x = Evaluator(model(text)), np.zeros((3, 4, 5), np.float32)
    (found,) = evaluator.run(None, {"x": x, "s": np.array([2, 6])})
    assert found.shape == (6, 4, 2)
    with pytest.raises(ValueError, match="sizes"):
        evaluator.run(None, {"x": x, "s": np.array([2])})


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


@pytest.mark.parametrize("other", [np.nan, np.inf])
def test_where_no_index_is_the_other_value_stands(other: float) -> None:
    side = model("g (int64[N] i, int64 d, float[2] v) => (float[N, K] y) { y = OneHot (i, d, v) }")
    values = np.array([2.5, other], np.float32)
    (found,) = Evaluator(side).run(None, {"i": np.array([1, -1, 7]), "d": np.int64(3), "v": values})
    expected = np.array([[2.5, other, 2.5], [2.5, 2.5, other], [2.5, 2.5, 2.5]], np.float32)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32


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


def test_places_between_pixels_of_doubles_are_doubles() -> None:
    side = model(
        "g (double[1, 1, 2, 2] x, double[1, 1, 3, 2] p) => (double[1, 1, 1, 3] y) { y = GridSample (x, p) }", 20
    )
    x, at = np.array([[1.0, 2], [3, 5]]), np.array([0.3, -0.4, 1 / 3])
    places = np.stack([at, np.zeros(3)], -1)[None, None]
    (found,) = Evaluator(side).run(None, {"x": x[None, None], "p": places})
    # From -1 to 1 lie two pixels, of which -0.5 and 0.5 are the middles; 0 is halfway between the rows.
    expected = np.interp(at + 0.5, [0, 1], x.mean(axis=0))
    np.testing.assert_allclose(found[0, 0, 0], expected, rtol=1e-15)


DEFORMED = """g (double[1, 2, A, B] x, double[4, 1, 2, 2] w, double[1, 16, C, D] o, double[4] b, double[1, 8, C, D] m)
    => (double[1, 4, C, D] y) { y = DeformConv <group = 2, offset_group = 2, pads = [0, 1, 0, 0]> (x, w, o, b, m) }"""


@pytest.mark.parametrize("moved", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("shape", [(4, 5), (2, 1)])
def test_a_deformed_convolution_is_that_of_moved_pixels(moved: float, shape: tuple[int, int]) -> None:
    """Every place is moved down by the same share of a row, which is a mean of two images."""
    random = np.random.default_rng(1)
    x, w, b = random.normal(size=(2, *shape)), random.normal(size=(4, 1, 2, 2)), random.normal(size=4)
    results = shape[0] - 1, shape[1]
    offset, mask = np.zeros((1, 2, 4, 2, *results)), random.normal(size=(1, 8, *results))
    offset[:, :, :, 0] = moved
    padded = np.pad(x, [(0, 0), (0, 1), (1, 0)])
    below = np.pad(padded, [(0, 0), (0, 1), (0, 0)])[:, 1:]
    windows = np.lib.stride_tricks.sliding_window_view((1 - moved) * padded + moved * below, (2, 2), axis=(1, 2))
    shares = mask.reshape(2, 2, 2, *results)
    read = np.einsum("crsij,cijrs->cijrs", windows[:, : results[0]], shares)
    expected = np.einsum("gijrs,goij->gors", read, w.reshape(2, 2, 2, 2)).reshape(4, *results) + b[:, None, None]
    feeds = {"x": x[None], "w": w, "o": offset.reshape(1, 16, *results), "b": b, "m": mask}
    (found,) = Evaluator(model(DEFORMED, 19)).run(None, feeds)
    np.testing.assert_allclose(found[0], expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_normalizations_hold_half_precision_in_float(dtype: type[np.floating]) -> None:
    """The squares of these numbers are beyond float16."""
    opset, kind = 23, {np.float16: "float16", np.float32: "float", np.float64: "double"}[dtype]
    shapes = f"({kind}[2, 3] x, {kind}[3] w) => ({kind}[2, 3] y, {kind}[2, 3] z)"
    side = model(f"g {shapes} {{ y = LayerNormalization (x, w) z = RMSNormalization <axis = -1> (x, w) }}", opset)
    x, w = np.array([[3e4, -6e4, 100], [1, 2, 4]], dtype), np.array([1, 2, 0.5], dtype)
    found = Evaluator(side).run(None, {"x": x, "w": w})
    wide = x.astype(np.float64)
    for y, shifted in zip(found, (wide - wide.mean(-1, keepdims=True), wide), strict=True):
        expected = shifted / np.sqrt(np.square(shifted).mean(-1, keepdims=True) + float(np.float32(1e-5))) * w
        assert y.dtype == dtype
        np.testing.assert_allclose(y, expected, rtol=4 * float(np.finfo(dtype).eps))


def test_quotients_of_integers_are_rounded_toward_zero_and_remainders_have_the_sign_they_should() -> None:
    x, two = np.array([-3, 3, -4, 5], np.int32), np.array([2, -2, 2, 2], np.int32)
    side = model("g (int32[4] x, int32[4] t) => (int32[4] y, int32[4] z) { y = Div (x, t) z = Mod (x, t) }")
    quotients, remainders = Evaluator(side).run(None, {"x": x, "t": two})
    np.testing.assert_array_equal(quotients, [-1, -1, -2, 2])
    np.testing.assert_array_equal(remainders, [1, -1, 0, 1])
    side = model("g (float[4] x, float[4] t) => (float[4] y) { y = Mod <fmod = 1> (x, t) }")
    (found,) = Evaluator(side).run(None, {"x": np.array([-3, 3, np.nan, 1], np.float32), "t": two.astype(np.float32)})
    np.testing.assert_array_equal(found, [-1, 1, np.nan, 1])


def test_no_indices_gather_nothing_of_the_other_axes() -> None:
    side = model("g (float[2, 3] x, int64[A, B] i) => (float[2, A, B] y) { y = Gather <axis = 1> (x, i) }")
    (found,) = Evaluator(side).run(None, {"x": np.zeros((2, 3), np.float32), "i": np.zeros((4, 0), np.int64)})
    assert found.shape == (2, 4, 0)


def test_exponentials_neither_overflow_nor_lose_small_numbers() -> None:
    nodes = (
        "a = Softplus (x) b = Elu <alpha = 0.5> (x) c = Celu <alpha = 2.0> (x) d = Selu <alpha = 2.0, gamma = 3.0> (x)"
    )
    side = model(f"g (float[4] x) => (float[4] a, float[4] b, float[4] c, float[4] d) {{ {nodes} }}")
    x = np.array([1000, 2, -1e-9, -3], np.float32)
    found = Evaluator(side).run(None, {"x": x})
    wide = x.astype(np.float64)
    below = np.expm1(np.minimum(wide, 0))
    expected = [
        np.logaddexp(0, wide),
        np.where(wide > 0, wide, 0.5 * below),
        np.where(wide > 0, wide, 2 * np.expm1(np.minimum(wide, 0) / 2)),
        3 * np.where(wide > 0, wide, 2 * below),
    ]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_places_of_bytes_are_compared_with_all_of_a_depth() -> None:
    side = model("g (uint8[N] i, int64 d, float[2] v) => (float[K, N] y) { y = OneHot <axis = 0> (i, d, v) }")
    feeds = {"i": np.array([1, 255], np.uint8), "d": np.int64(300), "v": np.array([0, 1], np.float32)}
    (found,) = Evaluator(side).run(None, feeds)
    np.testing.assert_array_equal(np.argwhere(found), [[1, 0], [255, 1]])


SCANNED = (
    "g (float[3] x, float s) => (float t, float[3] y) { k = Neg (s) "
    "t, y = Scan <num_scan_inputs = 1, body = b (float before, float each) => (float after, float given) "
    "{ after = Add (before, each) given = Mul (after, k) }> (s, x) }"
)


def test_a_scan_reads_what_is_around_it_and_gives_a_vector_of_numbers() -> None:
    feeds = {"x": np.array([1, 2, 3], np.float32), "s": np.float32(2)}
    last, numbers = Evaluator(model(SCANNED)).run(None, feeds)
    np.testing.assert_array_equal(last, 8)
    np.testing.assert_array_equal(numbers, [-6, -10, -16])


def test_a_split_of_sizes_that_do_not_make_up_the_axis_fails() -> None:
    cut = Evaluator(model("g (float[5] x, int64[2] s) => (float[a] y, float[b] z) { y, z = Split (x, s) }"))
    x = np.arange(5, dtype=np.float32)
    first, second = cut.run(None, {"x": x, "s": np.array([2, 3])})
    np.testing.assert_array_equal(first, x[:2])
    np.testing.assert_array_equal(second, x[2:])
    with pytest.raises(ValueError, match="do not make up"):
        cut.run(None, {"x": x, "s": np.array([8, 4])})


@pytest.mark.parametrize("opset", [11, 13])
def test_a_split_of_any_version(opset: int) -> None:
    text = "g (float[5, 4] x) => (float[a, b] y, float[c, d] z) { %s }"
    said = "y, z = Split <axis = 1, split = [1, 3]> (x)"
    given = "s = Constant <value_ints = [1, 3]> ()  y, z = Split <axis = 1> (x, s)"
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    first, second = Evaluator(model(text % (said if opset < 13 else given), opset)).run(None, {"x": x})
    np.testing.assert_array_equal(first, x[:, :1])
    np.testing.assert_array_equal(second, x[:, 1:])


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
