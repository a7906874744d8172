"""NaN and floats beyond the range of integers are compared unless both sides leave open what comes of them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from reducelower.verification import verify
from reducelower.verification.judging.casts import Casts

from .models import model

FLOATS = "g (float[N, 4] x) => (float[N, 4] y) <float z = {0}, float low = {-100}, float high = {100}> {"
WHOLE = "f = Floor (x)"
NARROW = "v = Where (w, z, x)  c = Clip (v, low, high)  i = Cast <to = %d> (c)  y = Cast <to = 1> (i) }}"


def _through(element_type: int) -> str:
    return f"{FLOATS} {WHOLE}  i = Cast <to = {element_type}> (f)  y = Cast <to = 1> (i) }}"


@pytest.mark.parametrize("element_type", [TensorProto.INT32, TensorProto.INT64])
@pytest.mark.parametrize("is_source", [True, False])
def test_whole_numbers_brought_to_integers_and_back_differ_of_nan(element_type: int, is_source: bool) -> None:
    sides = [model(_through(element_type)), model(f"{FLOATS} {WHOLE}  y = Identity (f) }}")]
    assert verify(*(sides if is_source else sides[::-1])).verdict == "different"


@pytest.mark.parametrize(
    ("one", "other"),
    [(TensorProto.INT64, TensorProto.INT32), (TensorProto.INT8, TensorProto.UINT8), (TensorProto.INT8, 6)],
)
def test_integers_of_two_ranges_differ_where_one_of_them_ends(one: int, other: int) -> None:
    assert verify(model(_through(one)), model(_through(other))).verdict == "different"
    assert verify(model(_through(other)), model(_through(one))).verdict == "different"


def test_nan_is_not_compared_where_both_sides_cast_it() -> None:
    body = "s = Sign (x)  a = Abs (x)  b = Floor (a)  f = Mul (s, b)  i = Cast <to = 6> (f)  y = Cast <to = 1> (i) }"
    found = verify(model(f"{FLOATS} i = Cast <to = 6> (x)  y = Cast <to = 1> (i) }}"), model(f"{FLOATS} {body}"))
    assert found.verdict == "equivalent"
    assert any("where both sides cast them" in note for note in found.sites[0].notes)


def test_nan_that_a_guard_keeps_from_a_cast_is_compared() -> None:
    guarded = f"{FLOATS} w = IsNaN (x)  {NARROW}".replace("}}", "}")
    bare = f"{FLOATS} w = Equal (x, z)  {NARROW}".replace("}}", "}")
    assert verify(model(guarded % TensorProto.INT8), model(guarded % TensorProto.INT32)).verdict == "not shown"
    assert verify(model(guarded % TensorProto.INT8), model(bare % TensorProto.INT32)).verdict == "different"


@pytest.mark.parametrize(
    ("values", "is_open"),
    [([127.9, -128.9], False), ([128.0], True), ([-129.0], True), ([np.nan], True), ([np.inf], True), ([], False)],
)
def test_what_no_integer_stands_for_is_open(values: list[float], is_open: bool) -> None:
    casts = Casts(model("g (float[N] x) => (int8[N] y) { y = Cast <to = 3> (x) }"), "onnxruntime")
    assert casts.leave_open({"x": np.array(values, np.float32)}) == is_open


def test_the_largest_integers_are_told_from_the_next_float() -> None:
    casts = Casts(model("g (double[N] x) => (int64[N] y) { y = Cast <to = 7> (x) }"), "onnxruntime")
    assert not casts.leave_open({"x": np.array([-(2.0**63), 2.0**63 - 1024])})
    assert casts.leave_open({"x": np.array([2.0**63])})


@pytest.mark.parametrize("element_type", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_what_saturates_differs_from_what_does_not(element_type: int) -> None:
    text = "g (float[N, 4] x) => (float[N, 4] y) { h = Cast <to = %d, saturate = %d> (x)  y = Cast <to = 1> (h) }"
    assert verify(*(model(text % (element_type, saturates), 19) for saturates in (0, 1))).verdict == "different"


@pytest.mark.parametrize(
    ("base", "exponent", "is_open"),
    [([-46340, 2], [2, 30], False), ([46341], [2], True), ([-2], [31], False), ([2], [31], True), ([0], [-1], True)],
)
def test_a_power_beyond_the_range_of_its_integers_is_open(base: list[int], exponent: list[int], is_open: bool) -> None:
    """What it should be is math: 46340 is the largest number whose square is below 2 ** 31."""
    casts = Casts(model("g (int32[N] x, int32[N] e) => (int32[N] y) { y = Pow (x, e) }"), "onnxruntime")
    assert casts.leave_open({"x": np.array(base, np.int32), "e": np.array(exponent, np.int32)}) == is_open


def test_powers_of_integers_are_compared_within_their_range() -> None:
    power = "g (int32[N] x) => (int32[N] y) <int32 e = {%d}> {"
    through = "d = Cast <to = 11> (x)  p = Pow (d, e)  y = Cast <to = 6> (p) }"
    assert verify(model(power % 5 + "y = Pow (x, e) }"), model(power % 5 + through)).verdict == "equivalent"
    assert verify(model(power % 5 + "y = Pow (x, e) }"), model(power % 4 + through)).verdict == "different"


def test_powers_of_floats_are_no_integers() -> None:
    """Whether they stand in the model or in a graph inside, nothing is left open of them."""
    alone = model("g (float[N] x, float[N] e) => (float[N] y) { y = Pow (x, e) }")
    inside = model(
        "g (bool c, int32[N] x) => (int32[N] y) { y = If (c) "
        "<then_branch = t () => (int32[N] a) { a = Pow (x, x) }, else_branch = f () => (int32[N] b) { b = Abs (x) }> }"
    )
    for side in (alone, inside):
        casts = Casts(side, "onnxruntime")
        assert not casts.has_powers
        assert not casts.leave_open({"x": np.array([1e30], np.float32), "e": np.array([2], np.float32)})
