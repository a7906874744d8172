"""How values enter subgraphs and leave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.numbers import Array
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.types.call import HOLDERS, Call
from reducelower.types.contents import tensor
from reducelower.types.graphs import Graph
from reducelower.types.known import Question, Shape
from reducelower.types.sizes import Size

__all__ = ["Source", "carried", "in_common", "is_followed", "source_outside", "sources_inside"]

_SCAN_WITHOUT_BATCH = 9


class Source(NamedTuple):
    """A value that enters a graph from outside, or leaves one.

    Attributes:
        graph: the graph that defines it.
        name: its name there.
        axes: how many axes it gains in front on its way, negative if it loses any; None if its shape may change.
        is_moved: whether that axis is somewhere else.
        along: a value of the enclosing graph whose first axis is as long as the one gained; empty if none is known.
    """

    graph: Graph
    name: str
    axes: int | None = 0
    is_moved: bool = False
    along: str = ""


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
    if place < carried(node):
        return Source(around, outer)  # a state of a Scan keeps its shape
    return Source(around, outer, -1, any(value_of(node, "scan_input_axes", ())))


def sources_inside(call: Call, place: int, taken: bool | None) -> Sequence[Source]:
    """The values inside a node's subgraphs that become an output. `taken` is the condition of an If, if it is known."""
    node, home, inside = call.node, call.graph, call.inside or ()
    axes: int | None = 0
    is_moved, along = False, ""
    if call.op_type == "If" and taken is not None:
        branches = [each.name for each in node.attribute if each.HasField("g")]
        wanted = "then_branch" if taken else "else_branch"
        inside = [each for branch, each in zip(branches, inside, strict=True) if branch == wanted]
    elif call.op_type == "Loop":
        axes = None if place < len(call.inputs) - 2 else 1
        place += 1  # its body yields its condition first
    elif call.op_type == "Scan" and place < carried(node):
        return [Source(home, call.inputs[place])]  # a state keeps its shape
    elif call.op_type == "Scan":
        axes, is_moved = 1, any(value_of(node, "scan_output_axes", ()))
        along = "" if any(value_of(node, "scan_input_axes", ())) else call.inputs[carried(node)]
    outputs = [(graph, graph.holder.output) for graph in inside]
    return [Source(graph, names[place].name, axes, is_moved, along) for graph, names in outputs if place < len(names)]


def in_common(question: Question, sources: Sequence[Source], ask: Callable[[Graph, Question, str], Any]) -> Any:
    """The answer for a value that enters or leaves a graph: what all of its sources, if any, have in common."""
    axes = sources[0].axes if sources else None
    is_of_type = question in ("element_type", "container")
    if not sources or (not is_of_type and (axes is None or (question == "contents" and axes))):
        return None
    answers = [ask(each.graph, question, each.name) for each in sources]
    if is_of_type or question == "rank":
        first = answers[0] if answers.count(answers[0]) == len(answers) else None
        return first + axes if question == "rank" and first is not None else first
    if question == "contents":
        return _agreed_contents(*answers)
    agreed = _agreed(*answers)
    if agreed is None or not axes:
        return agreed
    if sources[0].is_moved:
        return (None,) * (len(agreed) + axes)
    if axes < 0:
        return agreed[1:]
    gained = ask(sources[0].graph, "shape", sources[0].along) if sources[0].along else None
    # A size that is not a number may differ between iterations.
    numbers = tuple(size if isinstance(size, int) else None for size in agreed)
    return gained[0] if gained else None, *numbers


def _agreed_contents(first: Array | None, *others: Array | None) -> Array | None:
    """The common contents of tensors of one shape; None for an element in which they differ."""
    alike = [each for each in others if each is not None and first is not None and each.shape == first.shape]
    if first is None or len(alike) < len(others):
        return None
    elements = _agreed(*(each.reshape(-1).tolist() for each in (first, *alike)))
    return None if elements is None else tensor(elements, first.shape)


def _agreed(*vectors: Sequence[Size | None] | None) -> Shape | None:
    """The common sizes of shapes of one length; None for a size in which they differ."""
    known = [each for each in vectors if each is not None]
    if len(known) < len(vectors) or len(set(map(len, known))) != 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*known, strict=True))
