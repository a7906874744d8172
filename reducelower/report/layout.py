"""Lays a small graph out in layers, top to bottom: longest path, barycenter order, least squares positions.

The steps are those of Sugiyama, Tagawa and Toda (1981). A value that crosses layers gets a waypoint in each, shared by
all who read it, so that edges do not run through boxes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Layout", "Node", "lay_out"]

_SWEEPS = 6
_SIDE_GAP = 22.0
_WAYPOINT_WIDTH = 10.0


@dataclass(frozen=True)
class Node:
    """A rectangle to place.

    Attributes:
        key: identifies it.
        room: width that its layer keeps free for it; at least its own.
        reads: keys of the nodes above that it reads from, one per edge.
    """

    key: Hashable
    width: float
    height: float
    room: float
    reads: tuple[Hashable, ...] = ()


@dataclass
class Layout:
    """The middle of each node, the waypoints of each edge (from, to), and the size of the whole."""

    centers: dict[Hashable, tuple[float, float]]
    routes: dict[tuple[Hashable, Hashable], list[tuple[float, float]]]
    width: float
    height: float


@dataclass
class _Cell:
    """A node or a waypoint in a layer."""

    key: Hashable
    room: float
    above: list[_Cell] = field(default_factory=list)
    below: list[_Cell] = field(default_factory=list)
    at: float = 0.0


def lay_out(nodes: Sequence[Node], gap: float) -> Layout:
    """Place nodes, each below those it reads.

    Every node comes after those that it reads; the gap is the distance between layers.
    """
    by_key = {node.key: node for node in nodes}
    depth = _depths(nodes)
    layers: list[list[_Cell]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    cells: dict[tuple[Hashable, int], _Cell] = {}
    for node in nodes:
        cells[node.key, depth[node.key]] = cell = _Cell(node.key, max(node.room, node.width) + _SIDE_GAP)
        layers[depth[node.key]].append(cell)
    for node in nodes:
        for source in dict.fromkeys(node.reads):
            _connect(source, node.key, depth, cells, layers)
    _order(layers)
    _place(layers)
    return _measured(nodes, by_key, depth, layers, cells, gap)


def _depths(nodes: Sequence[Node]) -> dict[Hashable, int]:
    depth: dict[Hashable, int] = {}
    for node in nodes:
        depth[node.key] = max((depth[source] + 1 for source in node.reads), default=0)
    # A node that reads nothing is placed right above its first reader, not at the top.
    for node in reversed(nodes):
        readers = [depth[other.key] for other in nodes if node.key in other.reads]
        if not node.reads and readers:
            depth[node.key] = min(readers) - 1
    return depth


def _connect(
    source: Hashable,
    reader: Hashable,
    depth: Mapping[Hashable, int],
    cells: dict[tuple[Hashable, int], _Cell],
    layers: list[list[_Cell]],
) -> None:
    upper = cells[source, depth[source]]
    for level in range(depth[source] + 1, depth[reader]):
        waypoint = cells.get((source, level))
        if waypoint is None:
            waypoint = cells[source, level] = _Cell(source, _WAYPOINT_WIDTH + _SIDE_GAP)
            layers[level].append(waypoint)
            upper.below.append(waypoint)
            waypoint.above.append(upper)
        upper = waypoint
    lower = cells[reader, depth[reader]]
    upper.below.append(lower)
    lower.above.append(upper)


def _order(layers: list[list[_Cell]]) -> None:
    """Order each layer by the mean place of its neighbours, down and up again."""
    for sweep in range(_SWEEPS):
        downward = sweep % 2 == 0
        for layer in layers if downward else reversed(layers):
            place = {id(cell): at for other in layers for at, cell in enumerate(other)}
            layer.sort(key=lambda cell: _mean_place(cell, place, downward))


def _mean_place(cell: _Cell, place: Mapping[int, int], downward: bool) -> float:
    neighbours = cell.above if downward else cell.below
    if not neighbours:
        return float(place[id(cell)])
    return sum(place[id(other)] for other in neighbours) / len(neighbours)


def _place(layers: list[list[_Cell]]) -> None:
    for layer in layers:
        edge = 0.0
        for cell in layer:
            cell.at = edge + cell.room / 2
            edge += cell.room
    for sweep in range(_SWEEPS):
        downward = sweep % 2 == 0
        for layer in layers if downward else reversed(layers):
            wanted = []
            for cell in layer:
                near = cell.above if downward else cell.below
                wanted.append(sum(other.at for other in near) / len(near) if near else cell.at)
            for cell, at in zip(layer, _apart(wanted, [cell.room for cell in layer]), strict=True):
                cell.at = at


def _apart(wanted: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """The positions nearest to the wanted ones (least squares) without overlap: pool adjacent violators."""
    offsets = [0.0] if rooms else []  # a layer is empty if all its nodes moved down to their readers
    for left, right in pairwise(rooms):
        offsets.append(offsets[-1] + (left + right) / 2)
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=True):
        blocks.append((place - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (right, many), (left, few) = blocks.pop(), blocks.pop()
            blocks.append(((right * many + left * few) / (many + few), many + few))
    places = [place for place, count in blocks for _ in range(count)]
    return [place + offset for place, offset in zip(places, offsets, strict=True)]


def _measured(
    nodes: Sequence[Node],
    by_key: Mapping[Hashable, Node],
    depth: Mapping[Hashable, int],
    layers: list[list[_Cell]],
    cells: Mapping[tuple[Hashable, int], _Cell],
    gap: float,
) -> Layout:
    everything = [cell for layer in layers for cell in layer]
    left = min((cell.at - cell.room / 2 for cell in everything), default=0.0)
    width = max((cell.at + cell.room / 2 for cell in everything), default=0.0) - left
    heights = [
        max((by_key[cell.key].height for cell in layer if depth[cell.key] == level), default=0.0)
        for level, layer in enumerate(layers)
    ]
    middles = [sum(heights[:level]) + gap * level + height / 2 for level, height in enumerate(heights)]
    centers = {node.key: (cells[node.key, depth[node.key]].at - left, middles[depth[node.key]]) for node in nodes}
    routes = {
        (source, node.key): [
            (cells[source, level].at - left, middles[level]) for level in range(depth[source] + 1, depth[node.key])
        ]
        for node in nodes
        for source in node.reads
    }
    return Layout(centers, routes, width, sum(heights) + gap * (len(heights) - 1))
