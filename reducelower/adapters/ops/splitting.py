"""Split at its boundaries: how the parts are given.

Sources: https://onnx.ai/onnx/operators/onnx__Split.html (1, 2, 13, 18).
"""

from __future__ import annotations

from typing import Any

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope


@lowers("Split", 18)
def _lower_number_of_outputs(node: NodeProto, scope: Scope) -> Outcome:
    """Before, parts were equal unless given; num_outputs leaves a smaller one at the end where the size says so."""
    attribute = attribute_of(node, "num_outputs")
    if attribute is None:
        return None
    count = int(value_of(node, "num_outputs"))
    named = len(node.output)
    if count != named:
        raise RefusedError(
            f"its num_outputs is {count}, but it names {named} outputs, and runtimes differ in what that means",
            "name as many outputs as there are parts",
        )
    data, axis = node.input[0], int(value_of(node, "axis", 0))
    shape = scope.shape(data)
    size = None
    if shape is not None:
        size = shape[from_the_front(axis, len(shape))]
    drop_attribute(node, "num_outputs")
    if size is not None and size % count == 0:
        return None
    part = 0 if size is None else -(-size // count)
    # With fewer elements than parts it fails where it runs, which a branch never taken may.
    if size is not None and size >= part * (count - 1):
        sizes = [part] * (count - 1) + [size - part * (count - 1)]
        del node.input[1:]
        node.input.append(Writer(node, scope).integers(sizes, "split"))
        return None
    return _computed_sizes(node, scope, count, axis)


def _computed_sizes(node: NodeProto, scope: Scope, count: int, axis: int) -> list[NodeProto]:
    """Sizes of the parts where the dimension is known only at run time."""
    body = Writer(node, scope)
    whole = body.add("Shape", node.input[0])
    if axis < 0:
        # From the back, so that the rank need not be known.
        start = body.integers([axis], f"axis_m{-axis}")
        end = body.integers([axis + 1 if axis < -1 else 2**63 - 1], "axis_end")
        size = body.add("Slice", whole, start, end, tail="size")
    else:
        size = body.add("Gather", whole, body.integers([axis], f"axis_{axis}"), tail="size", axis=0)
    rounding = body.add("Add", size, body.integers([count - 1], f"parts_{count - 1}"), tail="rounding")
    part = body.add("Div", rounding, body.integers([count], f"parts_{count}"), tail="part")
    others = body.add("Mul", part, body.integers([count - 1], f"parts_{count - 1}"), tail="others")
    last = body.add("Sub", size, others, tail="last")
    sizes = body.add("Concat", *[part] * (count - 1), last, tail="sizes", axis=0)
    del node.input[1:]
    node.input.append(sizes)
    return [*body.nodes, node]


@raises("Split", 18)
def _raise_number_of_outputs(node: NodeProto, scope: Scope) -> Outcome:
    """Equal parts have to be asked for."""
    if len(node.input) > 1 and node.input[1]:
        return None
    set_attribute(node, "num_outputs", len(node.output))
    return None


@lowers("Split", 13)
def _lower_computed_sizes(node: NodeProto, scope: Scope) -> Outcome:
    """Sizes known only at run time, which an attribute cannot say, are cut out one by one."""
    name = node.input[1] if len(node.input) > 1 else ""
    sizes: Any = scope.constant(name) if name else None
    if not name or (sizes is not None and (sizes >= 0).all()) or scope.reference(name) is not None:
        return None
    body = Writer(node, scope)
    axes = body.integers([int(value_of(node, "axis", 0))], "axis")
    zero = body.integers([0], "axes_0")
    start = zero
    for index in range(len(node.output)):
        places = [body.integers([place], f"part_{place}") for place in (index, index + 1)]
        size = body.add("Slice", name, *places, zero, tail=f"size_{index}")
        end = body.add("Add", start, size, tail=f"end_{index}")
        if node.output[index]:
            body.yields("Slice", node.input[0], start, end, axes, output=index)
        start = end
    return body.nodes


@raises("Split", 2)
def _raise_input(node: NodeProto, scope: Scope) -> Outcome:
    """The sizes could be an input once, and axis had no default."""
    if attribute_of(node, "axis") is None:
        set_attribute(node, "axis", 0)
    if len(node.input) > 1 and node.input[1]:
        sizes = scope.constant(node.input[1])
        if sizes is None:
            raise RefusedError("its sizes are computed at run time, which opsets 2 to 12 take only as an attribute")
        scope.release(node.input[1])
        set_attribute(node, "split", [int(size) for size in sizes.reshape(-1)])
        del node.input[1:]
    return None


@lowers("Split", 2)
def _lower_default_axis(node: NodeProto, scope: Scope) -> Outcome:
    """Axis had no default."""
    if attribute_of(node, "axis") is not None:
        return None
    set_attribute(node, "axis", 0)
    return None
