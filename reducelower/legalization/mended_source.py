"""Whole-model changes made before legalization, and how the plan is then expressed in terms of the original model."""

from __future__ import annotations

from collections.abc import Collection
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
    names = dict(_nodes(source, frozenset(inner)))
    kinds = {place: kind for kind, (place, _) in _nodes(made, frozenset(inner)).items()}
    sites = []
    for site in plan.sites:
        known = names.get(kinds.get((site.graph, site.index), ()))
        if known is not None:
            (_, index), name = known
            sites.append(replace(site, index=index, node=name))
    kept = names.keys() & set(kinds.values())
    return replace(plan, sites=tuple(sites), carried=len(kept) - len(sites))


def _nodes(model: ModelProto, inner: frozenset[str]) -> dict[tuple[str, ...], tuple[tuple[str, int], str]]:
    """Graph path, position and name of nodes that have nothing to do with inner values, by what they compute."""
    return {
        (path, node.op_type, *node.output): ((path, place), node.name or f"{node.op_type}#{place}")
        for path, holder in bodies(model)
        for place, node in enumerate(holder.node)
        if inner.isdisjoint((*node.input, *node.output))
    }
