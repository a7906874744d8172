"""Find the conditions that are true of failing cases and of no right case.

A greedy cover: of all conjunctions of up to three conditions, each for all operators and opset versions where it is
true of no right case, take the one that explains most failures, until every failure is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reducelower.conformance.case import Case
from reducelower.conformance.conditions import FLAGS, Condition, When, candidates, cost, full_when, holds, is_possible
from reducelower.conformance.patterns import Opsets, Pattern, simplified
from reducelower.model.schemas import schema

__all__ = ["carried", "learn"]

_MOST_CONDITIONS = 3

_Where = Mapping[str, tuple[Opsets, int]]
"""By operator, opset versions and the failures explained there, as bits."""


@dataclass(frozen=True)
class _Cell:
    """The cases of an operator at an opset version, as bits; a single one cannot distinguish conditions."""

    all: int
    right: int
    failing: int
    is_single: bool


@dataclass(frozen=True)
class _Masks:
    """The cases of which a conjunction is true, and those of which it may be true at run time."""

    surely: int
    possibly: int

    def __and__(self, other: _Masks) -> _Masks:
        return _Masks(self.surely & other.surely, self.possibly & other.possibly)


def learn(cases: Sequence[Case], failing: Mapping[str, bool], *, exact: bool = False) -> list[Pattern]:
    """The patterns of failures, the one that explains most first.

    `failing` says by case name whether it failed in this way or was right; cases that failed in another way are not in
    it. With `exact`, failures that no condition distinguishes from right cases are left out; otherwise they get the
    narrowest conditions.
    """
    learner = _Learner(cases, failing)
    return learner.patterns(exact)


class _Learner:
    def __init__(self, cases: Sequence[Case], failing: Mapping[str, bool]) -> None:
        self.cases = cases
        self.everything = (1 << len(cases)) - 1
        self.failing = self._bits([failing.get(case.name) is True for case in cases])
        self.right = self._bits([failing.get(case.name) is False for case in cases])
        self.values: dict[str, dict[Any, int]] = {}
        self.cells: dict[str, dict[int, _Cell]] = {}
        for operator in sorted({case.operator for case in cases}):
            opsets = sorted({case.opset for case in cases if case.operator == operator})
            self.cells[operator] = {opset: self._cell(operator, opset) for opset in opsets}
        self.of_operator = {
            operator: sum(cell.all for cell in cells.values()) for operator, cells in self.cells.items()
        }

    def _bits(self, flags: Sequence[bool]) -> int:
        return sum(1 << at for at, flag in enumerate(flags) if flag)

    def _cell(self, operator: str, opset: int) -> _Cell:
        cell = self._bits([case.operator == operator and case.opset == opset for case in self.cases])
        return _Cell(cell, cell & self.right, cell & self.failing, cell.bit_count() == 1)

    def patterns(self, exact: bool) -> list[Pattern]:
        found: list[Pattern] = []
        left = self.failing
        if not left:
            return []
        tried = [(when, self._where(when, masks)) for when, masks in self._conjunctions().items()]
        while left:
            gain, best = max(
                ((self._gain(when, where, left), -at) for at, (when, where) in enumerate(tried)), default=(0.0, 0)
            )
            if gain <= 0:
                break
            new = self._patterns_of(*tried[-best], left)
            found += new
            left &= ~self._set(new)
        if not exact:
            found += self._leftovers(left)
        return simplified([self._widened(pattern) for pattern in simplified(found)])

    def _gain(self, when: When, where: _Where, left: int) -> float:
        """How many unexplained failures a conjunction explains; a longer one has to explain more."""
        groups = set()
        explained = 0
        for opsets, bits in where.values():
            if bits & left:
                groups.add(opsets)
                explained |= bits & left
        return explained.bit_count() - cost(when) / 100 - 0.5 * (len(groups) - 1) if explained else 0.0

    def _masks(self, condition: Condition) -> _Masks:
        surely = possibly = 0
        for value, bits in self._by_value(condition.name).items():
            known = condition.allows(value)
            surely |= bits if known else 0
            possibly |= bits if known is not False else 0
        return _Masks(surely, possibly)

    def _by_value(self, feature: str) -> Mapping[Any, int]:
        """The cases that have each value of a feature, as bits: there are few values, and many conditions on them."""
        if feature not in self.values:
            found = self.values[feature] = {}
            for at, case in enumerate(self.cases):
                value = getattr(case.features, feature)
                found[value] = found.get(value, 0) | 1 << at
        return self.values[feature]

    def _conjunctions(self) -> dict[When, _Masks]:
        """The cheapest conjunction for each set of cases with a failure."""
        names = [[(condition, self._masks(condition)) for condition in group] for group in candidates(self.cases)]
        cheapest: dict[_Masks, When] = {}
        frontier: list[tuple[When, _Masks, int]] = [((), _Masks(self.everything, self.everything), 0)]
        for _ in range(_MOST_CONDITIONS + 1):
            longer: list[tuple[When, _Masks, int]] = []
            for when, masks, start in sorted(frontier, key=lambda item: (cost(item[0]), item[0])):
                if cheapest.setdefault(masks, when) != when or self._is_pure(masks):
                    continue
                for at in range(start, len(names)):
                    for condition, own in names[at]:
                        both = masks & own
                        if both.surely & self.failing and both != masks:
                            longer.append(((*when, condition), both, at + 1))
            frontier = longer
        found = [(tuple(sorted(when)), masks) for masks, when in cheapest.items()]
        return dict(sorted(found, key=lambda item: (cost(item[0]), item[0])))

    def _is_pure(self, masks: _Masks) -> bool:
        return not masks.possibly & self.right and masks.surely == masks.possibly

    def _where(self, when: When, masks: _Masks) -> _Where:
        """By operator, the opset versions at which a conjunction is true of failures and of no right case."""
        found = {}
        for operator, cells in self.cells.items():
            if not masks.surely & self.failing & self.of_operator[operator]:
                continue
            known = {opset: self._verdict(masks, cell) for opset, cell in cells.items()}
            opsets = carried(operator, known, partial(is_possible, when, operator))
            if opsets:
                bits = sum(masks.surely & cells[opset].failing for opset in opsets)
                found[operator] = (opsets, bits)
        return found

    def _verdict(self, masks: _Masks, cell: _Cell) -> bool | None:
        """Whether a conjunction is true of failures and of no right case; None if the cell does not tell.

        Conditions say no more than none do of a single case, so it only continues what is known.
        """
        possibly = masks.possibly & cell.all
        if not possibly:
            return None
        if possibly & cell.right or possibly & ~masks.surely:
            return False
        explains = bool(possibly & cell.failing)
        return None if explains and cell.is_single and masks.surely != self.everything else explains

    def _patterns_of(self, when: When, where: _Where, left: int) -> list[Pattern]:
        useful: dict[Opsets, list[tuple[str, int]]] = {}
        for operator, (opsets, bits) in where.items():
            if bits & left:
                useful.setdefault(opsets, []).append((operator, bits))
        found = []
        for opsets, group in useful.items():
            operators = tuple(name for name, _ in group)
            narrow = _narrowed(when, self._cases(left & sum(bits for _, bits in group)))
            explained = self._cases(sum(bits for _, bits in group))
            names = frozenset(case.name for case in explained if holds(narrow, case.features))
            found.append(Pattern(operators, opsets, narrow, names))
        return sorted(found, key=lambda pattern: (-len(pattern.explains), pattern.operators))

    def _widened(self, pattern: Pattern) -> Pattern:
        """The pattern with every value of keepdims and noop that no right case contradicts.

        What was not tried together may fail as well, and a needless replacement does less harm than none.
        """
        cells = [self.cells[operator][opset] for operator in pattern.operators for opset in pattern.opsets]
        rights = self._cases(sum(cell.right for cell in cells))
        when = pattern.when
        for name, values in FLAGS.items():
            at = next((at for at, condition in enumerate(when) if condition.name == name), None)
            if at is None:
                continue
            possible = [value for value in values if self._can_be(Condition(name, (value,)), pattern)]
            given = when[at].value
            assert isinstance(given, tuple)
            for value in possible:
                wider = (*when[:at], Condition(name, tuple(sorted({*given, value}))), *when[at + 1 :])
                if not any(holds(wider, case.features) for case in rights):
                    when, given = wider, tuple(sorted({*given, value}))
            if set(possible) <= set(given):
                when = (*when[:at], *when[at + 1 :])
        if pattern.covers_right or when == pattern.when:
            return pattern
        failing = self._cases(sum(cell.failing for cell in cells))
        return replace(
            pattern, when=when, explains=frozenset(case.name for case in failing if holds(when, case.features))
        )

    def _can_be(self, condition: Condition, pattern: Pattern) -> bool:
        return any(
            is_possible((condition,), operator, opset) for operator in pattern.operators for opset in pattern.opsets
        )

    def _leftovers(self, left: int) -> list[Pattern]:
        """Patterns for failures that no conjunction distinguishes from right cases, with all their conditions."""
        found: dict[tuple[str, When], list[Case]] = {}
        for at, case in enumerate(self.cases):
            if left >> at & 1:
                found.setdefault((case.operator, full_when(case)), []).append(case)
        patterns = []
        for (operator, when), cases in found.items():
            opsets = tuple(sorted({case.opset for case in cases}))
            rights = self._cases(self.right & sum(self.cells[operator][opset].all for opset in opsets))
            right = sum(holds(when, case.features) for case in rights)
            patterns.append(Pattern((operator,), opsets, when, frozenset(case.name for case in cases), right))
        return patterns

    def _cases(self, bits: int) -> list[Case]:
        return [case for at, case in enumerate(self.cases) if bits >> at & 1]

    def _set(self, patterns: Sequence[Pattern]) -> int:
        names = frozenset().union(*(pattern.explains for pattern in patterns))
        return self._bits([case.name in names for case in self.cases])


def _since(operator: str, opset: int) -> int:
    """The opset version that introduced the operator in this form; 0 if there is no operator."""
    found = schema(operator, opset)
    return 0 if found is None else int(found.since_version)


def carried(
    operator: str, known: Mapping[int, bool | None], is_possible: Callable[[int], bool] = lambda opset: True
) -> Opsets:
    """The opset versions at which something is true of an operator, of those that are listed, the oldest first.

    A version of which nothing is known counts as the one before, since runtimes have one importer for a span of
    versions; those before the first known one count as it if the operator is the same or no such node is possible.
    """
    first = next((opset for opset, flag in known.items() if flag is not None), None)
    if first is None:
        return ()
    state: bool | None = None
    found = []
    for opset, flag in known.items():
        state = state if flag is None else flag
        is_before = state is None and known[first]
        if state or (is_before and (_since(operator, opset) == _since(operator, first) or not is_possible(opset))):
            found.append(opset)
    return tuple(found)


def _narrowed(when: When, cases: Sequence[Case]) -> When:
    """The conditions without alternatives that none of these cases has."""
    narrow = []
    for condition in when:
        value = condition.value
        if isinstance(value, tuple):
            seen = {getattr(case.features, condition.name) for case in cases}
            value = tuple(name for name in value if name in seen)
        narrow.append(Condition(condition.name, value))
    return tuple(narrow)
