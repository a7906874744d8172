"""Equivalent ways to write a reduction, for runtimes that get it wrong as it is."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial, reduce

import numpy as np
from onnx import NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from reducelower.adapters.builder import Writer
from reducelower.adapters.crossings import crossings
from reducelower.errors import RefusedError
from reducelower.model.attributes import copy_marks, make_node
from reducelower.model.schemas import REDUCTIONS, element_type_name
from reducelower.runtimes.reduction import Reduction
from reducelower.runtimes.remedy import Remedy, Written
from reducelower.scope.body import AnyScope

__all__ = ["CASTS", "PRODUCT", "REMEDIES"]

_CHAINABLE = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""Operators that may reduce one dimension after the other, except for truncated means."""

_SMALL_INTEGERS = (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16)

_WIDE_INTEGERS = (TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64)

_INTEGERS = (*_SMALL_INTEGERS, *_WIDE_INTEGERS)

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16, *_SMALL_INTEGERS)

_HELD_BY_DOUBLE = (TensorProto.INT32, TensorProto.UINT32)

_PICKING = ("ReduceMax", "ReduceMin")
"""Reductions whose result is one of the values."""

_MOST_FACTORS = 64
"""Most factors of one product; each takes a node."""

_ADDING = ("ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare")
"""Reductions that only add and multiply, so the lower half of a 64-bit result is the 32-bit result."""

_ROUNDED = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")
"""Reductions that compute integers in floating point anyway and truncate; ReduceMean divides."""


def _reduce_nothing(op: Writer) -> Written | None:
    """Replace a reduction of a scalar, or over no axes, by its elementwise step."""
    is_scalar = op.shape(0) == ()
    return _elementwise(op.node, op.scope) if is_scalar or Reduction(op).reduces_nothing else None


def _elementwise(node: NodeProto, scope: AnyScope) -> Written:
    """A reduction of no axis, by the boundary rule for opset versions that lack noop_with_empty_axes."""
    unreduced = make_node(node.op_type, node.input[:1], node.output, noop_with_empty_axes=1)
    copy_marks(node, unreduced)
    crossing = next(each for each in crossings(node.op_type, 18, 11) if each.boundary >= 13)
    written = crossing.cross(unreduced, scope)
    assert written is not None
    return written.nodes, written.opset


def _leave_axes_out(op: Writer) -> Written | None:
    reduction = Reduction(op)
    if reduction.reduces_nothing or (reduction.axes and len(reduction.axes) != op.rank(0)):
        return None
    return reduction.yields(reduction.add(op.input(0), (), reduction.keepdims))


def _list_axes(op: Writer) -> Written | None:
    """All axes as a constant, counted from the front."""
    reduction = Reduction(op)
    if reduction.reduces_nothing:
        return None
    axes = reduction.all_axes()
    if not axes or (axes == reduction.axes and reduction.are_listed):
        return None
    return reduction.yields(reduction.add(op.input(0), axes, reduction.keepdims))


def _change_dimensions(op: Writer, *, keepdims: int, last: str) -> Written | None:
    """Keep the reduced dimensions and remove them afterwards, or drop them and restore them."""
    reduction = Reduction(op)
    if reduction.reduces_nothing or reduction.keepdims == keepdims:
        return None
    axes = reduction.all_axes()
    if not axes or (last == "Reshape" and len(axes) != op.rank(0)):
        return None
    reduced = reduction.add(op.input(0), axes, keepdims, "kept" if keepdims else "dropped")
    operand = op.integers((), "shape") if last == "Reshape" else op.integers(axes, "axes")
    return reduction.yields(op.add(last, reduced, operand))


def _one_by_one(op: Writer) -> Written | None:
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
    return reduction.yields(value)


def _product(op: Writer) -> Written | None:
    """Split along one axis after the other and multiply the parts in order, as kernels do.

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
    return reduction.yields(value if reduction.keepdims else op.add("Squeeze", value, op.integers(axes, "axes")))


def _infinity_apart(op: Writer) -> Written | None:
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
    return reduction.yields(op.add("Where", is_infinite, infinity, largest))


def _in_type(op: Writer, *, wide: int, narrow: Mapping[str, Container[int]]) -> Written | None:
    """Compute in a wider type and cast back; `narrow` has the types by operator."""
    element_type = op.element_type(0)
    reduction = Reduction(op)
    if element_type not in narrow.get(op.node.op_type, ()):
        return None
    value = op.add("Cast", op.input(0), tail=element_type_name(wide), to=wide)
    if reduction.reduces_nothing:
        result = op.fresh("result")
        op.nodes += _elementwise(make_node(op.node.op_type, [value], [result]), op.scope)[0]
    else:
        result = reduction.add(value, reduction.axes, reduction.keepdims, "result")
    return reduction.yields(op.add("Cast", result, to=element_type))


REMEDIES: Sequence[Remedy] = (
    Remedy("its elementwise step", _reduce_nothing, keeps_range=True),
    Remedy("axes left out", _leave_axes_out),
    Remedy("axes listed", _list_axes),
    # "one axis a node" needs keepdims=1, so Squeeze comes before it.
    Remedy("Squeeze after it", partial(_change_dimensions, keepdims=1, last="Squeeze")),
    Remedy("Reshape after it", partial(_change_dimensions, keepdims=1, last="Reshape")),
    Remedy("Unsqueeze after it", partial(_change_dimensions, keepdims=0, last="Unsqueeze")),
    Remedy("one axis a node", _one_by_one),
    Remedy("negative infinity apart", _infinity_apart),
)
"""Other ways to write a reduction with the same operator, in the order in which they are tried."""

CASTS: Sequence[Remedy] = tuple(
    Remedy(f"computed in {element_type_name(wide)}", partial(_in_type, wide=wide, narrow=narrow))
    for wide, narrow in (
        # The cast back truncates as the specification does. Double holds every 32-bit integer.
        (TensorProto.DOUBLE, {**dict.fromkeys(_ROUNDED, _WIDE_INTEGERS), **dict.fromkeys(_PICKING, _HELD_BY_DOUBLE)}),
        # Narrow types exactly; logarithms, roots and means of wide integers as precisely as it can.
        (
            TensorProto.FLOAT,
            {**dict.fromkeys(REDUCTIONS, _NARROW), **dict.fromkeys(_ROUNDED, (*_NARROW, *_WIDE_INTEGERS))},
        ),
        (TensorProto.INT64, dict.fromkeys((*_ADDING, *_PICKING), (TensorProto.UINT32,))),
    )
)
"""Remedies by another element type; tried after the rules, which know what each type needs."""

PRODUCT = Remedy("product by Split and Mul", _product)
"""Tried after all remedies that keep the product one node.

Each multiplication would round halves, unlike in kernels; they are cast to float first.
"""
