"""Reshape with allowzero, Tile and Split at their boundaries.

Sources: the pages of Reshape (13, 14), Tile (1, 6), Split (1, 2, 13, 18).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.adapters.reshaping import plain_reshape
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of
from reducelower.model.numbers import FIRST_FLOATS
from reducelower.model.schemas import element_type_name
from reducelower.rulebook.questions import from_the_front
from reducelower.types import Size

__all__ = ["without_allowzero"]


@lowers("Reshape", 14)
def _lower_allowzero(op: Writer) -> Outcome:
    """A zero meant the input's own dimension; with allowzero it is a dimension of no elements.

    Such a shape has no -1, and the data is empty, so one zero that is known may be left to be worked out as -1.
    """
    if not op.attribute("allowzero", 0):
        return None
    shape = op.constant_input(1)
    if shape is None:
        return without_allowzero(op) or op.yields_reshaped(op.input(0), op.input(1), op.element_type(0))
    op.drop("allowzero")
    zeros = int((shape == 0).sum())
    if zeros == 0:
        return None
    op.scope.release(op.input(1))
    if zeros == 1:
        op.node.input[1] = op.integers(np.where(shape == 0, -1, shape), "shape")
        return None
    dtype = helper.tensor_dtype_to_np_dtype(op.element_type(0))
    return op.yields("Identity", op.scope.add_constant(np.zeros(shape.tolist(), dtype), "nothing"))


def without_allowzero(op: Writer) -> list[NodeProto] | None:
    """The Reshape that means the same without allowzero, for opset 13; None where nothing known of sizes says it."""
    data, target = op.node.input[:2]
    known = op.scope.known(data), op.scope.known(target), op.scope.known(op.node.output[0])
    plain = plain_reshape(*known) or plain_reshape(*known, op.scope.never_zero())
    if (plain is None or not plain.is_plain) and not op.scope.heeds_zero():
        plain = plain_reshape(*known, is_empty_never=True)
    if plain is None:
        return None
    if plain.target is not None:
        op.scope.release(target)
        target = op.integers(plain.target, "shape")
    if plain.ahead:
        data = op.add("Unsqueeze", data, op.integers(plain.ahead, "axes"))
    if not plain.behind:
        return op.yields("Reshape", data, target)
    return op.yields("Squeeze", op.add("Reshape", data, target), op.integers(plain.behind, "axes"))


@raises("Tile", 6)
def _raise_tile(op: Writer) -> None:
    """It used to repeat one axis; since then it takes a count per axis."""
    tiles, axis = (op.scope.constant(name) for name in op.node.input[1:3])
    if tiles is None or axis is None:
        raise RefusedError("its repeats are computed at run time, and opset 6 takes them another way")
    repeats = np.ones(op.rank(0), np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    op.scope.release(*op.node.input[1:])
    op.set_inputs(1, op.scope.add_constant(repeats, "repeats"))


@lowers("Tile", 6)
def _lower_tile(op: Writer) -> Outcome:
    """One axis at a time; the counts are of the data's own element type, a float, and what is none is concatenated."""
    repeats = op.constant_input(1)
    if repeats is None:
        raise RefusedError("its repeats are computed at run time", "opset 6 is the oldest that takes them so")
    element_type = op.element_type(0)
    counts = [(axis, int(count)) for axis, count in enumerate(repeats.reshape(-1).tolist()) if count != 1]
    is_float = element_type in FIRST_FLOATS
    if not is_float and not all(0 < count <= _MOST_COPIES for _, count in counts):
        raise RefusedError(
            f"it repeats {element_type_name(element_type)} {max(count for _, count in counts)} times, and Tile takes "
            "floats only",
            "opset 6 is the oldest that takes others",
        )
    op.scope.release(op.input(1))
    data = op.input(0)
    for axis, count in counts:
        if is_float:
            where = (op.constant(value, element_type, tail) for value, tail in ((count, "tiles"), (axis, "axis")))
            data = op.add("Tile", data, *where, tail=f"tiled_{axis}")
        else:
            data = op.add("Concat", *[data] * count, tail=f"tiled_{axis}", axis=axis)
    return op.yields("Identity", data)


_MOST_COPIES = 64


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
    shape, known = op.scope.shape(data), op.scope.known(data).shape
    size = None if shape is None else shape[from_the_front(axis, len(shape))]
    op.drop("num_outputs")
    if known is not None and known[from_the_front(axis, len(known))].over(Size.of(count)) is not None:
        return None
    part = 0 if size is None else -(-size // count)
    # With fewer elements than parts it fails where it runs, which a branch never taken may.
    if size is not None and size >= part * (count - 1):
        op.set_inputs(1, op.integers([part] * (count - 1) + [size - part * (count - 1)], "split"))
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
    op.set_inputs(1, op.add("Concat", *[part] * (count - 1), last, tail="sizes", axis=0))
    return [*op.nodes, op.node]


@lowers("Split", 13)
def _lower_computed_sizes(op: Writer) -> Outcome:
    """Sizes known only at run time, which an attribute cannot say, are cut out one by one."""
    name = op.input(1)
    sizes: Any = op.scope.constant(name) if name else None
    if not name or (sizes is not None and (sizes >= 0).all()):
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
def _raise_input(op: Writer) -> None:
    """The sizes could be an input once, and axis had no default."""
    op.state("axis", 0)
    if op.input(1):
        sizes = op.constant_input(1)
        if sizes is None:
            raise RefusedError("its sizes are computed at run time, which opsets 2 to 12 take only as an attribute")
        op.scope.release(op.input(1))
        op.set("split", [int(size) for size in sizes.reshape(-1)])
        del op.node.input[1:]
