"""Right conversions that were once called different, each with what it takes to be told so."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower import Target, convert_version, legalize
from reducelower.numerics.reductions import Reduction, evaluate
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification import verify
from reducelower.verification.feeding.filling import Filling
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.inputs.made import InputSpec
from reducelower.verification.judging.compare import is_of_last_digits, is_slight
from reducelower.verification.judging.judge import judge

from .models import model


def with_defaults() -> ModelProto:
    """A model of IR version 3, where every initializer has to be an input."""
    text = "g (int64[2, 3] x, int64[2] n) => (int64[A, B] y) <int64[2] n = {2, 1}> { y = Tile (x, n) }"
    return model(text, 6, ir_version=3)


def test_a_constant_that_had_to_be_an_input_is_no_input_of_the_region() -> None:
    given = with_defaults()
    found = verify(given, convert_version(given, 13))
    assert found.verdict == "equivalent"


def test_a_value_for_what_is_a_constant_of_the_result_is_left_out() -> None:
    given = with_defaults()
    inputs = {"x": np.arange(6).reshape(2, 3), "n": np.array([1, 3])}
    found = verify(given, convert_version(given, 13), inputs=inputs)
    assert found.verdict == "equivalent"
    assert "'n' is a constant of the converted model, and was left at its value." in found.notes


def test_a_default_that_may_be_overridden_is_still_one() -> None:
    text = "g (float[2] x, float[2] n) => (float[2] y) <float[2] n = {2, 1}> { y = Add (x, n) }"
    frozen = "g (float[2] x) => (float[2] y) <float[2] n = {2, 1}> { y = Add (x, n) }"
    assert verify(model(text), model(frozen)).verdict == "different"


LOOP = (
    "g (float[A, B] x) => (float[2, C] y) <int64 n = {2}, bool go = {1}> { y = Loop (n, go) "
    "<body = b (int64 i, bool c) => (bool d, float[] r) { r = %s <axes = [1], keepdims = 0> (x)  d = Identity (c) }> }"
)
TAKEN = (
    "g (float[N, 3, A] x) => (float[2, 3, 4] y) <int64[2, 3, 4, 1] i = {%s}> { y = GatherND <batch_dims = 2> (x, i) }"
)
SCALED = "g (float[A, B, C] x) => (float[A, 3, C] y) <float[1, 3, 2] w = {1, 2, 3, 4, 5, 6}> { %s }"
DEFORMED = (
    "g (float[1, 4, 4, 5] x, float[4, 2, 1, 1] w, float[1, 4, 4, 5] o, float[4] b, float[1, 2, 4, 5] m) "
    "=> (float[1, 4, 4, 5] y) { a = Abs (m)  "
    "y = DeformConv <group = 2, offset_group = 2, kernel_shape = [1, 1]> (x, w, o, b, %s) }"
)
WAVES = "g (double[1, {0}, 2] x) => (double[1, {0}, 2] y) <double o = {{1.0e-11}}> {{ w = DFT (x)  y = {1} }}"
# Opset version of a model and those that it is converted to, the model, and one that is not the same, if any.
RIGHT: dict[str, tuple[int, tuple[int, ...], str, str]] = {
    "batches of data and indices agree": (
        18, (11,),
        TAKEN % ", ".join(str(at % 3) for at in range(24)),
        TAKEN % ", ".join(str(at % 2) for at in range(24)),
    ),
    # onnxruntime 1.31 stacks the results of a loop in the shape of what it reduces where that has no elements.
    "a shape that no source can have is the runtime's": (16, (10,), LOOP % "ReduceL2", LOOP % "ReduceL1"),
    "sums of all but the largest numbers overflow as the body does": (
        17, (13,),
        "g (float[3, 4, 5] x) => (float[3, 4, 5] y) <float[5] s = {1, 2, 3, 4, 5}> { y = LayerNormalization (x, s) }",
        "",
    ),
    "waves that cancel are off by last places of what is added up": (
        18, (14, 8),
        "g (double[2, 5, 1] x) => (double[2, 5, 2] y) { y = DFT <axis = 1> (x) }",
        "g (double[2, 5, 1] x) => (double[2, 5, 2] y) { t = DFT <axis = 1> (x)  y = Neg (t) }",
    ),
    "waves of a constant are off by last places of it": (
        19, (6,),
        "g () => (float[2, 2, 4, 2] y) <int64 length = {6}, int64 n = {2}, bool on = {1}> "
        "{ x = Constant <value = float[2, 2, 1] {2.375, 2, 0.25, 0.875}> ()  "
        "y = Loop (n, on) <body = b (int64 i, bool c) => (bool d, float[2, 4, 2] w) "
        "{ w = DFT <axis = 1, onesided = 1> (x, length)  d = Identity (c) }> }",
        "",
    ),
    "as many last places come together as a wave adds up": (
        19, (8,), WAVES.format(24, "Identity (w)"), WAVES.format(24, "Add (w, o)"),
    ),
    "as many last places come together as a wave of odd length adds up": (
        19, (8,), WAVES.format(25, "Identity (w)"), WAVES.format(25, "Add (w, o)"),
    ),
    "an einsum inside a loop has one size for a letter": (
        16, (10,),
        "g (float[K] a, float[N, K] b) => (float[3, N] y) <int64 n = {3}, bool go = {1}> { y = Loop (n, go) <body = "
        'l (int64 i, bool c) => (bool d, float[M] r) { r = Einsum <equation = "k,nk->n"> (a, b)  d = Identity (c) }> }',
        "",
    ),
    "an operand of einsum has the size that another has for a letter": (
        16, (9,),
        SCALED % 'y = Einsum <equation = "...ij,...jk->...ik"> (w, x)',
        SCALED % "v = Abs (w)  n = Neg (v)  y = MatMul (n, x)",
    ),
    # onnxruntime's Gather copies one string of each run.
    "strings that a kernel leaves empty are no fault of the conversion": (
        18, (8,),
        "g (string[4, A, B] x, int64[4, 1] i) => (string[4, B] y) { y = GatherND <batch_dims = 1> (x, i) }",
        "",
    ),
    # Beside an operator whose body depends on types that the body of another does not tell.
    "what a region always gives is compared where it stands alone": (
        21, (14,),
        "g (float[3, 5] x, int64[3] t, float[1, 2, 3] h) => (float[5] y, float z, float[1, 2, 2, 2] w) "
        "<int64 n = {5}, int64[4] s = {1, 1, 2, 2}> "
        "{ y = BlackmanWindow (n)  z = NegativeLogLikelihoodLoss (x, t)  w = AffineGrid (h, s) }",
        "",
    ),
    "a coordinate beside infinities gives what its page leaves open": (19, (15,), DEFORMED % "m", DEFORMED % "a"),
}  # fmt: skip


@pytest.mark.parametrize("claim", RIGHT)
def test_a_right_conversion_is_equivalent_and_another_model_is_not(claim: str) -> None:
    opset, goals, text, other = RIGHT[claim]
    given = model(text, opset)
    for goal in goals:
        assert verify(given, convert_version(given, goal)).verdict == "equivalent"
    assert not other or verify(given, model(other, opset)).verdict == "different"


@pytest.mark.parametrize("opset", [17, 23])
@pytest.mark.parametrize("op_type", ["BlackmanWindow", "HannWindow"])
def test_what_a_body_cancels_inside_is_rounding(op_type: str, opset: int) -> None:
    given = model(f"g () => (float[7] y) <int64 n = {{7}}> {{ y = {op_type} (n) }}", opset)
    assert verify(given, convert_version(given, 14)).verdict == "equivalent"


def test_more_than_a_body_cancels_is_no_rounding() -> None:
    given = model("g () => (float[7] y) <int64 n = {7}> { y = BlackmanWindow (n) }", 17)
    text = "g () => (float[7] y) <int64 n = {7}, float e = {0.00001}> { w = BlackmanWindow (n)  y = Sub (w, e) }"
    assert verify(given, model(text, 17)).verdict == "different"


def test_a_scale_that_is_an_input_is_never_zero() -> None:
    text = "g (float[N, 4] x, float s, uint8 z) => (uint8[N, 4] y) { y = QuantizeLinear (x, s, z) }"
    given = model(text, 13)
    found = verify(given, convert_version(given, 9))
    assert found.verdict == "equivalent"
    assert any("never fed zero" in note for site in found.sites for note in site.notes)


@pytest.mark.opset(23)
def test_the_runtime_is_named_where_the_evaluator_sides_with_the_result() -> None:
    """onnxruntime gives 0 where the lowest number masks a whole row; the specification takes the mean of the values."""
    text = "g (float[1,2,4,8] q, float[1,2,4,8] k, float[1,2,4,8] v, float[4,4] m) => (float[1,2,4,8] y{})"
    given = model(f"{text.format(', float[1,2,4,8] z')} {{ y = Attention (q, k, v, m)  z = Relu (q) }}", 23)
    mask = np.zeros((4, 4), np.float32)
    mask[1] = np.finfo(np.float32).min
    made = legalize(given, Target(13))
    found = verify(given, made.model, plan=made.plan, inputs={"m": mask})
    assert (found.verdict, found.departs) == ("equivalent", ("y",))
    (said,) = found.departed
    assert "output 'y' of the source" in said and "onnx.reference agrees with the converted model" in said
    assert "(no difference)" in str(found)  # of z, on which both agree
    alone = model(f"{text.format('')} {{ y = Attention (q, k, v, m) }}", 23)
    made = legalize(alone, Target(13))
    found = verify(alone, made.model, plan=made.plan, inputs={"m": mask})
    assert "equal by the specification on" in str(found)
    assert "no difference" not in str(found)


def test_a_kernel_that_fails_where_the_reference_does_not_departs() -> None:
    text = "g (float[N, 2] x) => (float[A, 2] y) { y = Split <axis = 0> (x) }"
    given = model(text, 11)
    found = verify(given, convert_version(given, 18))
    assert found.verdict == "equivalent"
    # onnxruntime 1.31 refuses an odd number of rows before opset 13; 1.32 takes it.
    assert {site.status for site in found.sites} <= {"departs", "equal"}


def test_two_runtimes_draw_numbers_of_their_own() -> None:
    given = model("g () => (float[4] y) { y = RandomNormal <shape = [4], seed = 1.0> () }", 22)
    found = verify(given, convert_version(given, 20))
    assert (found.verdict, found.ran) == ("not shown", False)


CUBIC = (
    "g (float[1, 2, 5, 4] x) => (float[1, 2, 7, 6] y) <float[4] s = {1, 1, 1.5, 1.5}> { y = Resize "
    '<mode = "cubic", coordinate_transformation_mode = "pytorch_half_pixel", cubic_coeff_a = %s> (x, , s) }'
)


def test_what_is_taken_between_places_may_be_off_by_last_places_of_any_value() -> None:
    given = model(CUBIC % "-0.75", 18)
    assert verify(given, convert_version(given, 9)).verdict == "equivalent"
    assert verify(given, convert_version(model(CUBIC % "-0.749", 18), 9)).verdict == "different"


def test_what_the_reference_evaluator_alone_runs_and_gets_wrong_is_no_difference() -> None:
    """The last window is half filled: its sum is of one number, which onnx's own evaluator counts twice."""
    node = "LpPool <kernel_shape = [1, 2, 2], strides = [2, 3, 2], p = 1, ceil_mode = 1>"
    given = model(f"g (bfloat16[2, 2, 4, 2, 5] x) => (bfloat16[2, 2, 2, 1, 3] y) {{ y = {node} (x) }}", 24)
    assert verify(given, convert_version(given, 18)).verdict == "not shown"


def test_numbers_that_a_function_draws_are_not_compared() -> None:
    body = 'opset_import: ["": %d], domain: "local"> f (a) => (b) { b = RandomNormalLike <seed = 1.0> (a) }'
    text = "g (float[4] x) => (float[4] y) { y = local.f (x) }"
    before, after = (model(text, opset, functions=f"<{body % opset}") for opset in (22, 20))
    found = verify(before, after)
    assert (found.verdict, found.ran) == ("not shown", False)


@pytest.mark.parametrize("are_apart", [False, True])
def test_integers_that_overflow_are_fed_within_one_runtime(are_apart: bool) -> None:
    spec = InputSpec("x", TensorProto.INT64, (100,))
    filling = Filling(spec, Limits(are_apart=are_apart))
    largest = max(np.abs(filling.values(kind, (100,), (1,)).astype(np.float64)).max() for kind in filling.kinds)
    assert (largest > 2**62) is not are_apart


def test_an_input_of_unknown_rank_is_tried_at_that_of_the_others() -> None:
    given = model("g (float[2, 3, 4] x, float w) => (float[A, B, C] y) { k = Exp (w)  y = Mul (x, k) }")
    given.graph.input[1].type.tensor_type.ClearField("shape")
    other = ModelProto.FromString(given.SerializeToString())
    other.graph.node[1].CopyFrom(helper.make_node("Div", ["x", "k"], ["y"]))
    found = verify(given, other)
    assert found.verdict == "different"


def test_what_is_all_but_out_of_range_beside_infinities_is_no_loss() -> None:
    largest = float(np.finfo(np.float32).max)
    before = np.array([largest / 2, np.inf, 1.0], np.float32)
    after = np.array([np.inf, np.inf, 1.0], np.float32)
    assert judge(before, after, None, Tolerance(64, 1e-5)).status == "overflow"
    alone = judge(before[[0, 2]], after[[0, 2]], None, Tolerance(64, 1e-5))
    assert alone.status == "loses range"
    far = np.array([1e30, np.inf, 1.0], np.float32)
    assert judge(far, after, None, Tolerance(64, 1e-5)).status == "loses range"


@pytest.mark.parametrize(("error", "slight"), [(1e-8, True), (1e-3, False)])
def test_two_runtimes_may_differ_in_single_precision(error: float, slight: bool) -> None:
    values = np.linspace(-1, 1, 9)
    assert is_slight(values, values + error) is slight


@pytest.mark.parametrize(
    ("kind", "digits", "last"),
    [
        (np.float32, 4, True),
        (np.float32, 64, False),
        (np.float64, 4, True),
        (np.float64, 2.0**29, False),  # the last digit of single precision
        (np.float16, 4, False),
    ],
)
def test_a_few_sums_lose_last_digits_of_the_type_itself(kind: type, digits: float, last: bool) -> None:
    values = np.linspace(-1, 1, 9).astype(kind)
    assert is_of_last_digits(values, values + kind(digits * np.finfo(kind).eps)) is last


def test_what_is_done_with_drawn_numbers_is_not_called_equivalent() -> None:
    text = "g (float[4] x) => (float[4] y) { r = RandomUniformLike (x)  y = Add (x, r) }"
    found = verify(model(text), model(text.replace("Add (x, r)", "Sub (x, r)")))
    # Which of the two it is depends on what is drawn.
    assert found.verdict in {"not shown", "different"}


RESHAPED = "g (float[2, 4, 2] x, int64[R] s) => (float[2, 4, 2] y) { r = Reshape (x, s)  y = Concat <axis = %d> (r) }"


def test_a_value_of_unknown_rank_has_one_that_gives_what_the_model_states() -> None:
    assert verify(model(RESHAPED % -1, 16), model(RESHAPED % 2, 16)).verdict != "different"
    other = RESHAPED.replace("Concat", "Softmax")
    assert verify(model(other % -1, 16), model(other % 1, 16)).verdict == "different"


def test_what_overflows_on_ordinary_values_loses_range_even_as_the_body_does() -> None:
    text = "g (float[N, 4] x) => (float[N, 4] y) <float o = {1}> { %s }"
    body = model(text % "e = Exp (x)  p = Add (e, o)  y = Log (p)")
    assert verify(model(text % "y = Softplus (x)"), body).verdict == "different"


def test_what_a_body_cancels_inside_is_rounding_beside_a_function_too() -> None:
    body = '<opset_import: ["": 18], domain: "local"> f (a) => (b) { b = ReduceL2 (a) }'
    text = (
        "g (float[4] x) => (float[1] y, float[3] w) <int64 n = {3}> "
        "{ y = local.f (x)  w = BlackmanWindow <periodic = 0> (n) }"
    )
    given = model(text, 18, functions=body)
    assert verify(given, convert_version(given, 16)).verdict == "equivalent"


def test_sums_of_integers_beyond_what_a_double_holds_may_be_off() -> None:
    data = np.full((1, 5), 2**28 + 1, np.int64) * np.arange(1, 6)
    truth = evaluate(Reduction("ReduceSumSquare", (1,), True, False), data)
    exact = (data.astype(object) ** 2).sum()
    near = np.array([[float(exact)]]).astype(np.int64)
    assert truth.is_near(near).all()
    assert not truth.is_near(near + near // 10**9).any()
    largest = evaluate(Reduction("ReduceMax", (1,), True, False), data)
    assert not largest.is_near(data.max(axis=1, keepdims=True) - 1).any()


def test_a_negative_padding_that_no_page_defines_is_no_difference() -> None:
    """A window of one at every third place leaves less than nothing to pad, which onnxruntime has one kernel for."""
    node = 'AveragePool <kernel_shape = [1, 1], strides = [3, 1], auto_pad = "SAME_UPPER", ceil_mode = 1>'
    given = model(f"g (float[1, 3, 2, 2] x) => (float[1, 3, 1, 2] y) {{ y = {node} (x) }}", 18)
    assert verify(given, convert_version(given, 7)).verdict != "different"


def test_indices_and_updates_that_do_not_agree_are_not_fed() -> None:
    node = 'ScatterElements <axis = 1, reduction = "%s"> (x, i, u)'
    text = "g (float[2, 5] x, int64[A, B] i, float[2, 4] u) => (float[2, 5] y) { y = %s }"
    given = model(text % node % "add", 16)
    found = verify(given, convert_version(given, 13))
    assert [site.status for site in found.sites] == ["equal"]
    assert verify(given, model(text % node % "mul", 16)).verdict == "different"


def test_the_scale_of_a_quantizer_in_a_function_is_never_zero() -> None:
    text = "g (float[4] x, float[1] s) => (int8[4] y) { q = local.f (x, s)  y = Identity (q) }"
    body = '<opset_import: ["": %d], domain: "local"> f (a, b) => (c) { z = Constant <value = int8 {3}> ()  %s }'
    scaled = "s = Squeeze (b)  c = QuantizeLinear (a, s, z)"
    other = "s = ReduceSum <keepdims = 0> (b)  c = QuantizeLinear (a, s, z)"
    found = verify(model(text, 13, functions=body % (13, scaled)), model(text, 13, functions=body % (13, other)))
    assert found.verdict == "equivalent"


def test_strings_that_are_taken_from_another_place_differ() -> None:
    text = "g (string[4, 3] x, int64[4, 1] i) => (string[4, 1] y) {{ y = GatherElements <axis = {}> (x, i) }}"
    assert verify(model(text.format(1)), model(text.format(0))).verdict == "different"


def test_sums_of_the_largest_numbers_of_both_signs_are_infinite_or_no_number() -> None:
    """In some orders both signs overflow on the way, also where their sum is out of range itself."""
    data = np.array([[3e38, 3e38, 3e38, 3e38, -3e38, -3e38, 0]], np.float32)
    truth = evaluate(Reduction("ReduceSum", (1,), False, False), data)
    assert truth.order.all()
    assert not evaluate(Reduction("ReduceSum", (1,), False, False), data[:, :5]).order.any()
    given = np.array([np.inf, np.nan], np.float32)
    assert judge(given[:1], given[1:], truth, Tolerance()).status == "overflow"


def test_sizes_that_the_model_names_and_inference_knows_are_known() -> None:
    text = (
        "g (float[3, 2, A] x) => (float[B, C, D] y) <float[1, 1, 1] k = {2}, float[M, N, K] q> "
        "{ r = ReduceMin (x)  q = Div (k, r)  y = LogSoftmax <axis = 0> (q) }"
    )
    plain = text.replace("LogSoftmax <axis = 0> (q)", "LogSoftmax <axis = 1> (q)")
    assert verify(model(text, 11), model(plain, 11)).verdict == "equivalent"


def test_digits_that_a_formula_loses_are_its_own() -> None:
    text = (
        "g (float[2, 3, 5, 5] x) => (float[2, 3, 5, 5] y) <float[3] s = {{1, 1, 1}}, float[3] b = {{0, 0, 0}}, "
        "int64[2] a = {{2, 3}}, float e = {{0.00001}}> {{ {} }}"
    )
    squares = (
        "w = ReduceMean (x, a)  q = Mul (x, x)  m = ReduceMean (q, a)  n = Mul (w, w)  v = Sub (m, n)  g = Add (v, e)  "
        "r = Sqrt (g)  d = Sub (x, w)  y = Div (d, r)"
    )
    source = model(text.format("y = InstanceNormalization (x, s, b)"), 21)
    assert verify(source, model(text.format(squares), 21)).verdict == "different"


@pytest.mark.parametrize(("place", "verdict"), [(-2, "equivalent"), (-1, "different"), (2, "different")])
def test_a_sequence_has_as_many_elements_as_it_is_made_of(place: int, verdict: str) -> None:
    text = (
        "g (float[3] x, float[3] z, float[3] w) => (float[3] y) <int64 k = {{{}}}> "
        "{{ q = SequenceConstruct (x, z, w)  y = SequenceAt (q, k) }}"
    )
    assert verify(model(text.format(1)), model(text.format(place))).verdict == verdict


def test_numbers_that_casts_have_no_integer_for_are_finite_where_infinities_are_not_fed() -> None:
    spec = InputSpec("x", TensorProto.FLOAT16, ("N",))
    filling = Filling(spec, Limits(cast_to={TensorProto.INT64}, open_to_special="GridSample"))
    assert np.isfinite(filling.values("over int64", (50,), (1,))).all()


@pytest.mark.opset(28)
def test_what_is_infinite_where_the_source_has_no_number_is_right_as_its_region_is() -> None:
    """The body of ReduceLogSumExp 28, which onnxruntime runs, takes infinity from infinity."""
    text = "g (float[2, 3] x) => (float[2, 1] y) { y = ReduceLogSumExp (x, axes) }"
    older = "g (float[2, 3] x) => (float[2, 1] y) { y = ReduceLogSumExp <axes = [1]> (x) }"
    axes = "<int64[1] axes = {1}>"
    feeds = {"x": np.array([[1, np.inf, 2], [0, 1, 2]], np.float32)}
    sides = model(text.replace("{", f"{axes} {{", 1), 28), model(older, 13)
    assert verify(*sides, inputs=feeds).verdict == "equivalent"
    other = model(older.replace("y = ", "z = ").replace("}", "y = Neg (z) }"), 13)
    assert verify(sides[0], other, inputs=feeds).verdict == "different"


def test_what_a_page_leaves_open_of_a_nan_that_is_given_is_not_shown() -> None:
    text = "g (float[2, 1, 2] x) => (float[2, 1, 1] y) {{ y = {} (x) }}"
    source = model(text.format('MaxPool <kernel_shape = [2], auto_pad = "VALID">'), 13)
    feeds = {"x": np.array([[[np.nan, 1]], [[2, 3]]], np.float32)}
    found = verify(source, model(text.format("ReduceMax <axes = [2]>"), 13), inputs=feeds)
    assert found.verdict == "not shown"
    assert "MaxPool" in found.unseen[0]
    assert verify(source, model(text.format("ReduceMin <axes = [2]>"), 13), inputs=feeds).verdict == "different"


def test_waves_that_cancel_out_are_no_difference_in_the_whole_either() -> None:
    head = "g (float[1, 64, 1] x) => (float[A, B, C, D] y)"
    numbers = "int64 step = {4}, int64 length = {16}"
    before = model(f"{head} <{numbers}> {{ d = STFT <onesided = 1> (x, step, , length) y = Neg (d) }}")
    after = convert_version(before, 15)
    time = np.arange(64, dtype=np.float32)
    found = verify(before, after, inputs={"x": (100 * np.cos(time * np.pi / 4)).reshape(1, 64, 1)})
    assert found.verdict == "equivalent", str(found)
    shorter = convert_version(before, 15)
    for tensor in shorter.graph.initializer:
        if tensor.data_type == tensor.FLOAT:
            values = numpy_helper.to_array(tensor) * np.float32(1 + 1e-5)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    assert verify(before, shorter).verdict == "different"


def test_sums_of_wrapped_squares_are_off_by_what_a_double_loses() -> None:
    """onnxruntime adds integers up in double, also those that wrapped around."""
    data = np.array(562449413000000003, np.int64)
    truth = evaluate(Reduction("ReduceSumSquare", None, True, False), data)
    wrapped = (562449413000000003**2 + 2**63) % 2**64 - 2**63
    assert truth.is_as_specified(np.array(float(wrapped)).astype(np.int64))
    assert not truth.is_as_specified(np.array(wrapped + abs(wrapped) // 10**9))


def test_an_optional_value_that_the_reference_makes_a_sequence_is_no_difference() -> None:
    given = model("g (float[2] x) => (optional(float[2]) y) { y = Optional (x) }", 20)
    assert verify(given, convert_version(given, 28)).verdict != "different"


def test_digits_that_both_kernels_lose_are_lost_at_other_elements() -> None:
    """Two values of about one size cancel in the variance, in the body of the operator as in an older kernel."""
    ones, zeros = (", ".join([number] * 32) for number in "10")
    constants = f"<float[32] s = {{{ones}}}, float[32] b = {{{zeros}}}>"
    node = "GroupNormalization <num_groups = 32> (%s, s, b)"
    text = f"g (float[n, 32, l] x) => (float[n, 32, l] y) {constants} {{ %s }}"
    given = model(text % f"y = {node % 'x'}", 23)
    for opset in (9, 13):
        made = legalize(given, Target(opset))
        assert verify(given, made.model, plan=made.plan).verdict == "equivalent"
    other = model(text % f"a = Abs (x)  y = {node % 'a'}", 23)
    assert verify(given, other).verdict == "different"


def test_sizes_that_contradict_what_the_model_states_are_no_failure_of_the_replacement() -> None:
    text = "g (float[1, 0, 3] x, int64[S] s) => (float[1, 0, 3] y) { r = Reshape (x, s)  y = Softmax <axis = 0> (r) }"
    given = model(text, 11)
    inputs = {"x": np.zeros((1, 0, 3), np.float32), "s": np.array([1, 0, 3])}
    assert verify(given, convert_version(given, 13), inputs=inputs).verdict != "different"
