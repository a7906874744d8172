"""How values enter subgraphs and leave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.types.graphs import Graph
from reducelower.types.known import UNKNOWN, Question
from reducelower.types.sizes import Size

__all__ = ["HOLDERS", "Source", "carried", "in_common", "is_followed", "source_outside", "sources_inside"]

HOLDERS = frozenset({"If", "Loop", "Scan"})
"""Operators of the default domain whose subgraphs are followed."""

_SCAN_WITHOUT_BATCH = 9


class Source(NamedTuple):
    """A value that enters a graph from outside, or leaves one.

    Attributes:
        graph: the graph that defines it.
        name: its name there.
        axes: how many axes it gains on its way, negative if it loses any; None if its shape may change.
        at: the position of that axis.
        along: graph, name and axis of a value with the size of the gained axis; None if unknown.
    """

    graph: Graph
    name: str
    axes: int | None = 0
    at: int = 0
    along: tuple[Graph, str, int] | None = None


def is_followed(node: NodeProto, graph: Graph) -> bool:
    """Whether the outputs of a node follow from its subgraphs."""
    is_holder = node.domain in DEFAULT_DOMAINS and node.op_type in HOLDERS
    return is_holder and (node.op_type != "Scan" or _is_followed_scan(node, graph))


def _is_followed_scan(node: NodeProto, graph: Graph) -> bool:
    """A Scan of opset 8 has a batch axis, and a broken one may scan more inputs than it has."""
    try:
        scanned = value_of(node, "num_scan_inputs", 0)
    except RefusedError:  # it refers to an attribute of a function
        return False
    is_sound = isinstance(scanned, int) and 0 < scanned <= len(node.input)
    return is_sound and graph.opset >= _SCAN_WITHOUT_BATCH


def carried(node: NodeProto) -> int:
    """How many inputs of a Scan are state variables; it scans the others."""
    return len(node.input) - int(value_of(node, "num_scan_inputs"))


def source_outside(graph: Graph, name: str) -> Source | None:
    """The outer value that becomes an input of the body of a Loop or Scan; None if unknown."""
    node, around, place = graph.node, graph.around, graph.inputs.get(name)
    if node is None or around is None or place is None or not is_followed(node, around):
        return None
    outer = node.input[place] if place < len(node.input) else ""
    if not outer:
        return None
    if node.op_type == "Loop":
        return Source(around, outer, None)  # it keeps its element type; its shape may change
    if place >= carried(node):
        return Source(around, outer, -1, _scanned(node, "scan_input_axes", place))
    return Source(around, outer)  # a state of a Scan keeps its shape


def _scanned(node: NodeProto, axes: str, place: int) -> int:
    """The axis along which a Scan reads an input or stacks an output; the first by default."""
    stated, at = value_of(node, axes), place - carried(node)
    return stated[at] if isinstance(stated, list) and at < len(stated) and isinstance(stated[at], int) else 0


def sources_inside(
    node: NodeProto, place: int, home: Graph, inside: Sequence[Graph], taken: bool | None
) -> Sequence[Source]:
    """The values inside a node's subgraphs that become an output. `taken` is the condition of an If, if it is known."""
    axes: int | None = 0
    at, along = 0, None
    if node.op_type == "If" and taken is not None:
        branches = [each.name for each in node.attribute if each.HasField("g")]
        wanted = "then_branch" if taken else "else_branch"
        inside = [each for branch, each in zip(branches, inside, strict=True) if branch == wanted]
    elif node.op_type == "Loop":
        axes = None if place < len(node.input) - 2 else 1
        place += 1  # its body yields its condition first
    elif node.op_type == "Scan" and place < carried(node):
        return [Source(home, node.input[place])]  # a state keeps its shape
    elif node.op_type == "Scan":
        axes, at, first = 1, _scanned(node, "scan_output_axes", place), carried(node)
        along = home, node.input[first], _scanned(node, "scan_input_axes", first)
    outputs = [(graph, graph.holder.output) for graph in inside]
    return [Source(graph, names[place].name, axes, at, along) for graph, names in outputs if place < len(names)]


def in_common(question: Question, sources: Sequence[Source], ask: Callable[[Graph, Question, str], Any]) -> Any:
    """The answer for a value that enters or leaves a graph: what all of its sources have in common."""
    if not sources:
        return UNKNOWN[question]
    axes = sources[0].axes
    is_of_type = question in ("element_type", "container")
    if not is_of_type and (axes is None or (question == "elements" and axes)):
        return UNKNOWN[question]
    answers = [ask(each.graph, question, each.name) for each in sources]
    if is_of_type or question == "rank":
        first = answers[0]
        if any(each != first for each in answers):
            return UNKNOWN[question]
        return first + axes if question == "rank" and first is not None else first
    agreed = _agreed(*answers)
    if agreed is None or not axes:
        return agreed
    rank = len(agreed) + max(axes, 0)
    if not -rank <= sources[0].at < rank:
        return None
    at = sources[0].at % rank
    if axes < 0:
        return agreed[:at] + agreed[at + 1 :]
    # A size that is not a number may differ between iterations.
    sizes = [size if isinstance(size, int) else None for size in agreed]
    return *sizes[:at], _size_along(sources[0], ask), *sizes[at:]


def _size_along(source: Source, ask: Callable[[Graph, Question, str], Any]) -> Size | None:
    """The size of the axis that a value gains."""
    if source.along is None:
        return None
    graph, name, axis = source.along
    shape = ask(graph, "shape", name)
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def _agreed(*vectors: Sequence[Size | None] | None) -> tuple[Size | None, ...] | None:
    """The common sizes of shapes, or contents, of one length; None for a size in which they differ."""
    known = [each for each in vectors if each is not None]
    if len(known) < len(vectors) or len(set(map(len, known))) != 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*known, strict=True))
