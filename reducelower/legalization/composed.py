"""Merge two plans, carried out one after the other, into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from onnx import ModelProto, NodeProto

from reducelower.model.graph import bodies
from reducelower.plan import Plan, Site

__all__ = ["composed"]


def composed(first: Plan, second: Plan, source: ModelProto, between: ModelProto, end: ModelProto) -> Plan:
    """One plan from `source` to `end`, with the sites of the first plan and those of the second in other places.

    What the second plan changes within nodes that the first wrote belongs to the first plan's site. What it raises
    from several nodes stands for every source node that these come from.
    """
    start, middle, last = ({path: body.node for path, body in bodies(model)} for model in (source, between, end))
    sites: list[Site] = []
    for path in dict.fromkeys(site.graph for site in (*first.sites, *second.sites)):
        sites_here, further_here = ([site for site in plan.sites if site.graph == path] for plan in (first, second))
        if path in start and path in middle and path in last:
            sites_here = list(_of_both(sites_here, further_here, start[path], middle[path], last[path]))
        sites += sorted(sites_here, key=lambda site: site.index)
    covered = [sum(len(site.raised_from) or 1 for site in each) for each in (first.sites, sites)]
    return replace(
        first,
        sites=tuple(sites),
        carried=first.carried + covered[0] - covered[1],
        ir_version=(first.ir_version[0], second.ir_version[1]),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        left=second.left,
        assumes_nonempty=first.assumes_nonempty or second.assumes_nonempty,
        steps=(*first.steps, *second.steps),
    )


def _of_both(
    own: Sequence[Site],
    further: Sequence[Site],
    start: Sequence[NodeProto],
    middle: Sequence[NodeProto],
    last: Sequence[NodeProto],
) -> Iterable[Site]:
    """The sites of one graph."""
    start_places, last_places = _places(start), _places(last)
    inside = {place: site for site in own for place in range(site.first, site.first + site.count)}

    def origins_of(place: int) -> tuple[int, ...]:
        """The positions in the source that a node of the middle model comes from."""
        if place in inside:
            return inside[place].raised_from or (inside[place].index,)
        return tuple({start_places[name] for name in middle[place].output if name in start_places})

    changed = {site.index: site for site in further if not site.raised_from}
    merged = {place for site in further for place in site.raised_from}
    for site in own:
        written = range(site.first, site.first + site.count)
        if merged.isdisjoint(written):
            nodes = [
                range(changed[place].first, changed[place].first + changed[place].count)
                if place in changed
                else [last_places[name] for name in middle[place].output if name in last_places]
                for place in written
            ]
            new_places = [place for each in nodes for place in each]
            yield (
                replace(site, first=min(new_places), count=max(new_places) - min(new_places) + 1)
                if new_places
                else site
            )
    for site in further:
        if site.raised_from:
            positions = sorted({origin for place in site.raised_from for origin in origins_of(place)})
            yield replace(site, index=max(origins_of(site.index)), raised_from=tuple(positions))
        elif site.index not in inside and (source_places := origins_of(site.index)):
            yield replace(site, index=max(source_places))


def _places(nodes: Sequence[NodeProto]) -> Mapping[str, int]:
    return {name: place for place, node in enumerate(nodes) for name in node.output if name}
