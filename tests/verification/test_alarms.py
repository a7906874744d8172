"""Right conversions that were once called different, each with what it takes to be told so."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from reducelower import Target, convert_version, legalize
from reducelower.numerics.truth import Specimen
from reducelower.verification import verify
from reducelower.verification.feeding.filling import Filling
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.inputs.declared import InputSpec
from reducelower.verification.judging.exact import bounds
from tests.models import model


@pytest.mark.opset(23)
def test_the_runtime_is_named_where_the_evaluator_sides_with_the_result() -> None:
    """onnxruntime gives 0 where the lowest number masks a whole row; the specification takes the mean of the values."""
    text = "g (float[1,2,4,8] q, float[1,2,4,8] k, float[1,2,4,8] v, float[4,4] m) => (float[1,2,4,8] y{})"
    given = model(f"{text.format(', float[1,2,4,8] z')} {{ y = Attention (q, k, v, m)  z = Relu (q) }}", 23)
    mask = np.zeros((4, 4), np.float32)
    mask[1] = np.finfo(np.float32).min
    made = legalize(given, Target(13))
    found = verify(given, made.model, plan=made.plan, inputs={"m": mask})
    assert found.verdict == "equivalent"
    assert [output.name for output in found.outputs if output.verdict == "departs"] == ["y"]
    (said,) = found.departs
    assert "output 'y' of the source" in said and "most at Attention 'Attention#0'" in said
    assert "onnx.reference agrees with the converted model" in said
    assert "(no difference)" in str(found)  # of z, on which both agree
    assert found.first is None  # what is explained is no difference
    alone = model(f"{text.format('')} {{ y = Attention (q, k, v, m) }}", 23)
    made = legalize(alone, Target(13))
    found = verify(alone, made.model, plan=made.plan, inputs={"m": mask})
    assert "equal by the specification on" in str(found)
    assert "no difference" not in str(found)


def test_what_is_done_with_drawn_numbers_is_not_called_equivalent() -> None:
    text = "g (float[4] x) => (float[4] y) { r = RandomUniformLike (x)  y = Add (x, r) }"
    found = verify(model(text), model(text.replace("Add (x, r)", "Sub (x, r)")))
    # Which of the two it is depends on what is drawn.
    assert found.verdict in {"not shown", "different"}


def _is_right(op_type: str, data: np.ndarray, result: np.ndarray) -> bool:
    low, high, takes_nan = bounds(op_type, Specimen(data, (1,), False), result, np.ones(result.shape, np.bool_))
    return bool((((low <= result) & (result <= high)) | (takes_nan & np.isnan(result))).all())


def test_sums_of_integers_beyond_what_a_double_holds_may_be_off() -> None:
    data = np.full((1, 5), 2**28 + 1, np.int64) * np.arange(1, 6)
    exact = np.array([(data.astype(object) ** 2).sum()], np.int64)
    in_double = np.array([float(exact[0])]).astype(np.int64)
    assert in_double != exact
    assert _is_right("ReduceSumSquare", data, in_double)
    assert not _is_right("ReduceSumSquare", data, in_double + in_double // 10**9)
    assert not _is_right("ReduceMax", data, data.max(axis=1) - 1)


def test_sums_of_the_largest_numbers_of_both_signs_are_infinite_or_no_number() -> None:
    """In some orders both signs overflow on the way, also where their sum is out of range itself."""
    data = np.array([[3e38, 3e38, 3e38, 3e38, -3e38, -3e38, 0]], np.float32)
    nothing = np.array([np.nan], np.float32)
    assert _is_right("ReduceSum", data, nothing)
    assert not _is_right("ReduceSum", data[:, :4], nothing)


def test_numbers_that_casts_have_no_integer_for_are_finite_where_infinities_are_not_fed() -> None:
    spec = InputSpec("x", TensorProto.FLOAT16, ("N",))
    filling = Filling(spec, Limits(cast_to={TensorProto.INT64}, open_to_special="GridSample"))
    assert np.isfinite(filling.values("over int64", (50,), np.random.default_rng(1))).all()


def test_waves_that_cancel_out_are_no_difference_in_the_whole_either() -> None:
    head = "g (float[1, 64, 1] x) => (float[A, B, C, D] y)"
    numbers = "int64 step = {4}, int64 length = {16}"
    before = model(f"{head} <{numbers}> {{ d = STFT <onesided = 1> (x, step, , length) y = Neg (d) }}")
    after = convert_version(before, 15)
    time = np.arange(64, dtype=np.float32)
    found = verify(before, after, inputs={"x": (100 * np.cos(time * np.pi / 4)).reshape(1, 64, 1)})
    assert found.verdict == "equivalent" and "finite" not in found.why, str(found)
    shorter = convert_version(before, 15)
    for tensor in shorter.graph.initializer:
        if tensor.data_type == tensor.FLOAT:
            values = numpy_helper.to_array(tensor) * np.float32(1 + 1e-5)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    assert verify(before, shorter).verdict == "different"


def test_finite_values_are_spoken_of_where_some_are_not() -> None:
    source = model("g (float[1, 3] x) => (float[1, 1] y) <int64[1] a = {1}> { y = ReduceLogSumExp (x, a) }")
    made = legalize(source, Target(18, without={"ReduceLogSumExp"}), rules="spec")
    found = verify(source, made.model, plan=made.plan, inputs={"x": np.full((1, 3), 800, np.float32)})
    assert found.equivalent and "where both are finite" in found.why


def test_a_sum_of_squares_beyond_the_range_may_be_cut_or_wrap() -> None:
    """Three squares of 2**62 - 2**33 or so are beyond int64; one is not, and has one result."""
    root = 2**31 - 2
    ends = np.iinfo(np.int64)
    for result in (ends.min, ends.max):
        given = np.array([result], np.int64)
        assert _is_right("ReduceSumSquare", np.full((1, 3), root), given)
        assert not _is_right("ReduceSumSquare", np.array([[root, 0, 0]]), given)


def test_the_body_of_an_operator_loses_digits_below_the_version_that_brought_it_too() -> None:
    """The body of ReduceL2 (18) adds up doubles in single precision."""
    source = model("g (double[2, 3] x) => (double[2, 1] y) { y = ReduceL2 <axes = [1]> (x) }", 11)
    made = legalize(source, Target(11, without={"ReduceL2"}), rules="spec")
    found = verify(source, made.model, plan=made.plan)
    assert found.equivalent and found.losing, str(found)
