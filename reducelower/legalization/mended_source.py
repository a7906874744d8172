"""Whole-model changes made before legalization, and how the plan is then expressed in terms of the original model."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from onnx import GraphProto, ModelProto

from reducelower.model.graph import bodies, graphs
from reducelower.plan import Plan

__all__ = ["Mended", "in_terms_of_source", "main_graphs"]


@dataclass(frozen=True)
class Mended:
    """A changed copy of a model.

    Attributes:
        model: the copy.
        said: a sentence that describes the change.
        inner: the values that changed or were removed.
    """

    model: ModelProto
    said: str
    inner: frozenset[str] = frozenset()


def main_graphs(model: ModelProto) -> list[GraphProto]:
    """The main graph and its subgraphs, outer ones first."""
    return [graph for path, graph in graphs(model) if path.startswith("graph")]


def in_terms_of_source(plan: Plan, source: ModelProto, made: ModelProto, inner: Collection[str] = ()) -> Plan:
    """The plan of a changed model in terms of the original one, whose nodes are known by what they compute.

    Nodes that compute or read inner values are no sites, since only together they are equivalent to the original.
    """
    nodes = {kind: (place, name) for kind, place, name in _kinds(source, inner)}
    kinds = {(kind[0], place): kind for kind, place, _ in _kinds(made, inner)}
    sites = [
        replace(site, index=found[0], node=found[1])
        for site in plan.sites
        if (found := nodes.get(kinds.get((site.graph, site.index), ())))
    ]
    return replace(plan, sites=tuple(sites), carried=len(nodes.keys() & set(kinds.values())) - len(sites))


def _kinds(model: ModelProto, inner: Collection[str]) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """Of each node that has nothing to do with inner values: graph, operator and outputs; position; name."""
    others = frozenset(inner)
    for path, holder in bodies(model):
        for place, node in enumerate(holder.node):
            if others.isdisjoint((*node.input, *node.output)):
                yield (path, node.op_type, *node.output), place, node.name or f"{node.op_type}#{place}"
