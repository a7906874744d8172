"""NaN and floats beyond the range of integers are compared unless both sides leave open what comes of them."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.verification import verify
from reducelower.verification.judging.casts import Casts

from .models import model


def test_nan_is_not_compared_where_both_sides_cast_it() -> None:
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ {}  y = Cast <to = 1> (i) }}"
    body = "s = Sign (x)  a = Abs (x)  b = Floor (a)  f = Mul (s, b)  i = Cast <to = 6> (f)"
    found = verify(model(text.format("i = Cast <to = 6> (x)")), model(text.format(body)))
    assert found.verdict == "equivalent"
    assert any("where both sides cast them" in note for note in found.sites[0].notes)


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
