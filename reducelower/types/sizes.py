"""Sizes as polynomials with integer coefficients over atoms, such as ``batch``, ``2 * batch * seq`` or ``seq + 1``.

An atom is the size of some axis: a number that is never negative, but may be zero. Two sizes are the same if their
polynomials are. A size without atoms is an `int`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

__all__ = [
    "Atoms",
    "Polynomial",
    "Size",
    "is_never_negative",
    "is_positive",
    "makes_zero",
    "numbers_of",
    "over",
    "quotient",
]

_Monomial: TypeAlias = "tuple[int, ...]"
"""Atoms in order, each as often as it is a factor."""

_Terms: TypeAlias = "tuple[tuple[_Monomial, int], ...]"
"""Monomials in order, each with its coefficient, which is not zero."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A size, or a number computed from sizes, that depends on at least one atom.

    Attributes:
        terms: its monomials and coefficients.
    """

    terms: _Terms

    @classmethod
    def atom(cls, atom: int) -> Polynomial:
        """An unknown size."""
        return cls((((atom,), 1),))

    @property
    def atoms(self) -> frozenset[int]:
        """All atoms of this size."""
        return frozenset(atom for monomial, _ in self.terms for atom in monomial)

    def __add__(self, other: Size) -> Size:
        return _collected((*self.terms, *_terms(other))) if other else self

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + -other

    def __rsub__(self, other: int) -> Size:
        return -self + other

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):
            return Polynomial(tuple((monomial, own * other) for monomial, own in self.terms)) if other else 0
        return _collected(
            (tuple(sorted(ours + theirs)), left * right)
            for (ours, left), (theirs, right) in product(self.terms, other.terms)
        )

    __radd__, __rmul__ = __add__, __mul__

    def renamed(self, names: Mapping[int, int]) -> Size:
        """The same size with its atoms renamed."""
        return _collected(
            (tuple(sorted(names[atom] for atom in monomial)), coefficient) for monomial, coefficient in self.terms
        )


Size: TypeAlias = "int | Polynomial"
"""A size, or a number computed from sizes."""


@dataclass
class Atoms:
    """Numbers atoms: equal keys share an atom.

    Attributes:
        first: the first number.
    """

    first: int = 0
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def __call__(self, key: Hashable) -> Polynomial:
        """The size that is this atom."""
        number = self._numbers.setdefault(key, self.first + len(self._numbers))
        if isinstance(key, str):
            self._names[number] = key
        return Polynomial.atom(number)

    def name(self, size: Size) -> str:
        """The name that the model has for a size; empty if it has none."""
        if isinstance(size, int):
            return ""
        (monomial, coefficient), *others = size.terms
        return self._names.get(monomial[0], "") if len(monomial) == coefficient == 1 and not others else ""


def _terms(size: Size) -> _Terms:
    if isinstance(size, Polynomial):
        return size.terms
    return (((), size),) if size else ()


def _collected(terms: Iterable[tuple[_Monomial, int]]) -> Size:
    coefficients: dict[_Monomial, int] = {}
    for monomial, coefficient in terms:
        coefficients[monomial] = coefficients.get(monomial, 0) + coefficient
    made = tuple(sorted((monomial, coefficient) for monomial, coefficient in coefficients.items() if coefficient))
    return Polynomial(made) if any(monomial for monomial, _ in made) else sum(coefficient for _, coefficient in made)


def numbers_of(sizes: Iterable[Size | str | None]) -> tuple[int | None, ...]:
    """The sizes that are numbers, with None for the others."""
    return tuple(size if isinstance(size, int) else None for size in sizes)


def over(left: Size, right: Size) -> Size | None:
    """The exact quotient by a monomial that is not zero; None if there is none."""
    if left == right:
        return 1
    terms = _terms(right)
    if len(terms) != 1:
        return None
    ((divisor, coefficient),) = terms
    terms_of_quotient = []
    for monomial, own in _terms(left):
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if own % coefficient:
            return None
        terms_of_quotient.append((tuple(rest), own // coefficient))
    return _collected(terms_of_quotient)


def is_never_negative(size: Size) -> bool:
    """Whether no coefficient is negative."""
    return size >= 0 if isinstance(size, int) else all(coefficient > 0 for _, coefficient in size.terms)


def is_positive(size: Size, positive: Collection[int] = ()) -> bool:
    """Whether a size is positive for all values of its atoms, if those in `positive` are not zero."""
    if isinstance(size, int) or not is_never_negative(size):
        return isinstance(size, int) and size > 0
    return any(all(atom in positive for atom in monomial) for monomial, _ in size.terms)


def makes_zero(one: Size, other: Size) -> bool:
    """Whether `other` is zero whenever `one` is."""
    if one == other or isinstance(one, int):
        return one == other
    if len(one.terms) != 1:
        return over(other, one) is not None
    needed = set(one.terms[0][0])
    return all(needed <= set(monomial) for monomial, _ in _terms(other))


def quotient(left: Size, right: Size) -> Size | None:
    """The quotient of two numbers, rounded towards zero; of sizes only if it is exact.

    It has no meaning if the divisor is zero.
    """
    if right == 0 or not (isinstance(left, int) and isinstance(right, int)):
        return None if right == 0 else over(left, right)
    whole = abs(left) // abs(right)
    return whole if left * right >= 0 else -whole
