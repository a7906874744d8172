"""The conditions that facts consist of, and the cases that each is true of.

Sets of cases are whole numbers, one bit for each case, so that thousands of conjunctions take a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reducelower.conformance.case import Case, CaseFeatures
from reducelower.model.schemas import schema
from reducelower.runtimes.ranges import Ranges

__all__ = [
    "FLAGS",
    "TOLD",
    "Condition",
    "When",
    "candidates",
    "condition_of",
    "cost",
    "full_when",
    "holds",
    "is_possible",
]

Value = tuple[str, ...] | bool | str

TOLD = (
    "element_types", "rank", "rank_out", "axes", "keepdims", "noop", "negative_axes", "axes_count", "all_axes",
    "output_types", "data", "rank_second", "fed", "broadcast", "vector", "no_values",
)  # fmt: skip
"""The features in which cases of the suite differ."""

_OF_OTHERS = ("element_types", "output_types", "rank", "rank_out", "fed", "broadcast")
_OF_REDUCTIONS = tuple(name for name in TOLD if name not in ("output_types", "fed", "broadcast", "no_values"))
"""The result of a reduction has the element type of its data, how axes are written says whether they are known, and
from sizes of 0 nothing follows for others."""

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
"""What a condition costs readers and tools: what the node states is cheap, ranks have to be inferred."""


FLAGS = {"noop": ("0", "1", "unset"), "keepdims": ("0", "1", "unset")}
"""Attributes of nodes, with all their values."""


@dataclass(frozen=True, order=True)
class Condition:
    """One entry of a fact's ``when``: the name of a feature of nodes, and alternatives, a flag, or a range."""

    name: str
    value: Value

    def holds(self, features: CaseFeatures) -> bool | None:
        """Whether it is true of a node; None if that is known only at run time."""
        return self.allows(getattr(features, self.name))

    def allows(self, found: Any) -> bool | None:
        """Whether it is true where the feature has a value; None if that is known only at run time."""
        if found is None:
            return None
        if isinstance(self.value, bool):
            return bool(found is self.value)
        return found in (Ranges.parse(self.value) if isinstance(self.value, str) else self.value)


When = tuple[Condition, ...]


def condition_of(features: CaseFeatures, name: str) -> Condition | None:
    """The condition that states a feature of a node; None if its value is known only at run time."""
    value = getattr(features, name)
    if value is None:
        return None
    if isinstance(value, bool):
        return Condition(name, value)
    return Condition(name, str(value) if isinstance(value, int) else (value,))


def full_when(case: Case) -> When:
    """Everything that can be said of a case."""
    names = _OF_REDUCTIONS if case.features.axes else _OF_OTHERS
    found = (condition_of(case.features, name) for name in names)
    return tuple(sorted(condition for condition in found if condition is not None))


def cost(when: When) -> int:
    """The cost of a conjunction."""
    return sum(_COSTS[condition.name] for condition in when)


def holds(when: When, features: CaseFeatures) -> bool:
    """Whether every condition is true of a node, except those known only at run time."""
    return all(condition.holds(features) is not False for condition in when)


def is_possible(when: When, operator: str, opset: int) -> bool:
    """Whether an opset version allows such a node: with axes as an input, with noop_with_empty_axes."""
    found = schema(operator, opset)
    attributes = frozenset() if found is None else frozenset(found.attributes)
    for condition in when:
        alternatives = condition.value if isinstance(condition.value, tuple) else ()
        if condition.name == "axes":
            inputs = {"initializer", "constant", "dynamic", "omitted"}
            impossible = inputs if "axes" in attributes else {"attribute"}
        elif condition.name == "noop":
            impossible = set() if "noop_with_empty_axes" in attributes else {"0", "1"}
        else:
            continue
        if impossible.issuperset(alternatives):
            return False
    return True


def candidates(cases: Sequence[Case]) -> Iterator[tuple[Condition, ...]]:
    """The conditions to try on these cases, grouped by name."""
    reductions = any(case.features.axes for case in cases)
    types = sorted({case.features.element_types for case in cases})
    listed: dict[str, tuple[tuple[str, ...], ...]] = {"element_types": _type_groups(types)}
    flags: tuple[str, ...] = ()
    if not reductions:
        listed["output_types"] = _type_groups(sorted({case.features.output_types for case in cases}))
        told = {name: {getattr(case.features, name) for case in cases} for name in ("fed", "broadcast")}
        flags = tuple(name for name, values in told.items() if len(values) > 1)
    ranges = {"rank": ("0", "1-", "-1", "2-", "-2", "3-", "-3", "4-"), "rank_out": ("0", "1-")}
    if reductions:
        forms = sorted({case.features.axes for case in cases})
        listed["axes"] = (*((form,) for form in forms), *_FORM_GROUPS)
        listed["keepdims"] = (("0",), ("1",), ("unset",), ("1", "unset"), ("0", "1"))
        listed["noop"] = (("1",), ("0",), ("unset",), ("0", "unset"))
        flags = ("negative_axes", "all_axes")
        ranges["axes_count"] = ("0", "1", "2-")
    for name, groups in listed.items():
        yield tuple(Condition(name, group) for group in groups)
    for name in flags:
        yield Condition(name, True), Condition(name, False)
    for name, texts in ranges.items():
        yield tuple(Condition(name, text) for text in texts)


_FORM_GROUPS = (
    ("initializer", "constant"),
    ("initializer", "constant", "dynamic"),
    ("constant", "dynamic"),
    ("absent", "empty"),
    ("absent", "omitted"),
    ("absent", "empty", "omitted"),
)

_FLOATS = ("float", "float16", "double")


def _type_groups(types: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Each type, the integers, the floats, and all but one of each."""
    floats = tuple(name for name in types if name in _FLOATS)
    others = tuple(name for name in types if name not in _FLOATS)
    groups: list[tuple[str, ...]] = [(name,) for name in types]
    for group in (floats, others, tuple(types)):
        groups.append(group)
        groups += [tuple(name for name in group if name != left_out) for left_out in group]
    unique = dict.fromkeys(tuple(sorted(group)) for group in groups)
    return tuple(group for group in unique if group and len(group) < len(types))
