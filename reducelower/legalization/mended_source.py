"""Whole-model changes made before legalization, and how the plan is then expressed in terms of the original model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, ModelProto

from reducelower.model.graph import graphs
from reducelower.plan import Plan, Site

__all__ = ["Mended", "in_terms_of_source", "joined", "main_graphs"]


@dataclass(frozen=True)
class Mended:
    """A whole-model change.

    Attributes:
        said: a sentence that describes it.
        origins: for each graph, outer ones first, the old position of each node or of the node it replaces.
        inner: the values that changed or were removed.
    """

    said: str
    origins: tuple[Sequence[int], ...]
    inner: frozenset[str]


def joined(first: Mended | None, later: Mended | None) -> Mended | None:
    """One change followed by another."""
    if first is None or later is None:
        return first or later
    pairs = zip(first.origins, later.origins, strict=True)
    origins = tuple([before[place] for place in places] for before, places in pairs)
    return Mended(f"{first.said}; {later.said}", origins, first.inner | later.inner)


def main_graphs(model: ModelProto) -> list[GraphProto]:
    """The main graph and its subgraphs, outer ones first."""
    return [graph for _, graph in _by_path(model)]


def _by_path(model: ModelProto) -> list[tuple[str, GraphProto]]:
    return [(path, graph) for path, graph in graphs(model) if path.startswith("graph")]


def in_terms_of_source(plan: Plan, mended: Mended, source: ModelProto, made: ModelProto) -> Plan:
    """The plan of a changed model in terms of the original one.

    Nodes that compute or read inner values are no sites, since only together they are equivalent to the original.
    """
    before, after = map(_by_path, (source, made))
    sites: list[Site] = []
    added = joined = 0
    for (path, graph), (made_path, made_graph), origins in zip(before, after, mended.origins, strict=True):
        found = {site.index: site for site in plan.sites if site.graph == made_path}
        added += len(origins) - len(graph.node)
        numbers: dict[int, list[int]] = {place: [] for place in range(len(graph.node))}
        for number, origin in enumerate(origins):
            numbers[origin].append(number)
        first = 0
        for place, node in enumerate(graph.node):
            kinds = [made_graph.node[number].op_type for number in numbers[place]]
            done = [found[number] for number in numbers[place] if number in found]
            count = sum(found[number].count if number in found else 1 for number in numbers[place])
            if not mended.inner.isdisjoint((*node.input, *node.output)):
                joined += bool(done) or kinds != [node.op_type]
            elif done:
                named = node.name or f"{node.op_type}#{place}"
                sites.append(replace(done[0], graph=path, node=named, index=place, first=first))
            first += count
    inside = {site.graph for site in plan.sites} - {path for path, _ in after}  # of functions
    kept = [site for site in plan.sites if site.graph in inside]
    carried = plan.carried + len(plan.sites) - added - joined - len(sites) - len(kept)
    return replace(plan, sites=(*sites, *kept), carried=carried, notes=(mended.said, *plan.notes))
