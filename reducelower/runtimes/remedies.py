"""Equivalent ways to write a reduction, for runtimes that get it wrong as it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from reducelower.adapters.builder import Writer
from reducelower.adapters.crossings import crossings
from reducelower.errors import RefusedError
from reducelower.model.attributes import copy_marks, make_node
from reducelower.runtimes.reduction import OPSET, Reduction
from reducelower.runtimes.remedy import Nodes, Remedy, remedy

__all__ = ["PRODUCT", "REMEDIES"]

_CHAINABLE = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""Operators that may reduce one dimension after the other, except for truncated means."""

_INTEGERS = (
    *(TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16),
    *(TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64),
)

_MOST_FACTORS = 64
"""Most factors of one product; each takes a node."""


@remedy("its elementwise step", opset=13, keeps_range=True)
def _reduce_nothing(op: Writer) -> Nodes:
    """Replace a reduction of a scalar, or over no axes, by its elementwise step.

    It is written by the boundary rule for opset versions that lack noop_with_empty_axes.
    """
    node = op.node
    if op.shape(0) != () and not Reduction(op).reduces_nothing:
        return None
    unreduced = make_node(node.op_type, node.input[:1], node.output, noop_with_empty_axes=1)
    copy_marks(node, unreduced)
    crossing = next(each for each in crossings(node.op_type, 18, 11) if each.boundary >= 13)
    written = crossing.cross(unreduced, op.scope)
    assert written is not None
    return written.nodes


@remedy("axes left out", opset=OPSET)
def _leave_axes_out(op: Writer) -> Nodes:
    reduction = Reduction(op)
    if reduction.reduces_nothing or (reduction.axes and len(reduction.axes) != op.rank(0)):
        return None
    return op.yields_value(reduction.add(op.input(0), (), reduction.keepdims))


@remedy("axes listed", opset=OPSET)
def _list_axes(op: Writer) -> Nodes:
    """All axes as a constant, counted from the front."""
    reduction = Reduction(op)
    if reduction.reduces_nothing:
        return None
    axes = reduction.all_axes()
    if not axes or (axes == reduction.axes and reduction.are_listed):
        return None
    return op.yields_value(reduction.add(op.input(0), axes, reduction.keepdims))


def _change_dimensions(op: Writer, *, keepdims: int, last: str) -> Nodes:
    """Keep the reduced dimensions and remove them afterwards, or drop them and restore them."""
    reduction = Reduction(op)
    if reduction.reduces_nothing or reduction.keepdims == keepdims:
        return None
    axes = reduction.all_axes()
    if not axes or (last == "Reshape" and len(axes) != op.rank(0)):
        return None
    reduced = reduction.add(op.input(0), axes, keepdims, "kept" if keepdims else "dropped")
    operand = op.integers((), "shape") if last == "Reshape" else op.integers(axes, "axes")
    return op.yields_value(op.add(last, reduced, operand))


@remedy("one axis a node", opset=OPSET)
def _one_by_one(op: Writer) -> Nodes:
    """Reduce one dimension after the other; starting from the last keeps the numbers of the others."""
    reduction = Reduction(op)
    is_truncated = op.node.op_type == "ReduceMean" and op.scope.element_type(op.input(0)) in _INTEGERS
    if op.node.op_type not in _CHAINABLE or reduction.reduces_nothing or is_truncated:
        return None
    axes = sorted(reduction.all_axes(), reverse=True)
    if len(axes) < 2:
        return None
    value = op.input(0)
    for axis in axes:
        value = reduction.add(value, (axis,), reduction.keepdims, f"over_{axis}")
    return op.yields_value(value)


@remedy("product by Split and Mul", opset=OPSET)
def _product(op: Writer) -> Nodes:
    """Split along one axis after the other and multiply the parts in order, as kernels do.

    Halves are cast to float first, since each multiplication would round them, unlike in kernels.

    Raises:
        RefusedError: the size along an axis is unknown, 0 or large.
    """
    reduction = Reduction(op)
    is_exact = op.element_type(0) not in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    axes = () if reduction.reduces_nothing else sorted(set(reduction.all_axes()))
    if op.node.op_type != "ReduceProd" or not is_exact or not axes:
        return None
    value, shape = op.input(0), op.shape(0)
    for axis in axes:
        size = None if shape is None else shape[axis]
        if not size:
            what = "is 0" if size == 0 else "is known at run time only"
            raise RefusedError(f"it goes along axis {axis}, whose size {what}", "make that dimension static")
        if size > _MOST_FACTORS:
            raise RefusedError(
                f"it multiplies {size} values along axis {axis}, and products are written out for 1 to {_MOST_FACTORS}",
                "use a runtime with a kernel of ReduceProd",
            )
        if size > 1:
            tails = [f"part_{axis}_{at}" for at in range(size)]
            parts = op.add_many("Split", [value, op.integers(np.ones(size), "split")], tails, axis=axis)
            value = reduce(lambda product, part: op.add("Mul", product, part, tail=f"product_{axis}"), parts)
    return op.yields_value(value if reduction.keepdims else op.add("Squeeze", value, op.integers(axes, "axes")))


@remedy("negative infinity apart", opset=OPSET)
def _infinity_apart(op: Writer) -> Nodes:
    """Handle negative infinity apart, since ReduceMax of some runtimes starts from a finite number."""
    reduction = Reduction(op)
    element_type = op.element_type(0)
    dtype = tensor_dtype_to_np_dtype(element_type)
    if op.node.op_type != "ReduceMax" or dtype.kind != "f" or reduction.reduces_nothing:
        return None
    lowest = op.constant(np.finfo(dtype).min, element_type, "lowest")
    infinity = op.constant(-np.inf, element_type, "infinity")
    axes, keepdims = reduction.axes, reduction.keepdims
    largest = reduction.add(op.add("Max", op.input(0), lowest, tail="finite"), axes, keepdims, "largest")
    below = op.add("Cast", op.add("Less", op.input(0), lowest, tail="is_below"), tail="below", to=element_type)
    least = reduction.add(below, axes, keepdims, "least", "ReduceMin")
    is_infinite = op.add("Cast", least, tail="is_infinite", to=TensorProto.BOOL)
    return op.yields_value(op.add("Where", is_infinite, infinity, largest))


REMEDIES: Sequence[Remedy] = (
    _reduce_nothing,
    _leave_axes_out,
    _list_axes,
    # "one axis a node" needs keepdims=1, so Squeeze comes before it.
    *(
        remedy(f"{last} after it", opset=OPSET)(partial(_change_dimensions, keepdims=keepdims, last=last))
        for keepdims, last in ((1, "Squeeze"), (1, "Reshape"), (0, "Unsqueeze"))
    ),
    _one_by_one,
    _infinity_apart,
)
"""Other ways to write a reduction with the same operator, in the order in which they are tried."""

PRODUCT = _product
"""Tried after all remedies that keep the product one node."""
