"""Draw a fragment of a graph as SVG: operators as boxes, values on the edges, in colours of the page's styles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reducelower.model.text import short, shown
from reducelower.report.fragments import Box, Fragment, Value
from reducelower.report.layout import Layout, Node, lay_out

__all__ = ["draw"]

_MARGIN = 6.0
_LETTER, _SMALL_LETTER = 7.3, 6.4  # widths of the monospaced letters at 12 and 10.5 px, rounded up
_LINE = 14.0
_GAP = 58.0
_LONGEST_NAME = 24
_LONGEST_KIND = 34


@dataclass(frozen=True)
class _End:
    """The start of a value, or the place where it leaves the picture."""

    kind: str
    name: str


def draw(fragment: Fragment, title: str) -> Markup:
    """The picture."""
    producers = _producers(fragment)
    nodes = list(_nodes(fragment, producers))
    layout = lay_out(nodes, _GAP)
    sizes = {node.key: node for node in nodes}
    parts = [*_edges(fragment, producers, layout, sizes)]
    for index, box in enumerate(fragment.boxes):
        parts.append(_box(box, layout.centers[index], sizes[index]))
    for name in fragment.inputs:
        parts.append(_pill(_End("input", name), fragment.values[name], layout, sizes))
    for name in fragment.outputs:
        parts.append(_pill(_End("output", name), fragment.values[name], layout, sizes))
    parts += _labels(fragment, layout, sizes)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    return Markup(
        '<svg class="graph" role="img" xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" '
        'viewBox="{m} {m} {w:.0f} {h:.0f}"><title>{title}</title><desc>{text}</desc>{parts}</svg>'
    ).format(w=width, h=height, m=-_MARGIN, title=shown(title), text=_in_words(fragment), parts=Markup("").join(parts))


def _producers(fragment: Fragment) -> dict[str, int | _End]:
    found: dict[str, int | _End] = {name: _End("input", name) for name in fragment.inputs}
    found.update((name, index) for index, box in enumerate(fragment.boxes) for name in box.outputs)
    return found


def _nodes(fragment: Fragment, producers: dict[str, int | _End]) -> Iterator[Node]:
    for name in fragment.inputs:
        yield _pill_node(_End("input", name), fragment.values[name], ())
    for index, box in enumerate(fragment.boxes):
        widths = [len(box.op_type) * _LETTER, *(len(line) * _SMALL_LETTER for line in box.lines)]
        label = sum(_label_width(fragment.values[name]) for name in _labelled(fragment, box))
        width = max(max(widths) + 22, 26.0 * len(box.inputs), 64.0)
        # A value of a later box would be a cycle, which no valid model has.
        reads = tuple(producers[name] for name in box.inputs if _is_above(producers[name], index))
        yield Node(index, width, 28 + _LINE * len(box.lines), label, reads)
    for name in fragment.outputs:
        yield _pill_node(_End("output", name), fragment.values[name], (producers[name],))


def _is_above(producer: int | _End, index: int) -> bool:
    return isinstance(producer, _End) or producer < index


def _pill_node(end: _End, value: Value, reads: tuple[int | _End, ...]) -> Node:
    return Node(end, _label_width(value) + 14, 40.0 if value.kind else 26.0, 0.0, reads)


def _label_width(value: Value) -> float:
    name, kind = _label(value.name), short(value.kind, _LONGEST_KIND)
    return max(len(name) * _LETTER, len(kind) * _SMALL_LETTER) + 6


def _labelled(fragment: Fragment, box: Box) -> list[str]:
    """The outputs of a box that are named on the edge; those that leave the picture are named at its end."""
    return [name for name in box.outputs if name not in fragment.outputs]


def _ports(fragment: Fragment, layout: Layout, sizes: dict[object, Node]) -> dict[str, tuple[float, float]]:
    """Where the edges of each value begin."""
    ports = {}
    for name in fragment.inputs:
        end = _End("input", name)
        x, y = layout.centers[end]
        ports[name] = (x, y + sizes[end].height / 2)
    for index, box in enumerate(fragment.boxes):
        x, y = layout.centers[index]
        node = sizes[index]
        room = max(node.width, node.room) if len(box.outputs) > 1 else 0.0
        for at, name in enumerate(box.outputs):
            ports[name] = (x - room / 2 + room * (at + 0.5) / len(box.outputs), y + node.height / 2)
    return ports


def _edges(
    fragment: Fragment, producers: dict[str, int | _End], layout: Layout, sizes: dict[object, Node]
) -> Iterator[Markup]:
    ports = _ports(fragment, layout, sizes)
    readers: list[tuple[int | _End, tuple[str, ...]]] = [
        (index, tuple(name for name in box.inputs if _is_above(producers[name], index)))
        for index, box in enumerate(fragment.boxes)
    ]
    readers += [(_End("output", name), (name,)) for name in fragment.outputs]
    for reader, names in readers:
        x, y = layout.centers[reader]
        node = sizes[reader]
        routes = {name: layout.routes[producers[name], reader] for name in names}
        order = sorted(names, key=lambda name: (routes[name] or [ports[name]])[-1][0])
        for at, name in enumerate(order):
            end = (x - node.width / 2 + node.width * (at + 1) / (len(order) + 1), y - node.height / 2)
            # A label stands where the edge begins, so the edge runs straight down past it first.
            straight = 34.0 if not isinstance(producers[name], _End) and name not in fragment.outputs else 4.0
            yield _edge(ports[name], routes[name], end, straight, fragment.values[name])


def _edge(
    start: tuple[float, float],
    waypoints: list[tuple[float, float]],
    end: tuple[float, float],
    straight: float,
    value: Value,
) -> Markup:
    path = [f"M{start[0]:.1f} {start[1]:.1f}v{straight:.1f}"]
    x, y = start[0], start[1] + straight
    for to_x, to_y in [*waypoints, (end[0], end[1] - 5)]:
        bend = max((to_y - y) / 2, 6.0)
        path.append(f"C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    head = f"M{end[0] - 3.5:.1f} {end[1] - 6:.1f}l3.5 6l3.5 -6z"
    return Markup('<g class="edge"><title>{} {}</title><path d="{}"/><path class="head" d="{}"/></g>').format(
        shown(value.name), value.kind, "".join(path), head
    )


def _box(box: Box, center: tuple[float, float], node: Node) -> Markup:
    left, top = center[0] - node.width / 2, center[1] - node.height / 2
    lines = Markup("").join(
        Markup('<text class="detail" x="{:.1f}" y="{:.1f}">{}</text>').format(center[0], top + 32 + _LINE * at, line)
        for at, line in enumerate(box.lines)
    )
    return Markup(
        '<g class="box{}"><title>{}</title><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="6"/>'
        '<text x="{:.1f}" y="{:.1f}">{}</text>{}</g>'
    ).format(
        " reduce" if box.op_type.startswith("Reduce") else "",
        shown(f"{box.op_type} {box.name}".strip()),
        left,
        top,
        node.width,
        node.height,
        center[0],
        top + 18,
        box.op_type,
        lines,
    )


def _pill(end: _End, value: Value, layout: Layout, sizes: dict[object, Node]) -> Markup:
    x, y = layout.centers[end]
    node = sizes[end]
    return Markup('<g class="end"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="13"/>{}</g>').format(
        x - node.width / 2,
        y - node.height / 2,
        node.width,
        node.height,
        _two_lines(value, x, y - (2 if value.kind else -4)),
    )


def _labels(fragment: Fragment, layout: Layout, sizes: dict[object, Node]) -> list[Markup]:
    ports = _ports(fragment, layout, sizes)
    return [
        Markup('<g class="value">{}</g>').format(_two_lines(fragment.values[name], ports[name][0], ports[name][1] + 14))
        for box in fragment.boxes
        for name in _labelled(fragment, box)
    ]


def _label(name: str) -> str:
    """The last part of a name, since exporters write the whole path of a module; the title has all of it."""
    return short(name.rstrip("/").rpartition("/")[2] or name, _LONGEST_NAME)


def _two_lines(value: Value, x: float, y: float) -> Markup:
    kind = (
        Markup('<text class="kind" x="{:.1f}" y="{:.1f}">{}</text>').format(x, y + 13, short(value.kind, _LONGEST_KIND))
        if value.kind
        else Markup("")
    )
    return Markup('<title>{} {}</title><text x="{:.1f}" y="{:.1f}">{}</text>{}').format(
        shown(value.name), value.kind, x, y, _label(value.name), kind
    )


def _in_words(fragment: Fragment) -> str:
    sentences = [f"{box.op_type} reads {_names(box.inputs)}, gives {_names(box.outputs)}." for box in fragment.boxes]
    return f"Opset {fragment.opset}. {' '.join(sentences)}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(shown, dict.fromkeys(names))) or "nothing"
