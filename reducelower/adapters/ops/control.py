"""If, Loop and Scan at their boundaries; not text, since their subgraphs are edited.

The engine legalizes the nodes in these subgraphs.

Sources: the pages of If (1, 11), Loop (1, 11), Scan (9, 16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError
from reducelower.model.attributes import make_node
from reducelower.model.value_info import may_be_of_one_shape, sizes, without_made_up_symbols


@rule("If", "below 11")
def _lower_if(op: Writer) -> None:
    """Branches had to yield the same shapes. Runtimes never checked that, but shape inference takes the shape of one
    branch for both. So shapes that differ, or may, have to be hidden from it.
    """
    branches = {
        attribute.name: attribute.g for attribute in op.node.attribute if attribute.type == AttributeProto.GRAPH
    }
    differing = []
    for index, results in enumerate(zip(*(graph.output for graph in branches.values()), strict=True)):
        stated = [sizes(value.type) for value in results]
        known = [
            sizes(op.scope.type_inside(op.node, number, value.name) or value.type)
            for number, value in enumerate(results)
        ]
        left, right = (own if own is not None else other for own, other in zip(stated, known, strict=True))
        one, other = known
        are_unlike = one is not None and other is not None and not may_be_of_one_shape(one, other)
        if left == right and not are_unlike:
            continue
        if are_unlike and op.scope.target_opset < _TILES_BY_COUNTS:
            raise RefusedError(
                f"its branches give different shapes: {results[0].name!r} and {results[1].name!r}",
                f"opset {_TILES_BY_COUNTS} is the oldest at which that works",
            )
        differing.append(index)
    if differing and op.scope.target_opset >= _TILES_BY_COUNTS:
        _hide_shapes(op, branches, differing)


_TILES_BY_COUNTS = 6
"""First opset version whose Tile takes a count per axis."""


def _hide_shapes(op: Writer, branches: Mapping[str, GraphProto], indices: Sequence[int]) -> None:
    """Hide the shapes of some results of branches from shape inference.

    Each result is reshaped to its own shape, repeated once. That count is computed from the condition, so inference
    does not know the length of the shape. Branches were legalized before, so every opset from 6 on must have the nodes.
    """
    for number, (name, graph) in enumerate(branches.items()):
        op.nodes = []
        is_taken = op.input(0) if name == "then_branch" else op.add("Not", op.input(0), tail="is_not")
        once = op.add("Reshape", op.add("Cast", is_taken, to=TensorProto.INT64), op.number(-1), tail="once")
        for index in indices:
            result = graph.output[index]
            element_type = result.type.tensor_type.elem_type or _element_type(op, number, result.name)
            shape = op.add("Tile", op.add("Shape", result.name), once, tail="its_shape")
            result.name = op.add("Reshape", result.name, shape, tail="result")
            result.type.Clear()
            if element_type:
                result.type.tensor_type.elem_type = element_type
        graph.node.extend(op.nodes)


def _element_type(op: Writer, number: int, name: str) -> int:
    """The element type of a value in a branch; zero if unknown."""
    inferred = op.scope.type_inside(op.node, number, name)
    return 0 if inferred is None else inferred.tensor_type.elem_type


@rule("Loop", "below 11")
def _lower_loop(op: Writer) -> None:
    """A loop had to carry at least one value, so it gets a number that nothing reads."""
    if len(op.node.input) > 2:
        return
    body, carried, yielded = _body(op.node), op.fresh("carried"), op.fresh("carried_on")
    for values, name, position in ((body.input, carried, len(body.input)), (body.output, yielded, 1)):
        rest = list(values)[position:]
        del values[position:]
        added = values.add(name=name)
        added.type.tensor_type.elem_type = TensorProto.FLOAT
        added.type.tensor_type.shape.SetInParent()
        values.extend(rest)
    body.node.append(make_node("Identity", [carried], [yielded]))
    while len(op.node.input) < 2:
        op.node.input.append("")
    op.node.input.append(op.scope.add_constant(np.array(0, np.float32), "zero"))
    # The output has a name, because onnxruntime crashes on a state without one.
    op.node.output.insert(0, op.fresh("last_carried"))


@rule("Scan", "below 16")
def _state_results(op: Writer) -> None:
    """State the types of the body's outputs: onnxruntime needs their ranks, and infers less from older nodes."""
    body = _body(op.node)
    for value in body.output:
        inferred = op.scope.type_inside(op.node, 0, value.name) if sizes(value.type) is None else None
        if sizes(inferred) is not None and inferred is not None:
            value.type.CopyFrom(without_made_up_symbols(inferred))


def _body(node: NodeProto) -> GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == "body")
