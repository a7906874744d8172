"""Rounding explains no difference where neither side rounds, and the range of floats none where neither overflows."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.verification.judging.conditioning import Exactness
from reducelower.verification.judging.witness import Differing, Witness
from tests.models import model


@pytest.mark.parametrize(("value", "is_exact"), [(0.5, True), (3.0, True), (0.1, False), (1e-9, False)])
def test_what_is_added_is_exact_or_not(value: float, is_exact: bool) -> None:
    side = model("g (float[N] x) => (float[N] y) <float h = {0.5}> { y = Add (x, h) }")
    exactness = Exactness(side, side)
    assert exactness.holds({"x": np.array([value], np.float32)}) == is_exact


@pytest.mark.parametrize(
    ("after", "is_alone"),
    [([1e38, 2e37], True), ([np.inf, 5e36], False), ([1e38, 5e36], False)],
    ids=["one side overflows", "the other number is wrong", "both"],
)
def test_only_what_overflows_is_the_range_of_floats(after: list[float], *, is_alone: bool) -> None:
    """The source overflows at the first number; at the second, both sides are finite."""
    side = model("g (float[2] x) => (float[2] y) <float two = {2}> { y = Mul (x, two) }")
    feeds, before, found = {"x": np.float32([3e38, 1e37])}, np.float32([np.inf, 2e37]), np.float32(after)
    differs = before != found
    witness = Witness(side, side, "onnxruntime", "onnxruntime")
    said = witness.overflow_alone(Differing(feeds, before, found, 0, differs), differs)
    assert said == ("1 values overflow on one side alone" if is_alone else "")
