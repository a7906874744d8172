"""Ties: where neither side rounds anything, rounding explains no difference."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.verification.judging.conditioning import Exactness

from .models import model


@pytest.mark.parametrize(("value", "is_exact"), [(0.5, True), (3.0, True), (0.1, False), (1e-9, False)])
def test_what_is_added_is_exact_or_not(value: float, is_exact: bool) -> None:
    side = model("g (float[N] x) => (float[N] y) <float h = {0.5}> { y = Add (x, h) }")
    exactness = Exactness(side, side)
    assert exactness.holds({"x": np.array([value], np.float32)}) == is_exact
