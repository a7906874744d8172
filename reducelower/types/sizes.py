"""Sizes as polynomials with integer coefficients over atoms, such as ``batch``, ``2 * batch * seq`` or ``seq + 1``.

An atom is the size of some axis: a number that is never negative, but may be zero. Two sizes are the same if their
polynomials are.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product
from typing import TypeAlias

from reducelower.model.text import expression

__all__ = ["ONE", "ZERO", "Size", "of_text", "product_of", "quotient"]

_Monomial: TypeAlias = "tuple[int, ...]"
"""Atoms in order, each as often as it is a factor."""


@dataclass(frozen=True, slots=True)
class Size:
    """A size, or a number made of sizes.

    Attributes:
        terms: the monomials in order, each with its coefficient, which is not zero.
    """

    terms: tuple[tuple[_Monomial, int], ...]

    @classmethod
    def of(cls, number: int) -> Size:
        """A size that is a number."""
        return cls((((), int(number)),) if number else ())

    @classmethod
    def atom(cls, atom: int) -> Size:
        """A size of which only the name is known."""
        return cls((((atom,), 1),))

    @property
    def number(self) -> int | None:
        """The number that this is; None if it depends on an atom."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    @property
    def atoms(self) -> frozenset[int]:
        """All atoms of this size."""
        return frozenset(atom for monomial, _ in self.terms for atom in monomial)

    def __add__(self, other: Size) -> Size:
        return _collected((*self.terms, *other.terms))

    def __sub__(self, other: Size) -> Size:
        return self + other * Size.of(-1)

    def __mul__(self, other: Size) -> Size:
        return _collected(
            (tuple(sorted(ours + theirs)), left * right)
            for (ours, left), (theirs, right) in product(self.terms, other.terms)
        )

    def over(self, other: Size) -> Size | None:
        """The exact quotient by a monomial that is not zero; None if there is none."""
        if self == other:
            return ONE
        if len(other.terms) != 1:
            return None
        ((divisor, coefficient),) = other.terms
        quotient = []
        for monomial, own in self.terms:
            rest = list(monomial)
            for atom in divisor:
                if atom not in rest:
                    return None
                rest.remove(atom)
            if own % coefficient:
                return None
            quotient.append((tuple(rest), own // coefficient))
        return _collected(quotient)

    def is_positive(self, positive: Collection[int] = ()) -> bool:
        """Whether this is more than zero whatever the atoms are, of which some are known not to be zero."""
        if not self.is_never_negative:
            return False
        return any(all(atom in positive for atom in monomial) for monomial, _ in self.terms)

    @property
    def is_never_negative(self) -> bool:
        """Whether no coefficient is negative."""
        return all(coefficient > 0 for _, coefficient in self.terms)

    @property
    def least(self) -> int | None:
        """The number that this is never below; None if an atom takes something away."""
        if any(coefficient < 0 for monomial, coefficient in self.terms if monomial):
            return None
        return next((coefficient for monomial, coefficient in self.terms if not monomial), 0)

    def makes_zero(self, other: Size) -> bool:
        """Whether `other` is zero wherever this is."""
        if self == other:
            return True
        if len(self.terms) != 1:
            return other.over(self) is not None
        needed = set(self.terms[0][0])
        return bool(needed) and all(needed <= set(monomial) for monomial, _ in other.terms)

    def renamed(self, names: Mapping[int, int]) -> Size:
        """The same over other atoms."""
        if self.number is not None:
            return self
        return _collected(
            (tuple(sorted(names[atom] for atom in monomial)), coefficient) for monomial, coefficient in self.terms
        )


def _collected(terms: Iterable[tuple[_Monomial, int]]) -> Size:
    found: dict[_Monomial, int] = {}
    for monomial, coefficient in terms:
        found[monomial] = found.get(monomial, 0) + coefficient
    return Size(tuple(sorted((monomial, coefficient) for monomial, coefficient in found.items() if coefficient)))


ZERO, ONE = Size.of(0), Size.of(1)


def product_of(sizes: Iterable[Size]) -> Size:
    """The product of sizes; 1 of none."""
    return reduce(Size.__mul__, sizes, ONE)


def quotient(left: Size, right: Size, atom: Callable[[Hashable], Size]) -> Size | None:
    """The quotient of two numbers, rounded towards zero, where it is exact or never negative; else None.

    It has no meaning where the divisor is zero.
    """
    if right.number == 0:
        return None
    if left.number is not None and right.number is not None:
        whole = abs(left.number) // abs(right.number)
        return Size.of(whole if left.number * right.number >= 0 else -whole)
    exact = left.over(right)
    if exact is not None:
        return exact
    least = left.least
    is_rounded_up = right.number is not None and least is not None and -right.number < least
    is_never_negative = (left.is_never_negative and right.is_never_negative) or is_rounded_up
    return atom(("Div", left, right)) if is_never_negative else None


def of_text(text: str, atom: Callable[[Hashable], Size]) -> Size:
    """The size that a name in a model stands for: exporters write what is computed, such as ``(s33 - 1)//2 + 1``.

    Any other text is one name. `atom` gives the size of a name.
    """
    if text.isidentifier():
        return atom(text)
    parsed = _parsed(text) if " - " in text or "-" not in text else None
    found = None if parsed is None else _evaluated(parsed, atom)
    return atom(text) if found is None else found


@cache
def _parsed(text: str) -> ast.expr | None:
    try:
        return expression(text)
    except (SyntaxError, ValueError):
        return None


def _evaluated(node: ast.expr, atom: Callable[[Hashable], Size]) -> Size | None:
    if isinstance(node, ast.Name):
        return atom(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Size.of(node.value)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _evaluated(node.left, atom), _evaluated(node.right, atom)
    if left is None or right is None:
        return None
    of_numbers = _OF_NUMBERS.get(type(node.op))
    if of_numbers is not None and left.number is not None and right.number:
        return Size.of(of_numbers(left.number, right.number))
    if isinstance(node.op, ast.FloorDiv):
        return quotient(left, right, atom)
    combine = _OPERATIONS.get(type(node.op))
    return None if combine is None else combine(left, right)


_OPERATIONS: Mapping[type[ast.operator], Callable[[Size, Size], Size]] = {
    ast.Add: Size.__add__,
    ast.Mult: Size.__mul__,
    ast.Sub: Size.__sub__,
}

_OF_NUMBERS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
