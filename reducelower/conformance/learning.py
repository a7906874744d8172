"""Find the conditions that are true of failing cases and of no right case.

A greedy cover for each operator: among all conjunctions of up to three conditions, each at the opset versions where it
is true of no right case, take the one that explains most failures, and repeat until every failure is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reducelower.conformance.case import Case
from reducelower.conformance.conditions import Conditions, allows, candidates, cost, is_possible
from reducelower.model.schemas import since_version

__all__ = ["Pattern", "learn"]

_MOST = 3
"""The most conditions of a pattern."""

Opsets = tuple[int, ...]


@dataclass(frozen=True)
class Pattern:
    """What fails: nodes of these operators, in models of these opset versions, under these conditions.

    Attributes:
        operators, opsets: sorted; only probed versions.
        explains: names of the failing cases that match.
    """

    operators: tuple[str, ...]
    opsets: Opsets
    when: Conditions
    explains: frozenset[str]


def learn(cases: Sequence[Case], failing: Mapping[str, bool]) -> list[Pattern]:
    """The patterns of failures; equal patterns of several operators are merged.

    `failing` maps case names to whether the case failed in this way (True) or was right (False); cases that failed in
    another way are not in it. Failures that no condition distinguishes from right cases are left out.
    """
    patterns: dict[object, Pattern] = {}
    for operator in sorted({case.operator for case in cases}):
        for pattern in _Learner(operator, [case for case in cases if case.operator == operator], failing).patterns():
            key = pattern.opsets, frozenset(pattern.when)
            merged = patterns.get(key, replace(pattern, operators=(), explains=frozenset()))
            operators = (*merged.operators, operator)
            patterns[key] = replace(merged, operators=operators, explains=merged.explains | pattern.explains)
    return sorted(patterns.values(), key=lambda pattern: -len(pattern.explains))


class _Learner:
    """Learns the patterns of one operator. Sets of cases are integers with one bit for each case."""

    def __init__(self, operator: str, cases: Sequence[Case], failing: Mapping[str, bool]) -> None:
        self._operator = operator
        self._cases = cases
        self._failing = self._bits(failing.get(case.name) is True for case in cases)
        self._right = self._bits(failing.get(case.name) is False for case in cases)
        self._cells = {
            opset: self._bits(case.opset == opset for case in cases) for opset in sorted({case.opset for case in cases})
        }

    def _bits(self, flags: Iterable[object]) -> int:
        return sum(1 << at for at, flag in enumerate(flags) if flag)

    def patterns(self) -> Iterator[Pattern]:
        """The patterns, the one that explains most first."""
        rest = self._failing
        tried = [self._at_opsets(when, bits) for when, bits in self._conjunctions()] if rest else []
        while rest:
            when, opsets, bits = max(tried, key=lambda item: (item[2] & rest).bit_count() - cost(item[0]) / 100)
            if not bits & rest:
                return
            yield Pattern((self._operator,), opsets, when, frozenset(case.name for case in self._cases_of(bits)))
            rest &= ~bits

    def _conjunctions(self) -> Iterator[tuple[Conditions, int]]:
        """The cheapest conjunction for each set of cases with a failure."""
        groups = [{self._matching(condition): condition for condition in group} for group in candidates(self._cases)]
        frontier: dict[int, tuple[Conditions, int]] = {(1 << len(self._cases)) - 1: ((), 0)}
        seen = set(frontier)
        for _ in range(_MOST + 1):
            longer: dict[int, tuple[Conditions, int]] = {}
            for bits, (when, start) in sorted(frontier.items(), key=lambda item: cost(item[1][0])):
                yield when, bits
                for at in range(start, len(groups) if bits & self._right else start):
                    for condition_bits, condition in groups[at].items():
                        both = bits & condition_bits
                        if both & self._failing and both not in seen:
                            seen.add(both)
                            longer[both] = (*when, condition), at + 1
            frontier = longer

    def _matching(self, condition: tuple[str, object]) -> int:
        """The cases that match a condition, and right ones that may match it at run time."""
        name, allowed = condition
        answers = [allows(allowed, getattr(case.features, name)) for case in self._cases]
        return self._bits(flag or (flag is None and self._right >> at & 1) for at, flag in enumerate(answers))

    def _at_opsets(self, when: Conditions, bits: int) -> tuple[Conditions, Opsets, int]:
        """A conjunction, the opset versions at which it is true of failures and of no right case, and the failures."""
        verdicts = {opset: self._verdict(when, bits & cell, cell) for opset, cell in self._cells.items()}
        opsets = _carried(self._operator, verdicts, lambda opset: is_possible(when, self._operator, opset))
        return when, opsets, bits & self._failing & sum(self._cells[opset] for opset in opsets)

    def _verdict(self, when: Conditions, bits: int, cell: int) -> bool | None:
        """Whether a conjunction is true of failures and of no right case; None if an opset version does not show it.

        With a single case, conditions distinguish nothing, so the verdict of the versions before is kept.
        """
        if not bits:
            return None
        explains = not bits & self._right and bool(bits & self._failing)
        return None if explains and when and cell.bit_count() == 1 else explains

    def _cases_of(self, bits: int) -> list[Case]:
        return [case for at, case in enumerate(self._cases) if bits >> at & 1]


def _carried(operator: str, verdicts: Mapping[int, bool | None], is_possible: Callable[[int], bool]) -> Opsets:
    """The opset versions, oldest first, at which a verdict is true or can be assumed.

    A version without a verdict has the verdict of the one before, since runtimes have one importer for a span of
    versions. Versions before the first verdict have that one if the operator is the same or no such node is possible.
    """
    first = next((opset for opset, flag in verdicts.items() if flag is not None), None)
    if first is None:
        return ()
    verdict: bool | None = None
    opsets = []
    for opset, flag in verdicts.items():
        verdict = verdict if flag is None else flag
        is_before = verdict is None and verdicts[first]
        if verdict or (
            is_before and (since_version(operator, opset) == since_version(operator, first) or not is_possible(opset))
        ):
            opsets.append(opset)
    return tuple(opsets)
