"""One plan of two steps: a conversion, and raising what it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import ModelProto, NodeProto

from reducelower.model.graph import bodies
from reducelower.plan import Plan, Site

__all__ = ["joined"]


def joined(conversion: Plan, raising: Plan, converted: ModelProto, raised: ModelProto) -> Plan:
    """The plan that leads from what was converted to what was raised.

    A site of the conversion whose nodes went into an operator that was raised is part of that one's.
    """
    between, end = ({path: body.node for path, body in bodies(model)} for model in (converted, raised))
    paths = dict.fromkeys(site.graph for site in (*conversion.sites, *raising.sites))
    sites: list[Site] = []
    for path in paths:
        first = [site for site in conversion.sites if site.graph == path]
        second = [site for site in raising.sites if site.graph == path]
        gone = {position for site in second for position in site.raised_from}
        kept = [site for site in first if not gone.intersection(range(site.first, site.first + site.count))]
        places = {name: place for place, node in enumerate(end[path]) for name in node.output if name}
        moved = [replace(site, first=_forward(site, between[path], places)) for site in kept]
        sites += sorted((*moved, *(_in_source(site, first) for site in second)), key=lambda site: site.index)
    absorbed = len(conversion.sites) - sum(not site.raised_from for site in sites)
    return replace(
        conversion,
        sites=tuple(sites),
        carried=conversion.carried + absorbed - sum(len(site.raised_from) for site in sites),
        ir_version=(conversion.ir_version[0], raising.ir_version[1]),
        notes=tuple(dict.fromkeys((*conversion.notes, *raising.notes))),
    )


def _back(position: int, sites: Sequence[Site]) -> int:
    """Position in the source of a node of the converted graph."""
    shift = 0
    for site in sites:
        if site.first <= position < site.first + site.count:
            return site.index
        if site.first + site.count <= position:
            shift += site.count - 1
    return position - shift


def _in_source(site: Site, sites: Sequence[Site]) -> Site:
    """A site of the raising with the positions that its nodes had before the conversion."""
    positions = {_back(position, sites) for position in site.raised_from}
    return replace(site, index=_back(site.index, sites), raised_from=tuple(sorted(positions)))


def _forward(site: Site, nodes: Sequence[NodeProto], places: Mapping[str, int]) -> int:
    """Position in the result of the first node of a site that stayed; nodes keep the names of what they yield."""
    names = [name for node in nodes[site.first : site.first + site.count] for name in node.output]
    return min((places[name] for name in names if name in places), default=site.first)
