"""The conditions of facts: which to try on cases, and what each costs.

A condition is an entry of a fact's ``when`` (`runtimes.facts.When`): a feature of nodes, and its allowed values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reducelower.conformance.case import Case, CaseFeatures
from reducelower.model.schemas import schema
from reducelower.runtimes.facts import When
from reducelower.runtimes.ranges import Ranges

__all__ = ["Conditions", "allows", "candidates", "common", "cost", "holds", "is_possible"]

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


def common(nodes: Sequence[CaseFeatures], name: str) -> Any:
    """The narrowest condition on a feature that is true of all these nodes; None if there is none or it is unknown."""
    values = {getattr(features, name) for features in nodes}
    if None in values:
        return None
    first = next(iter(values))
    if isinstance(first, bool):
        return first if len(values) == 1 else None
    if isinstance(first, int):
        return Ranges.of(sorted(values)) if min(values) >= 0 else None
    return frozenset(values) if all(values) else None


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
