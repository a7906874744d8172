"""Sizes as polynomials: what is the same, what divides, and what cannot be zero."""

from __future__ import annotations

import pytest

from reducelower.types.sizes import Polynomial, Size, is_positive, makes_zero, over, quotient

NAMES = {name: Polynomial.atom(number) for number, name in enumerate("abc")}


def size(text: str) -> Size:
    made: Size = eval(text, {}, NAMES)
    return made


@pytest.mark.parametrize(
    ("left", "right"), [("a*b", "b*a"), ("2*a + a", "3*a"), ("a + 2*b + 1", "1 + b + a + b"), ("2*3", "6")]
)
def test_sizes_are_the_same_whatever_the_order(left: str, right: str) -> None:
    assert size(left) == size(right)


def test_a_quotient_that_is_not_exact_is_no_size() -> None:
    assert quotient(size("a - 4"), 4) is None


@pytest.mark.parametrize(
    ("whole", "part", "quotient"),
    [
        ("a*b", "a", "b"),
        ("6*a", "2", "3*a"),
        ("a*b + 2*a", "a", "b + 2"),
        ("a + b", "a + b", "1"),
        ("a + 1", "a", None),
        ("3*a", "2", None),
        ("a*b", "a + b", None),
    ],
)
def test_only_exact_quotients_are_given(whole: str, part: str, quotient: str | None) -> None:
    assert over(size(whole), size(part)) == (None if quotient is None else size(quotient))


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [("a", [], False), ("a + 1", [], True), ("2*a*b", [0, 1], True), ("a + 3 - b", [0, 1], False)],
)
def test_a_name_alone_may_be_zero(text: str, known: list[int], expected: bool) -> None:
    assert is_positive(size(text), known) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("a", "a*b", True), ("2*a", "a", True), ("a*b", "a", False), ("a", "a + b", False), ("a", "a*b + a*c", True)],
)
def test_one_size_may_make_another_zero(one: str, other: str, expected: bool) -> None:
    assert makes_zero(size(one), size(other)) == expected
