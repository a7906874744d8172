"""Say of the user's model what a later pass says of the model that it got, and merge the plans of both passes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from onnx import ModelProto, NodeProto

from reducelower.errors import Refusal
from reducelower.model.graph import inner_path, node_label, subgraphs
from reducelower.plan import Plan, Site

__all__ = ["Origins", "composed", "in_terms_of_source"]

_Place: TypeAlias = tuple[str, int]
"""The graph path and the position of a node."""


def composed(first: Plan, second: Plan, source: ModelProto, between: ModelProto, end: ModelProto) -> Plan:
    """One plan from `source` to `end`, with the sites of the first plan and those of the second in other places.

    What the second plan changes within nodes that the first wrote belongs to the first plan's site. What it raises
    from several nodes stands for every source node that these come from.
    """
    origins = Origins(source, between, first.sites)
    ends: dict[_Place, Sequence[int]] = {place: [at] for (_, at), place in Origins(between, end).kept.items()}
    ends |= {(site.graph, site.index): _places(site) for site in second.sites if not site.raised_from}
    moved: dict[Site, list[int]] = {site: [] for site in first.sites}
    for place, site in origins.written.items():
        moved[site] += ends.get(place, ())
    merged = {origins.written.get((site.graph, at)) for site in second.sites for at in site.raised_from}
    sites = [
        replace(site, first=min(places), count=max(places) - min(places) + 1) if places else site
        for site, places in moved.items()
        if site not in merged
    ]
    sites += filter(None, map(origins.site, second.sites))
    graphs = {path: number for number, path in enumerate(dict.fromkeys(site.graph for site in sites))}
    sites.sort(key=lambda site: (graphs[site.graph], site.index))
    covered = [sum(len(site.raised_from) or 1 for site in each) for each in (first.sites, sites)]
    return replace(
        first,
        sites=tuple(sites),
        carried=first.carried + covered[0] - covered[1],
        ir_version=(first.ir_version[0], second.ir_version[1]),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        assumes_nonempty=first.assumes_nonempty or second.assumes_nonempty,
        steps=(*first.steps, *second.steps),
    )


def in_terms_of_source(plan: Plan, source: ModelProto, changed: ModelProto, inner: Collection[str]) -> Plan:
    """The plan of a changed model in terms of the original one.

    Nodes that compute or read inner values are no sites, since only together they are equivalent to the original.
    """
    origins = Origins(source, changed, inner=inner)
    sites = tuple(filter(None, map(origins.site, plan.sites)))
    refusals = tuple(map(origins.refusal, plan.refusals))
    return replace(plan, sites=sites, refusals=refusals, carried=len(origins.kept) - len(sites))


class Origins:
    """Where the nodes come from of a model that a pass made of another.

    Attributes:
        kept: where each node stood that computes the same values by the same operator, by where it stands now.
        written: the sites of the pass, by where the nodes that they wrote stand.
    """

    def __init__(
        self, source: ModelProto, made: ModelProto, sites: Iterable[Site] = (), inner: Collection[str] = ()
    ) -> None:
        """Match both models; `sites` are those of the pass. No node that computes or reads an inner value is kept."""
        before, after, hidden = [*_nodes(source)], [*_nodes(made)], frozenset(inner)
        comparable = (each for each in before if hidden.isdisjoint((*each[2].input, *each[2].output)))
        kinds = {kind: place for kind, place, _ in comparable}
        self.kept = {place: kinds[kind] for kind, place, _ in after if kind in kinds}
        self._labels = {place: node_label(node, place[1]) for _, place, node in before}
        self._labelled = {(place[0], node_label(node, place[1])): place for _, place, node in after}
        made_paths = {kind[0]: path for kind, (path, _), _ in after}
        paths = {path: made_paths[kind[0]] for kind, (path, _), _ in before if kind[0] in made_paths}
        self.written = {(paths[site.graph], at): site for site in sites if site.graph in paths for at in _places(site)}

    def site(self, later: Site) -> Site | None:
        """A site of the made model as one of the source; None if it belongs to the site that wrote the node."""
        place = later.graph, later.index
        origins = self._origins(place) if later.raised_from or place not in self.written else ()
        if not origins:
            return None
        raised = {index for at in later.raised_from for _, index in self._origins((later.graph, at))}
        graph, index = max(origins)
        label = self._labels[graph, index]
        return replace(later, graph=graph, node=label, index=index, raised_from=tuple(sorted(raised)))

    def refusal(self, later: Refusal) -> Refusal:
        """A refusal of a node of the made model as one of the source node that it comes from."""
        place = self._labelled.get((later.graph, later.node), ("", 0))
        if site := self.written.get(place):
            reason = f"it becomes {later.operator}, and {later.reason}"
            return replace(later, graph=site.graph, node=site.node, operator=site.op_type, reason=reason)
        origin = self.kept.get(place)
        return later if origin is None else replace(later, graph=origin[0], node=self._labels[origin])

    def _origins(self, place: _Place) -> Sequence[_Place]:
        """The source nodes that a node comes from."""
        site = self.written.get(place)
        if site is not None:
            return [(site.graph, index) for index in site.raised_from or (site.index,)]
        return [self.kept[place]] if place in self.kept else []


def _nodes(model: ModelProto) -> Iterator[tuple[tuple[Hashable, ...], _Place, NodeProto]]:
    """The nodes of all graphs: the graph and what the node computes, where it stands, and the node itself.

    A graph is told by what the node around it computes, since there may be a position in its path.
    """
    pending: list[tuple[Hashable, str, Sequence[NodeProto]]] = [((), "graph", model.graph.node)]
    while pending:
        key, path, nodes = pending.pop()
        for at, node in enumerate(nodes):
            kind = key, node.op_type, *node.output
            yield kind, (path, at), node
            for _, attribute, graph in subgraphs(node):
                pending.append(((kind, attribute), inner_path(path, node, at, attribute), graph.node))


def _places(site: Site) -> range:
    """The positions of the nodes that a site wrote."""
    return range(site.first, site.first + site.count)
