"""One plan for two that were carried out one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from onnx import ModelProto, NodeProto

from reducelower.model.graph import bodies
from reducelower.plan import Plan, Site

__all__ = ["composed"]


def composed(first: Plan, second: Plan, source: ModelProto, between: ModelProto, end: ModelProto) -> Plan:
    """One plan from a model to the last one: the sites of the first plan, and those of the second elsewhere.

    What the second changes inside of something that the first wrote belongs to that site. What it puts together of
    several nodes stands for all that these come from.
    """
    start, middle, last = ({path: body.node for path, body in bodies(model)} for model in (source, between, end))
    sites: list[Site] = []
    for path in dict.fromkeys(site.graph for site in (*first.sites, *second.sites)):
        own, further = ([site for site in plan.sites if site.graph == path] for plan in (first, second))
        if path in start and path in middle and path in last:
            own = list(_of_both(own, further, start[path], middle[path], last[path]))
        sites += sorted(own, key=lambda site: site.index)
    sources = [sum(len(site.raised_from) or 1 for site in each) for each in (first.sites, sites)]
    return replace(
        first,
        sites=tuple(sites),
        carried=first.carried + sources[0] - sources[1],
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
    origins, places = _places(start), _places(last)
    inside = {place: site for site in own for place in range(site.first, site.first + site.count)}

    def back(place: int) -> tuple[int, ...]:
        """Where a node of the model in between comes from."""
        if place in inside:
            return inside[place].raised_from or (inside[place].index,)
        return tuple({origins[name] for name in middle[place].output if name in origins})

    changed = {site.index: site for site in further if not site.raised_from}
    gone = {place for site in further for place in site.raised_from}
    for site in own:
        held = range(site.first, site.first + site.count)
        if gone.isdisjoint(held):
            nodes = [
                range(changed[place].first, changed[place].first + changed[place].count)
                if place in changed
                else [places[name] for name in middle[place].output if name in places]
                for place in held
            ]
            found = [place for each in nodes for place in each]
            yield replace(site, first=min(found), count=max(found) - min(found) + 1) if found else site
    for site in further:
        if site.raised_from:
            positions = sorted({origin for place in site.raised_from for origin in back(place)})
            yield replace(site, index=max(back(site.index)), raised_from=tuple(positions))
        elif site.index not in inside and (known := back(site.index)):
            yield replace(site, index=max(known))


def _places(nodes: Sequence[NodeProto]) -> Mapping[str, int]:
    return {name: place for place, node in enumerate(nodes) for name in node.output if name}
