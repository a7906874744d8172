"""How values enter subgraphs and leave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.types.arithmetic import is_symbolic
from reducelower.types.call import HOLDERS, Call, Value
from reducelower.types.graphs import Graph
from reducelower.types.known import Question, Shape

__all__ = ["across", "carried"]

_SCAN_WITHOUT_BATCH = 9


class _Source(NamedTuple):
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


def across(question: Question, value: Value, ask: Callable[[Graph, Question, str], Any]) -> Any:
    """The answer for a value that enters a graph, or leaves one: what all of its sources, if any, have in common."""
    call = value.call
    sources = _sources_outside(value.home, value.name) if call is None else _sources_inside(call, value.place)
    if not sources or (sources[0].axes is None and question in ("rank", "shape")):
        return None
    if question == "contents":  # what a Loop or Scan carries changes
        is_sure = call is not None and call.op_type == "If" and len(sources) == 1
        return ask(sources[0].graph, question, sources[0].name) if is_sure else None
    answers = [ask(each.graph, question, each.name) for each in sources]
    if question == "shape":
        return None if None in answers else _sizes_across(value.home, sources[0], answers, ask)
    if answers[0] is None or answers.count(answers[0]) < len(answers):
        return None
    return answers[0] + sources[0].axes if question == "rank" else answers[0]


def _sizes_across(
    home: Graph, source: _Source, shapes: Sequence[Shape], ask: Callable[[Graph, Question, str], Any]
) -> Shape | None:
    """The common sizes of what enters or leaves a graph; None for a size in which they differ."""
    if len({*map(len, shapes)}) != 1:
        return None
    sizes = [each[0] if len({*each}) == 1 else None for each in zip(*shapes, strict=True)]
    axes = source.axes or 0
    if axes and source.is_moved:
        return (None,) * (len(sizes) + axes)
    if axes <= 0:
        return tuple(sizes[-axes:])
    along = ask(home, "shape", source.along) if source.along else None
    # A size that is not a number may differ between iterations.
    return along[0] if along else None, *(size if isinstance(size, int) else None for size in sizes)


def _is_followed(node: NodeProto, graph: Graph) -> bool:
    """Whether the outputs of a node follow from its subgraphs.

    A Scan of opset 8 has a batch axis, and a broken one may scan more inputs than it has.
    """
    if node.op_type != "Scan" or node.domain not in DEFAULT_DOMAINS:
        return node.op_type in HOLDERS and node.domain in DEFAULT_DOMAINS
    try:
        scanned = value_of(node, "num_scan_inputs", 0)
    except RefusedError:  # it refers to an attribute of a function
        return False
    is_sound = isinstance(scanned, int) and 0 < scanned <= len(node.input)
    return is_sound and graph.opset >= _SCAN_WITHOUT_BATCH


def carried(node: NodeProto) -> int:
    """How many inputs of a Scan are state variables; it scans the others."""
    return len(node.input) - int(value_of(node, "num_scan_inputs"))


def _sources_outside(graph: Graph, name: str) -> Sequence[_Source]:
    """The outer value that becomes an input of the body of a Loop or Scan, if it is known."""
    node, around, place = graph.node, graph.around, graph.inputs.get(name)
    if node is None or around is None or place is None or not _is_followed(node, around):
        return ()
    outer = node.input[place] if place < len(node.input) else ""
    if not outer:
        return ()
    if node.op_type == "Loop":
        return [_Source(around, outer, None)]  # it keeps its element type; its shape may change
    if place < carried(node):
        return [_Source(around, outer)]  # a state of a Scan keeps its shape
    return [_Source(around, outer, -1, any(value_of(node, "scan_input_axes", ())))]


def _sources_inside(call: Call, place: int) -> Sequence[_Source]:
    """The values inside a node's subgraphs that become an output."""
    node = call.node
    if call.inside is None:
        call.inside = call.graph.inside(node) if _is_followed(node, call.graph) else ()
    inside = call.inside
    axes: int | None = 0
    is_moved, along = False, ""
    if call.op_type == "If":
        taken = call.asked("contents", 0) if inside else None
        if taken is not None and taken.size == 1 and not is_symbolic(taken):
            branches = [each.name for each in node.attribute if each.HasField("g")]
            wanted = "then_branch" if taken else "else_branch"
            inside = [each for branch, each in zip(branches, inside, strict=False) if branch == wanted]
    elif call.op_type == "Loop":
        axes = None if place < len(call.inputs) - 2 else 1
        place += 1  # its body yields its condition first
    elif call.op_type == "Scan" and inside and place < carried(node):
        return [_Source(call.graph, call.inputs[place])]  # a state keeps its shape
    elif call.op_type == "Scan" and inside:
        axes, is_moved = 1, any(value_of(node, "scan_output_axes", ()))
        along = "" if any(value_of(node, "scan_input_axes", ())) else call.inputs[carried(node)]
    outputs = [(graph, graph.holder.output) for graph in inside]
    return [_Source(graph, names[place].name, axes, is_moved, along) for graph, names in outputs if place < len(names)]
