"""Sizes as polynomials: what is the same, what divides, and what cannot be zero."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from reducelower.types.sizes import Polynomial, Size, is_positive, makes_zero, of_text, over, quotient

NAMES = ["a", "b", "c"]


def size(text: str) -> Size:
    return of_text(text, atom)


def atom(name: Hashable) -> Size:
    return Polynomial.atom(NAMES.index(name) if name in NAMES else 9)


@pytest.mark.parametrize(
    ("left", "right"), [("a*b", "b*a"), ("2*a + a", "3*a"), ("a + 2*b + 1", "1 + b + a + b"), ("2*3", "6")]
)
def test_sizes_are_the_same_whatever_the_order(left: str, right: str) -> None:
    assert size(left) == size(right)


def test_other_texts_are_names() -> None:
    asked: list[Hashable] = []

    def atom(name: Hashable) -> Size:
        asked.append(name)
        return Polynomial.atom(len(asked))

    for text in ("past-length", "dim 1", "Max(1, s)", "a//b"):
        of_text(text, atom)
    assert [each for each in asked if isinstance(each, str) and len(each) > 1] == [
        "past-length",
        "dim 1",
        "Max(1, s)",
    ]


def test_the_size_of_a_window_is_that_of_its_name() -> None:
    assert quotient(size("a") - size("1"), size("4"), atom) == size("(a - 1)//4")


def test_a_quotient_that_may_be_negative_is_no_size() -> None:
    assert quotient(size("a") - size("4"), size("4"), atom) is None


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


@pytest.mark.parametrize(("text", "known", "expected"), [("a", "", False), ("a + 1", "", True), ("2*a*b", "ab", True)])
def test_a_name_alone_may_be_zero(text: str, known: str, expected: bool) -> None:
    assert is_positive(size(text), [NAMES.index(name) for name in known]) == expected


def test_a_difference_is_not_known_to_be_positive() -> None:
    assert not is_positive(size("a + 3") - size("b"), [0, 1])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("a", "a*b", True), ("2*a", "a", True), ("a*b", "a", False), ("a", "a + b", False), ("a", "a*b + a*c", True)],
)
def test_one_size_may_make_another_zero(one: str, other: str, expected: bool) -> None:
    assert makes_zero(size(one), size(other)) == expected
