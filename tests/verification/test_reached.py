"""Values on which a region differs by itself, and which what computes its inputs gives it only here and there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reducelower.verification import verify
from reducelower.verification.feeding.aims import aimed

from .models import model

BOUNDED = "g (float[N, 4] x) => (bool[N, 4] y) <float k = {{{}}}> {{ a = {} (x)  y = {} (a, k) }}"


@pytest.mark.parametrize(
    ("activation", "bound"),
    [("HardSigmoid", 0.25), ("Sigmoid", 0.25), ("Tanh", 0.75), ("Erf", 0.75), ("Softsign", 0.75), ("Softmax", 0.75)],
)
def test_a_bound_within_the_range_of_what_is_before_it_is_met(activation: str, bound: float) -> None:
    """All of them give the bound itself for some input, of which one side says that it is greater."""
    sides = [model(BOUNDED.format(bound, activation, kind)) for kind in ("Greater", "GreaterOrEqual")]
    assert verify(*sides).verdict == "different"
    assert verify(sides[0], sides[0]).verdict == "equivalent"


@pytest.mark.parametrize("activation", ["HardSigmoid", "Sigmoid", "Tanh", "Softmax"])
def test_a_bound_beyond_the_range_of_what_is_before_it_is_none(activation: str) -> None:
    sides = [model(BOUNDED.format(1.25, activation, kind)) for kind in ("Greater", "GreaterOrEqual")]
    assert verify(*sides).verdict != "different"


def test_a_number_that_is_replaced_is_met() -> None:
    text = "g (float[N, 4] x) => (float[N, 4] y) <float k = {0.75}, float w = {0.5}> { a = Tanh (x)  %s }"
    body = "c = Equal (a, k)  m = Mul (a, a)  y = Where (c, w, m)"
    assert verify(model(text % "y = Mul (a, a)"), model(text % body)).verdict == "different"


def test_ties_of_a_product_are_met() -> None:
    text = (
        "g (float[N, 4] x) => (float[N, 4] y) <float h = {{{}}}, float k = {{0.5}}> "
        "{{ a = {} (x)  b = Mul (a, h)  {} }}"
    )
    up = "c = Add (b, k)  y = Floor (c)"
    for activation, scale in (("Tanh", 127.0), ("Sigmoid", 253.0)):
        sides = [model(text.format(scale, activation, body)) for body in ("y = Round (b)", up)]
        assert verify(*sides).verdict == "different"


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "int64"])
def test_aims_are_met_from_either_side(kind: str) -> None:
    """Of twice a number and one more, 7 is met at 3."""
    base = {"x": np.zeros((2, 3), kind), "other": np.ones(1)}

    def probe(feeds: Any) -> Any:
        return feeds["x"].astype(np.float64) * 2 + 1

    found = [case.feeds["x"] for case in aimed(probe, base, ["x"], [7.0, 1e30])]
    assert any((value == 3).all() for value in found)
    assert any((value < 3).all() for value in found)
    assert any((value > 3).all() for value in found)
    assert all(value.dtype == kind and value.shape == (2, 3) for value in found)
    alone = [value for value in found if np.count_nonzero(value) == 1]
    assert any(value[0, 0] == 3 for value in alone)
    assert any(value[1, 2] == 3 for value in alone)
