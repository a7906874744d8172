"""What once went unseen: the sign of a zero that something divides by, and constants beyond the sizes that are fed."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.numerics.tolerance import Tolerance
from reducelower.verification import verify
from reducelower.verification.conditioning import Move, explained, widened

from .models import model

ZEROS = "g (float[N, 4] x) => (float[A, B] y) <float z = {{0}}, float o = {{1}}> {{ {} }}"
SLICED = (
    "g (float[N, 4] x) => (float[M, 4] y) <int64[1] s = {{0}}, int64[1] e = {{{}}}, int64[1] a = {{0}}> "
    "{{ y = Slice (x, s, e, a) }}"
)
BRANCHED = (
    "g (float[N] x) => (float[N] y) <int64[1] k = {{{}}}> {{ n = Shape (x)  c = Greater (n, k)  m = Squeeze (c)  "
    "y = If (m) <then_branch = t () => (float[N] p) {{ p = Neg (x) }}, "
    "else_branch = e () => (float[N] q) {{ q = Abs (x) }}> }}"
)


@pytest.mark.parametrize(
    "reading",
    [
        "y = Reciprocal (n)",
        "y = Div (o, n)",
        "t = Transpose (n)  y = Reciprocal (t)",
        "a = Concat <axis = 1> (n, n)  y = Div (o, a)",
    ],
)
def test_what_divides_by_a_zero_tells_its_sign(reading: str) -> None:
    found = verify(model(ZEROS.format(f"n = Neg (x)  {reading}")), model(ZEROS.format(f"n = Sub (z, x)  {reading}")))
    assert found.verdict == "different"
    assert not found.sites[-1].ok


@pytest.mark.parametrize(
    "reading", ["y = Exp (n)", "a = Abs (n)  y = Reciprocal (a)", "a = Add (n, o)  y = Div (o, a)", "y = Div (n, o)"]
)
def test_where_nothing_tells_the_zeros_are_one(reading: str) -> None:
    found = verify(model(ZEROS.format(f"n = Neg (x)  {reading}")), model(ZEROS.format(f"n = Sub (z, x)  {reading}")))
    assert found.verdict == "equivalent"


def test_zeros_that_keep_their_sign_may_be_divided_by() -> None:
    sides = [
        model(ZEROS.format(f"{text}  y = Reciprocal (n)")) for text in ("n = Neg (x)", "m = Neg (o)  n = Mul (x, m)")
    ]
    assert verify(*sides).verdict == "equivalent"


@pytest.mark.parametrize(("end", "other"), [(50, 49), (50, 2**63 - 1), (-50, -51), (1000, 1001), (5000, 4999)])
def test_the_end_of_a_slice_beyond_the_sizes_is_seen(end: int, other: int) -> None:
    assert verify(model(SLICED.format(end)), model(SLICED.format(other))).verdict == "different"


def test_the_same_end_beyond_the_sizes_is_the_same() -> None:
    twice = SLICED.replace("y = Slice (x, s, e, a)", "t = Slice (x, s, e, a)  y = Slice (t, s, e, a)")
    assert verify(model(SLICED.format(50)), model(twice.format(50))).verdict == "equivalent"


def test_the_size_at_which_a_branch_is_taken_is_seen() -> None:
    assert verify(model(BRANCHED.format(40)), model(BRANCHED.format(41))).verdict == "different"


SUMMED = (
    "g (float[N, 4] x) => (float[N, 4] y) <float k = {{{}}}> {{ t = ReduceSum <keepdims = 0> (x)  c = Greater (t, k)  "
    "y = If (c) <then_branch = t () => (float[N, 4] p) {{ p = Neg (x) }}, "
    "else_branch = e () => (float[N, 4] q) {{ q = Abs (x) }}> }}"
)


@pytest.mark.parametrize("bound", [0.3, -0.2])
def test_a_bound_that_few_sums_lie_beside_is_searched_for(bound: float) -> None:
    found = verify(model(SUMMED.format(0)), model(SUMMED.format(bound)))
    assert found.verdict == "different"


def test_values_on_a_step_excuse_none_beside_it() -> None:
    text = (
        "g (float[N, 4] x) => (float[N, 4] y) <float a = {{-3}}, float b = {{6}}> "
        "{{ e = Exp (x)  {}  t = Sub (f, a)  c = Clip (t, a, b)  y = Floor (c) }}"
    )
    narrow = "h = Cast <to = 10> (e)  f = Cast <to = 1> (h)"
    assert verify(model(text.format("f = Identity (e)")), model(text.format(narrow))).verdict == "different"


def test_small_values_that_move_are_no_flips_that_others_may_share() -> None:
    value, moved = np.array([1.0, 1e-15, 1e-17]), np.array([1.0, 2e-15, 1e-17])
    moves: dict[str, Move] = {}
    widened(moves, "p", value, moved, by_rounding=True)
    other = np.array([1.0, 1e-15, 5e-16])
    assert explained(value, other, Tolerance(64, 1e-5), moves["p"]).mismatch
