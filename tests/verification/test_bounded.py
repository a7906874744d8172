"""Which values are bounded by what computes them."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.verification.regions.bounded import bounded, deciding, not_negative

from .models import model


@pytest.mark.parametrize(
    ("body", "is_bounded"),
    [
        ("y = Sigmoid (x)", True),
        ("y = Add (x, x)", False),
        ("y = Mul (x, k)", False),
        ("s = Tanh (x)  y = Mul (s, k)", True),
        ("s = Tanh (x)  y = Mul (s, x)", False),
        ("s = Tanh (x)  t = Add (s, x)  y = Relu (t)", False),
        ("s = Shape (x)  y = Cast <to = 1> (s)", True),
        ("s = Tanh (x)  y = Sqrt (s)", True),
        ("y = Clip (x, k, k)", True),
        ("y = Clip (x, k)", False),
    ],
)
def test_arithmetic_bounds_only_what_is_bounded_before(body: str, is_bounded: bool) -> None:
    given = model(f"g (float[N] x) => (float[N] y) <float k = {{2}}> {{ {body} }}")
    assert ("y" in bounded(given.graph.node, {"k"})) is is_bounded


@pytest.mark.parametrize(
    ("body", "is_not_negative"),
    [
        ("y = Sqrt (x)", True),
        ("y = Mul (x, x)", True),
        ("s = Relu (x)  y = Add (s, k)", True),
        ("s = Relu (x)  y = Sub (s, k)", False),
        ("s = Exp (x)  y = Mul (s, x)", False),
        ("s = Abs (x)  c = Greater (x, k)  y = Where (c, s, k)", True),
        ("s = Abs (x)  i = Shape (x)  y = Gather (s, i)", True),
    ],
)
def test_what_is_never_below_zero(body: str, is_not_negative: bool) -> None:
    given = model(f"g (float[N] x) => (float[N] y) <float k = {{2}}> {{ {body} }}")
    assert ("y" in not_negative(given.graph.node, {"k": np.array(2.0)})) is is_not_negative


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Reshape (x, s)", {"s"}),
        ("t = Transpose (x)  y = Reshape (t, s)", {"s"}),
        ("t = Neg (x)  y = Reshape (t, s)", {"s", "x"}),
        ("t = Reshape (x, s)  y = Neg (t)", {"s", "t", "x"}),
        ("t = Shape (x)  y = Reshape (x, t)", {"t", "x"}),
        ("t = Identity (s)  y = Reshape (x, t)", {"s", "t"}),
    ],
)
def test_values_decide_nothing_where_they_are_only_moved(body: str, expected: set[str]) -> None:
    given = model(f"g (float[N] x, int64[M] s) => (float[K] y) {{ {body} }}")
    assert deciding(given.graph.node) == expected
