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
from reducelower.model.attributes import attribute_of


@lowers("Split", 18)
def _lower_number_of_outputs(op: Writer) -> Outcome:
    """Before, parts were equal unless given; num_outputs leaves a smaller one at the end where the size says so."""
    attribute = attribute_of(op.node, "num_outputs")
    if attribute is None:
        return None
    count = int(op.attribute("num_outputs"))
    named = len(op.node.output)
    if count != named:
        raise RefusedError(
            f"its num_outputs is {count}, but it names {named} outputs, and runtimes differ in what that means",
            "name as many outputs as there are parts",
        )
    data, axis = op.input(0), int(op.attribute("axis", 0))
    shape = op.scope.shape(data)
    size = None
    if shape is not None:
        size = shape[from_the_front(axis, len(shape))]
    op.drop("num_outputs")
    if size is not None and size % count == 0:
        return None
    part = 0 if size is None else -(-size // count)
    # With fewer elements than parts it fails where it runs, which a branch never taken may.
    if size is not None and size >= part * (count - 1):
        sizes = [part] * (count - 1) + [size - part * (count - 1)]
        del op.node.input[1:]
        op.node.input.append(op.integers(sizes, "split"))
        return None
    return _computed_sizes(op, count, axis)


def _computed_sizes(op: Writer, count: int, axis: int) -> list[NodeProto]:
    """Sizes of the parts where the dimension is known only at run time."""
    whole = op.add("Shape", op.input(0))
    if axis < 0:
        # From the back, so that the rank need not be known.
        start = op.integers([axis], f"axis_m{-axis}")
        end = op.integers([axis + 1 if axis < -1 else 2**63 - 1], "axis_end")
        size = op.add("Slice", whole, start, end, tail="size")
    else:
        size = op.add("Gather", whole, op.integers([axis], f"axis_{axis}"), tail="size", axis=0)
    rounding = op.add("Add", size, op.integers([count - 1], f"parts_{count - 1}"), tail="rounding")
    part = op.add("Div", rounding, op.integers([count], f"parts_{count}"), tail="part")
    others = op.add("Mul", part, op.integers([count - 1], f"parts_{count - 1}"), tail="others")
    last = op.add("Sub", size, others, tail="last")
    sizes = op.add("Concat", *[part] * (count - 1), last, tail="sizes", axis=0)
    del op.node.input[1:]
    op.node.input.append(sizes)
    return [*op.nodes, op.node]


@raises("Split", 18)
def _raise_number_of_outputs(op: Writer) -> Outcome:
    """Equal parts have to be asked for."""
    if op.input(1):
        return None
    op.set("num_outputs", len(op.node.output))
    return None


@lowers("Split", 13)
def _lower_computed_sizes(op: Writer) -> Outcome:
    """Sizes known only at run time, which an attribute cannot say, are cut out one by one."""
    name = op.input(1)
    sizes: Any = op.scope.constant(name) if name else None
    if not name or (sizes is not None and (sizes >= 0).all()) or op.scope.reference(name) is not None:
        return None
    axes = op.integers([int(op.attribute("axis", 0))], "axis")
    zero = op.integers([0], "axes_0")
    start = zero
    for index in range(len(op.node.output)):
        places = [op.integers([place], f"part_{place}") for place in (index, index + 1)]
        size = op.add("Slice", name, *places, zero, tail=f"size_{index}")
        end = op.add("Add", start, size, tail=f"end_{index}")
        if op.node.output[index]:
            op.yields("Slice", op.input(0), start, end, axes, output=index)
        start = end
    return op.nodes


@raises("Split", 2)
def _raise_input(op: Writer) -> Outcome:
    """The sizes could be an input once, and axis had no default."""
    if attribute_of(op.node, "axis") is None:
        op.set("axis", 0)
    if op.input(1):
        sizes = op.constant_input(1)
        if sizes is None:
            raise RefusedError("its sizes are computed at run time, which opsets 2 to 12 take only as an attribute")
        op.scope.release(op.input(1))
        op.set("split", [int(size) for size in sizes.reshape(-1)])
        del op.node.input[1:]
    return None


@lowers("Split", 2)
def _lower_default_axis(op: Writer) -> Outcome:
    """Axis had no default."""
    if attribute_of(op.node, "axis") is not None:
        return None
    op.set("axis", 0)
    return None
