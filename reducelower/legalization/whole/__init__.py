"""Changes to a whole model, for what no rewrite of a single node solves; each returns a changed copy and what was done.

`attempts` lists the changes that are tried when something is refused, in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from onnx import ModelProto

from reducelower.errors import Refusal
from reducelower.model.document import Document
from reducelower.model.graph import bodies
from reducelower.plan import Plan

__all__ = ["Attempt", "Changed", "in_terms_of_source"]


class Attempt(NamedTuple):
    """A model and its legal form, which must not be used if the plan has refusals."""

    source: Document
    made: Document
    plan: Plan


@dataclass(frozen=True)
class Changed:
    """A model with a change.

    Attributes:
        document: a changed copy; the given model if nothing had to be done.
        done: what was done and why, in sentences.
        refusals: why more cannot be done.
        inner: the values that changed or were removed; nodes that compute or read them are no sites.
        has_to_help: whether to undo the change if something is still refused after it.
    """

    document: Document
    done: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    inner: frozenset[str] = frozenset()
    has_to_help: bool = False


def in_terms_of_source(plan: Plan, source: ModelProto, made: ModelProto, inner: Collection[str] = ()) -> Plan:
    """The plan of a changed model in terms of the original one, with nodes matched by what they compute.

    Nodes that compute or read inner values are no sites, since only together they are equivalent to the original.
    """
    places = {kind: (place, name) for kind, place, name in _comparable_nodes(source, inner)}
    kinds = {(kind[0], place): kind for kind, place, _ in _comparable_nodes(made, inner)}
    sites = [
        replace(site, index=own[0], node=own[1])
        for site in plan.sites
        if (own := places.get(kinds.get((site.graph, site.index), ())))
    ]
    return replace(plan, sites=tuple(sites), carried=len(places.keys() & set(kinds.values())) - len(sites))


def _comparable_nodes(model: ModelProto, inner: Collection[str]) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """For each node that neither computes nor reads inner values: graph, operator and outputs; position; name."""
    inner_names = frozenset(inner)
    for path, holder in bodies(model):
        for place, node in enumerate(holder.node):
            if inner_names.isdisjoint((*node.input, *node.output)):
                yield (path, node.op_type, *node.output), place, node.name or f"{node.op_type}#{place}"
