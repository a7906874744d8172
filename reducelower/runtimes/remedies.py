"""Equivalent ways to write a reduction, for runtimes that get it wrong as it is."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from reducelower.adapters.builder import Writer
from reducelower.adapters.reductions import elementwise
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, make_node, set_attribute
from reducelower.model.schemas import REDUCTIONS, element_type_name
from reducelower.rulebook.bindings import of_nothing
from reducelower.runtimes.reduction import Reduction
from reducelower.runtimes.remedy import Remedy, Written

__all__ = ["CASTS", "PRODUCT", "RANGE_KEEPING", "REMEDIES"]

_CHAINABLE = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""Operators that may reduce one dimension after the other, except for truncated means."""

_SMALL_INTEGERS = (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16)

_WIDE_INTEGERS = (TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64)

_INTEGERS = (*_SMALL_INTEGERS, *_WIDE_INTEGERS)

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16, *_SMALL_INTEGERS)

_HELD_BY_DOUBLE = (TensorProto.INT32, TensorProto.UINT32)

_PICKING = ("ReduceMax", "ReduceMin")
"""Reductions whose result is one of the values."""

_WHOLE_NUMBERS_FROM = 11
"""First opset version whose TopK takes integers, and which has CumSum."""

_MOST_FACTORS = 64
"""Most factors of one product; each takes a node."""

_ADDING = ("ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare")
"""Reductions that only add and multiply, so the lower half of a 64-bit result is the 32-bit result."""

_ROUNDED = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")
"""Reductions that compute integers in floating point anyway and truncate; ReduceMean divides."""


def _of_nothing(op: Writer) -> Written | None:
    """The constant result of data without elements, if all sizes of the result are known."""
    shape = op.shape(0)
    if not shape or 0 not in shape:
        return None
    reduction = Reduction(op)
    axes = () if reduction.reduces_nothing else reduction.all_axes()
    sizes = [1 if axis in axes else size for axis, size in enumerate(shape) if reduction.keepdims or axis not in axes]
    dtype = tensor_dtype_to_np_dtype(op.element_type(0))
    is_undefined = op.node.op_type == "ReduceMean" and 0 not in sizes
    if is_undefined or None in sizes or dtype.kind not in "fiu":
        return None
    # By the operators' pages from opset 18 on; those of ReduceMax and ReduceMin from 20 on.
    value = 0 if 0 in sizes else of_nothing(op.node.op_type, op.element_type(0))
    result = op.scope.add_constant(np.full([size or 0 for size in sizes], value, dtype), "of_nothing")
    return reduction.yields(result)


def _write_keepdims(op: Writer) -> Written | None:
    if attribute_of(op.node, "keepdims") is not None:
        return None
    set_attribute(op.node, "keepdims", 1)
    return [op.node], op.scope.target_opset


def _reduce_nothing(op: Writer) -> Written | None:
    """Replace a reduction of a scalar, or over no axes, by its elementwise step."""
    is_scalar = op.shape(0) == ()
    return elementwise(op.node, op.scope) if is_scalar or Reduction(op).reduces_nothing else None


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


def _top(op: Writer) -> Written | None:
    """The maximum or minimum of integers by TopK, along one dimension after the other."""
    largest = int(op.node.op_type == "ReduceMax")

    def over(value: str, axis: int, size: int) -> str:
        outputs = [f"over_{axis}", "index"]
        return op.add_many("TopK", [value, op.integers([1], "one")], outputs, axis=axis, largest=largest)[0]

    return _along_each(op, over) if op.node.op_type in _PICKING and _takes_integers(op) else None


def _running_sum(op: Writer) -> Written | None:
    """The sum of integers as the last running sum, along one dimension after the other."""

    def over(value: str, axis: int, size: int) -> str:
        places = [op.integers([number], "place") for number in (size - 1, size, axis)]
        sums = op.add("CumSum", value, op.integers(axis, "axis"), tail=f"sums_{axis}")
        return op.add("Slice", sums, *places, tail=f"over_{axis}")

    return _along_each(op, over) if op.node.op_type == "ReduceSum" and _takes_integers(op) else None


def _takes_integers(op: Writer) -> bool:
    """Whether the data are signed integers, and TopK and CumSum take them."""
    is_signed = op.element_type(0) in (TensorProto.INT32, TensorProto.INT64)
    return is_signed and op.scope.target_opset >= _WHOLE_NUMBERS_FROM


def _product(op: Writer) -> Written | None:
    """Split along each axis and multiply the parts in order, as kernels do."""

    def over(value: str, axis: int, size: int) -> str:
        if size > _MOST_FACTORS:
            raise RefusedError(
                f"it multiplies {size} values along axis {axis}, and products are written out for 1 to {_MOST_FACTORS}",
                "use a runtime with a kernel of ReduceProd",
            )
        if size == 1:
            return value
        lengths = op.integers(np.ones(size), "split")
        value, *others = op.add_many("Split", [value, lengths], [f"part_{axis}_{at}" for at in range(size)], axis=axis)
        for part in others:
            value = op.add("Mul", value, part, tail=f"product_{axis}")
        return value

    is_exact = op.element_type(0) not in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    return _along_each(op, over) if op.node.op_type == "ReduceProd" and is_exact else None


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


def _along_each(op: Writer, over: Callable[[str, int, int], str]) -> Written | None:
    """Reduce along one dimension after the other.

    Raises:
        RefusedError: the size of one is not known, or 0.
    """
    reduction = Reduction(op)
    axes = () if reduction.reduces_nothing else sorted(set(reduction.all_axes()))
    if not axes:
        return None
    value, shape = op.input(0), op.shape(0)
    for axis in axes:
        size = None if shape is None else shape[axis]
        if not size:
            what = "is 0" if size == 0 else "is known at run time only"
            raise RefusedError(f"it goes along axis {axis}, whose size {what}", "make that dimension static")
        value = over(value, axis, size)
    return reduction.yields(value if reduction.keepdims else op.add("Squeeze", value, op.integers(axes, "axes")))


def _in_type(op: Writer, *, wide: int, narrow: Mapping[str, Container[int]]) -> Written | None:
    """Compute in a wider type and cast back; `narrow` has the types by operator."""
    element_type = op.element_type(0)
    reduction = Reduction(op)
    if element_type not in narrow.get(op.node.op_type, ()):
        return None
    value = op.add("Cast", op.input(0), tail=element_type_name(wide), to=wide)
    if reduction.reduces_nothing:
        result = op.fresh("result")
        op.nodes += elementwise(make_node(op.node.op_type, [value], [result]), op.scope)[0]
    else:
        result = reduction.add(value, reduction.axes, reduction.keepdims, "result")
    return reduction.yields(op.add("Cast", result, to=element_type))


_AXES = ("axes", "negative_axes", "noop")

REMEDIES: Sequence[Remedy] = (
    Remedy("the constant that comes of no values", _of_nothing),
    Remedy("keepdims written", _write_keepdims, ("keepdims",)),
    Remedy("its elementwise step", _reduce_nothing),
    Remedy("axes left out", _leave_axes_out, _AXES),
    Remedy("axes listed", _list_axes, _AXES),
    # "one axis a node" needs keepdims=1. So Squeeze comes before it, and counts as altering whether all are reduced.
    Remedy(
        "Squeeze after it",
        partial(_change_dimensions, keepdims=1, last="Squeeze"),
        (*_AXES, "keepdims", "rank_out", "all_axes"),
    ),
    Remedy(
        "Reshape after it", partial(_change_dimensions, keepdims=1, last="Reshape"), (*_AXES, "keepdims", "rank_out")
    ),
    Remedy(
        "Unsqueeze after it",
        partial(_change_dimensions, keepdims=0, last="Unsqueeze"),
        (*_AXES, "keepdims", "rank_out"),
    ),
    Remedy("one axis a node", _one_by_one, (*_AXES, "axes_count", "all_axes", "rank", "rank_out")),
    Remedy("negative infinity apart", _infinity_apart, ("after",)),
)
"""Other ways to write a reduction with the same operator, in the order in which they are tried."""

RANGE_KEEPING: Sequence[Remedy] = (
    Remedy("its elementwise step", _reduce_nothing),
    Remedy("TopK in place of it", _top),
    Remedy("CumSum in place of it", _running_sum),
)
"""Remedies that do not overflow although the operator does."""

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
