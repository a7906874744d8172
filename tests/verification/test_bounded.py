"""Which values are bounded by what computes them."""

from __future__ import annotations

import pytest

from reducelower.verification.bounded import bounded

from .models import model


@pytest.mark.parametrize(
    ("body", "is_bounded"),
    [
        ("y = Sigmoid (x)", True),
        ("y = Add (x, x)", False),
        ("y = Mul (x, k)", False),
        ("s = Tanh (x)  y = Mul (s, k)", True),
        ("s = Tanh (x)  y = Mul (s, x)", False),
        ("s = Tanh (x)  t = Add (s, x)  y = Relu (t)", True),
        ("s = Shape (x)  y = Cast <to = 1> (s)", True),
    ],
)
def test_arithmetic_bounds_only_what_is_bounded_before(body: str, is_bounded: bool) -> None:
    given = model(f"g (float[N] x) => (float[N] y) <float k = {{2}}> {{ {body} }}")
    assert ("y" in bounded(given.graph.node, {"k"})) is is_bounded
