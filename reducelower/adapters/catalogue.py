"""The version boundaries of an operator, in both directions: what happens there, its origin, and the text to copy."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reducelower.adapters import ops
from reducelower.adapters.decompose import beside_rules
from reducelower.adapters.registry import Crossing, crossings
from reducelower.model.schemas import schema, versions
from reducelower.rulebook.boundaries import shipped
from reducelower.rulebook.reading import texts

__all__ = ["Boundary", "boundaries"]


@dataclass(frozen=True)
class Boundary:
    """One boundary of an operator, in one direction.

    Attributes:
        way: the direction, such as ``18 to 17``.
        origin: ``schemas``, ``text`` or ``Python``.
        says: what happens.
        text: rules that say the same, to copy and change; empty if it is Python, or follows from the schemas.
    """

    way: str
    origin: str
    says: str
    text: str


def boundaries(op_type: str) -> Iterator[Boundary]:
    """Yield the boundaries of an operator, the newest first, each on the way down and then up.

    The last one is where the operator came in; below it, other operators express it.
    """
    ops.load(op_type)
    existing = [version for version in versions(op_type) if schema(op_type, version) is not None]
    for below, above in reversed(list(itertools.pairwise(existing))):
        for source, goal in ((above, below), (below, above)):
            for crossing in crossings(op_type, source, goal):
                yield _boundary(crossing)
    if existing and existing[0] > 1:
        yield _introduction(op_type, existing[0])


def _introduction(op_type: str, first: int) -> Boundary:
    """The boundary below which the operator does not exist."""
    rules = shipped().expressions(op_type)
    are_for_some = all(rule.occasion.guard for rule in rules)
    others = list(beside_rules(op_type)) if are_for_some else []
    sentences = _shortened(rule.source.function.doc_string for rule in rules) + [sentence for _, sentence in others]
    if are_for_some and not others:
        sentences.append("all else is refused" if rules else f"refused: opset {first - 1} does not have it")
    origin = "text" if rules else others[0][0] if others else "schemas"
    return Boundary(f"{first} to {first - 1}", origin, "; ".join(sentences), "\n\n".join(texts(rules)))


def _boundary(crossing: Crossing) -> Boundary:
    far = (crossing.boundary, crossing.boundary - 1)
    way = "{} to {}".format(*(far if crossing.down else reversed(far)))
    rules, rows = crossing.rules
    text = "\n\n".join(texts(rules))
    sentences = _shortened([rule.source.function.doc_string for rule in rules] + [row.why for row in rows])
    if crossing.rewrite is not None:
        lines = (crossing.rewrite.__doc__ or "").strip().splitlines()
        return Boundary(way, "Python", lines[0] if lines else "", text)
    if crossing.rules:
        return Boundary(way, "text", "; ".join(sentences), text)
    return Boundary(way, "schemas", _derived(crossing), "")


def _shortened(sentences: Iterable[str]) -> list[str]:
    different = list(dict.fromkeys(sentences))
    return different if len(different) <= _MOST_SENTENCES else [f"{len(different)} rules, such as: {different[-1]}"]


_MOST_SENTENCES = 3
"""Most rules of a boundary that the table names; of more it names one."""


def _derived(crossing: Crossing) -> str:
    """The changes that follow from the schemas."""
    moved = "input to attribute" if crossing.down else "attribute to input"
    sentences = [f"{move.attribute}: {moved}" for move in crossing.moves]
    sentences += [f"{name} is dropped if it has no effect" for name in sorted(crossing.gone)]
    sentences += [f"{name} is stated, since its default changed" for name in sorted(crossing.changed_defaults)]
    sentences += [f"{name} has to be stated" for name in crossing.required]
    return "; ".join(sentences) or "nothing but element types"
