"""Ties: where neither side rounds anything, rounding explains no difference."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.verification import verify
from reducelower.verification.judging.conditioning import Exactness

from .models import model

QUANTIZED = (
    "g (float[N, 4] x) => (uint8[N, 4] y) <float s = {%r}, float r = {%r}, uint8 z = {10}, float t = {10}, "
    "float h = {0.5}, float low = {0}, float high = {255}> { %s }"
)
SOURCE = "y = QuantizeLinear (x, s, z)"
WRITTEN = "d = %s  n = %s  p = Add (n, t)  c = Clip (p, low, high)  y = Cast <to = 2> (c)"
AWAY = "Div (x, s)  e = Add (d, h)", "Floor (e)"


def _side(scale: float, body: str) -> str:
    return QUANTIZED % (scale, 1 / scale, body)


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 2.0])
def test_halves_that_go_up_are_not_those_that_go_to_even(scale: float) -> None:
    source, written = model(_side(scale, SOURCE)), model(_side(scale, WRITTEN % AWAY))
    assert verify(source, written).verdict == "different"
    assert verify(written, source).verdict == "different"


@pytest.mark.parametrize("scale", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("quotient", ["Div (x, s)", "Mul (x, r)"])
def test_halves_that_go_to_even_are_the_same(scale: float, quotient: str) -> None:
    written = model(_side(scale, WRITTEN % (quotient, "Round (d)")))
    assert verify(model(_side(scale, SOURCE)), written).verdict == "equivalent"


@pytest.mark.parametrize(("value", "is_exact"), [(0.5, True), (3.0, True), (0.1, False), (1e-9, False)])
def test_what_is_added_is_exact_or_not(value: float, is_exact: bool) -> None:
    side = model("g (float[N] x) => (float[N] y) <float h = {0.5}> { y = Add (x, h) }")
    exactness = Exactness((side, side), ("onnxruntime", "onnxruntime"))
    assert exactness.holds({"x": np.array([value], np.float32)}) == is_exact
