"""Conditions that are true of failing cases and of no right case.

A condition is an entry of a fact's ``when`` (`runtimes.facts.When`): a feature of nodes, and its allowed values.

`learn` is a greedy cover for each operator: among all conjunctions of up to three conditions, each at the opset
versions where it is true of no right case, take the one that explains most failures, and repeat until every failure is
explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reducelower.conformance.case import Case, CaseFeatures
from reducelower.model.schemas import schema, since_version
from reducelower.runtimes.facts import When
from reducelower.runtimes.ranges import Ranges

__all__ = ["Conditions", "Pattern", "holds", "learn"]

Condition = tuple[str, Any]
Conditions = tuple[Condition, ...]

_COSTS = {
    "axes": 2,
    "keepdims": 2,
    "noop": 2,
    "element_types": 3,
    "negative_axes": 3,
    "axes_count": 4,
    "all_axes": 4,
    "fed": 4,
    "broadcast": 4,
    "rank_out": 5,
    "rank": 5,
    "output_types": 5,
}
"""The cost of a condition for readers and tools: what the node itself states is cheap, ranks have to be inferred."""


def allows(allowed: Any, value: Any) -> bool | None:
    """Whether a condition allows a value; None if the value is known only at run time."""
    if value is None:
        return None
    return bool(value is allowed if isinstance(allowed, bool) else value in allowed)


def holds(when: Iterable[Condition], features: CaseFeatures) -> bool:
    """Whether every condition is true of a node, except those known only at run time."""
    return When(**{name: allowed for name, allowed in when if getattr(features, name) is not None}).matches(features)


def cost(when: Conditions) -> int:
    """The cost of a conjunction."""
    return sum(_COSTS[name] for name, _ in when)


def is_possible(when: Conditions, operator: str, opset: int) -> bool:
    """Whether an opset version has such nodes: with axes as an input or attribute, with noop_with_empty_axes."""
    definition = schema(operator, opset)
    attributes = frozenset() if definition is None else frozenset(definition.attributes)
    impossible = {
        "axes": {"initializer", "constant", "dynamic", "omitted"} if "axes" in attributes else {"attribute"},
        "noop": set() if "noop_with_empty_axes" in attributes else {"0", "1"},
    }
    return not any(allowed <= impossible[name] for name, allowed in when if name in impossible)


def candidates(cases: Sequence[Case]) -> Iterator[list[Condition]]:
    """The conditions to try on these cases, grouped by feature."""
    for name in _COSTS:
        values = {getattr(case.features, name) for case in cases}
        if len(values) > 1:
            yield [(name, wanted) for wanted in _alternatives(name, sorted(values - {None}))]


def _alternatives(name: str, values: Sequence[Any]) -> Iterator[Any]:
    """Sets of these values to try: one value, all but one of a group, or a range that starts or ends at one."""
    if isinstance(values[0], bool):
        yield from values
        return
    if isinstance(values[0], int):
        for value in values:
            yield from (Ranges.between(None, value), Ranges.between(value, None), Ranges.between(value, value))
        return
    groups = [frozenset(values), *_FORMS] if name == "axes" else [frozenset(values)]
    if name.endswith("_types"):
        groups += [groups[0] & _FLOATS, groups[0] - _FLOATS]
    sets = [frozenset({value}) for value in values] + groups[1:]
    sets += [group - {value} for group in groups for value in sorted(group)]
    yield from (each for each in dict.fromkeys(sets) if each and each < groups[0])


_FLOATS = frozenset({"float", "float16", "double"})

_FORMS = tuple(
    frozenset(forms.split())
    for forms in ("initializer constant", "initializer constant dynamic", "constant dynamic", "absent empty omitted")
)
"""Groups of axes forms that runtimes treat alike."""


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
