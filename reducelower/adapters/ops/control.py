"""If, Loop and Scan at their boundaries; what their graphs hold is made legal by the engine.

Sources: https://onnx.ai/onnx/operators/onnx__If.html (1, 11), https://onnx.ai/onnx/operators/onnx__Loop.html (1, 11),
https://onnx.ai/onnx/operators/onnx__Scan.html (8, 9, 11).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import set_attribute, value_of
from reducelower.model.build import copy_marks, make_node
from reducelower.model.value_info import without_made_up_symbols
from reducelower.scope.scope import Scope


def _sizes(value_type: TypeProto | None) -> list[int | None] | None:
    """The sizes of a tensor, None where they are not numbers; None where the rank is not stated."""
    if value_type is None or not value_type.tensor_type.HasField("shape"):
        return None
    dims = value_type.tensor_type.shape.dim
    return [dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in dims]


@lowers("If", 11)
def _lower_if(node: NodeProto, scope: Scope) -> Outcome:
    """Branches had to give the same shapes; runtimes never asked, so only differences that are known are refused."""
    branches = [attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH]
    for one, other in zip(*(graph.output for graph in branches), strict=True):
        left, right = (
            _sizes(value.type if _sizes(value.type) is not None else scope.type_inside(node, number, value.name))
            for number, value in enumerate((one, other))
        )
        if left is None or right is None:
            continue
        if len(left) != len(right) or any(a != b for a, b in zip(left, right, strict=True) if None not in (a, b)):
            condition = scope.constant(node.input[0])
            if condition is not None:  # the branch that is not taken may as well be the other
                taken = "then_branch" if condition.reshape(-1)[0] else "else_branch"
                chosen = next(attribute.g for attribute in node.attribute if attribute.name == taken)
                for graph in branches:
                    if graph is not chosen:
                        graph.CopyFrom(chosen)
                return None
            raise RefusedError(
                f"its branches give different shapes: {one.name!r} and {other.name!r}",
                "opset 11 is the oldest that allows it",
            )
    return None


@lowers("Loop", 11)
def _lower_loop(node: NodeProto, scope: Scope) -> Outcome:
    """At least one value had to be carried from iteration to iteration: a number that nothing reads will do."""
    if len(node.input) > 2:
        return None
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    stem = node.name or next(filter(None, node.output), "Loop")
    carried = scope.fresh(stem, "/Loop/carried")
    yielded = scope.fresh(stem, "/Loop/carried_on")
    for values, name, place in ((body.input, carried, len(body.input)), (body.output, yielded, 1)):
        kept = list(values)[place:]
        del values[place:]
        added = values.add(name=name)
        added.type.tensor_type.elem_type = TensorProto.FLOAT
        added.type.tensor_type.shape.SetInParent()
        values.extend(kept)
    body.node.append(make_node("Identity", [carried], [yielded]))
    while len(node.input) < 2:
        node.input.append("")
    node.input.append(scope.add_constant(np.array(0, np.float32), "zero"))
    # It has a name, because onnxruntime crashes on a state that has none.
    node.output.insert(0, scope.fresh(stem, "/Loop/last_carried"))
    return None


@lowers("Scan", 16)
def _state_results(node: NodeProto, scope: Scope) -> Outcome:
    """Let the body state what it yields: onnxruntime wants to know the ranks, which older nodes tell less of."""
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    for value in body.output:
        known = scope.type_inside(node, 0, value.name) if _sizes(value.type) is None else None
        if _sizes(known) is not None and known is not None:
            value.type.CopyFrom(without_made_up_symbols(known))
    return None


@lowers("Scan", 11)
def _lower_scan(node: NodeProto, scope: Scope) -> Outcome:
    """Axes were counted from the front."""
    count = int(value_of(node, "num_scan_inputs"))
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    inputs = list(node.input)[len(node.input) - count :]
    states = len(node.input) - count

    def output_rank(index: int) -> int:
        sizes = _sizes(body.output[states + index].type)
        return scope.needed_rank(node.output[states + index]) if sizes is None else len(sizes) + 1

    _count_from_the_front(node, "scan_input_axes", lambda index: scope.needed_rank(inputs[index]))
    _count_from_the_front(node, "scan_output_axes", output_rank)
    return None


def _count_from_the_front(node: NodeProto, attribute: str, rank_of: Callable[[int], int]) -> None:
    axes = value_of(node, attribute, ())
    if any(axis < 0 for axis in axes):
        counted = [axis if axis >= 0 else from_the_front(axis, rank_of(index)) for index, axis in enumerate(axes)]
        set_attribute(node, attribute, counted)


@raises("Scan", 9)
def _raise_batches(node: NodeProto, scope: Scope) -> Outcome:
    """There was a batch axis in front of everything: another Scan goes along it, with the old one as its body."""
    if node.input[0]:
        raise RefusedError("it uses sequence_lens, which Scan does not have since opset 9", "stay at opset 8")
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    stem = node.name or next(filter(None, node.output), "Scan")
    count = int(value_of(node, "num_scan_inputs"))
    states = len(node.input) - 1 - count
    batch = GraphProto(name=f"{body.name or stem}_batch")
    inner = NodeProto(op_type="Scan", name=scope.fresh(stem, "/Scan/one"))
    for attribute in node.attribute:
        inner.attribute.add().CopyFrom(attribute)
        if attribute.name == "directions":
            inner.attribute[-1].name = "scan_input_directions"
    for index, value in enumerate(body.input):
        inner.input.append(_one_of_batch(batch.input.add(), value.type, scope.fresh(stem, "/Scan/in"), index >= states))
    for index, value in enumerate(body.output):
        inner.output.append(
            _one_of_batch(batch.output.add(), value.type, scope.fresh(stem, "/Scan/out"), index >= states)
        )
    batch.node.append(inner)
    outer = make_node("Scan", list(node.input)[1:], list(node.output), body=batch, num_scan_inputs=states + count)
    copy_marks(node, outer)
    return [outer]


def _one_of_batch(value: ValueInfoProto, inner: TypeProto, name: str, is_scanned: bool) -> str:
    """State the type of one element of a batch: what the inner Scan sees, with its sequence in front."""
    value.name = name
    tensor = value.type.tensor_type
    tensor.elem_type = inner.tensor_type.elem_type
    if inner.tensor_type.HasField("shape"):
        tensor.shape.SetInParent()
        if is_scanned:
            tensor.shape.dim.add()
        tensor.shape.dim.extend(inner.tensor_type.shape.dim)
    return name
