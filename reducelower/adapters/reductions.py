"""What the Reduce operators need at their boundaries beyond what their schemas say.

Two things: ``noop_with_empty_axes``, without which an older version reduces everything where axes are empty, and
negative axes, which opset 11 made valid.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.dynamic_axes import BodyWantedError, reduce_by_condition
from reducelower.adapters.registry import Outcome, Replacement, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of

__all__ = ["AXES_AN_INPUT", "ELEMENTWISE", "REDUCTIONS"]

ELEMENTWISE = {
    "ReduceL1": "Abs",
    "ReduceL2": "Abs",
    "ReduceLogSum": "Log",
    "ReduceLogSumExp": "Identity",
    "ReduceMax": "Identity",
    "ReduceMean": "Identity",
    "ReduceMin": "Identity",
    "ReduceProd": "Identity",
    "ReduceSum": "Identity",
    "ReduceSumSquare": "Mul",
}
"""The elementwise step of each Reduce operator, which is all that remains if no axis is reduced.

Source: the operator specification, "when axes is empty and noop_with_empty_axes is true, composite operators still
apply their elementwise step"; Sqrt(x * x) is Abs(x) and Log(Exp(x)) is x on real values.
"""

REDUCTIONS = tuple(ELEMENTWISE)

AXES_AN_INPUT = {op_type: 13 if op_type == "ReduceSum" else 18 for op_type in REDUCTIONS}
"""The opset version that made the axes of each an input and brought ``noop_with_empty_axes``."""

_PLAIN = ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum")
"""Reducing a dimension of size 1 leaves their values as they are; the others apply a function to each value."""

_INTEGERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)


def _constant_axes(op: Writer) -> tuple[int, ...] | None:
    """The axes of a node that takes them as an input: empty if absent, None if computed."""
    if len(op.node.input) < 2 or not op.input(1):
        return ()
    value = op.constant_input(1)
    if value is None:
        return None
    if value.dtype != np.int64:
        raise RefusedError(f"its axes are of type {value.dtype}; the operator takes int64")
    axes = tuple(value.reshape(-1).tolist())
    check_axes(axes)
    return axes


def check_axes(axes: tuple[int, ...]) -> None:
    """Raise RefusedError for axes that name one dimension twice."""
    if len(set(axes)) != len(axes):
        raise RefusedError(f"its axes {list(axes)} name a dimension twice")


def _lower_noop(op: Writer) -> Outcome:
    """Cross to a version without ``noop_with_empty_axes``, whose axes are an attribute."""
    axes = _constant_axes(op)
    noop = attribute_of(op.node, "noop_with_empty_axes")
    if noop is not None and noop.ref_attr_name:
        raise RefusedError(
            f"noop_with_empty_axes refers to {noop.ref_attr_name!r} of the function, so it is not known whether it "
            "reduces nothing or everything",
            "inline the function first",
        )
    reduces_nothing = noop is not None and noop.i != 0
    if axes:
        if reduces_nothing:
            noop.i = 0  # type: ignore[union-attr]  # It says nothing where axes are given.
        return None
    if axes is None:
        if op.scope.reference(op.input(1)) is None:
            _ask_the_callers(op)
            return _lower_dynamic(op)
        if reduces_nothing:
            raise RefusedError(
                "its axes come from the function's caller and may be empty, and with noop_with_empty_axes=1 it then "
                "reduces nothing",
                "inline the function first",
            )
        return None
    if reduces_nothing:
        return elementwise(op)
    if len(op.node.input) > 1:
        # Empty axes reduce everything, as absent ones do.
        if op.input(1):
            op.scope.release(op.input(1))
        del op.node.input[1:]
    return None


def _ask_the_callers(op: Writer) -> None:
    """Refuse axes that a function gets from its callers, as long as these may turn out to be constant."""
    if op.scope.is_function_input(op.input(1)) and not op.scope.is_last_attempt:
        raise RefusedError(
            f"its axes {op.input(1)!r} are handed to the function by its callers", "inline the function first"
        )


def _lower_dynamic(op: Writer) -> Outcome:
    """Cross with axes that are known at run time only."""
    if op.node.op_type in _PLAIN:
        nodes = reduce_by_condition(op)
        return Replacement(nodes, f"axes known at run time: {op.scope.rank(op.input(0))} conditional reductions")
    raise BodyWantedError(
        f"its axes {op.input(1)!r} are computed at run time, and no rule says what {op.node.op_type} is made of",
        f"make {op.input(1)!r} a constant",
    )


def elementwise(op: Writer) -> list[NodeProto]:
    """The nodes that replace a Reduce node that reduces no axis, written for opset 13."""
    op_type = ELEMENTWISE[op.node.op_type]
    data = op.input(0)
    op.scope.release(*op.node.input[1:])
    element_type = op.scope.element_type(data)
    if op_type == "Log" and element_type in _INTEGERS:
        # Log takes floats only; the reduction of integers computes in double and truncates.
        wide = op.add("Cast", data, tail="double", to=TensorProto.DOUBLE)
        return op.yields("Cast", op.add("Log", wide), to=element_type)
    return op.yields(op_type, *([data, data] if op_type == "Mul" else [data]))


def _lower_negative_axes(op: Writer) -> None:
    """Cross to a version that counts axes from the front only."""
    axes = attribute_of(op.node, "axes")
    if axes is None:
        return
    if axes.ref_attr_name:
        raise RefusedError(
            f"its axes refer to {axes.ref_attr_name!r} of the function and may be negative, which came with opset 11",
            "inline the function first",
        )
    if all(axis >= 0 for axis in axes.ints):
        return
    rank = op.rank(0)
    positive = tuple(axis + rank if axis < 0 else axis for axis in axes.ints)
    if not all(0 <= axis < rank for axis in positive):
        raise RefusedError(f"its axes {list(axes.ints)} are out of range for rank {rank}")
    check_axes(positive)
    op.set("axes", list(positive))


def _check_attribute(op: Writer) -> None:
    """Cross to the version whose axes are an input: an empty attribute reduces everything, as an absent input does."""
    axes = attribute_of(op.node, "axes")
    if axes is None or axes.ref_attr_name:
        return
    check_axes(tuple(axes.ints))
    if not axes.ints and axes.type == axes.INTS:
        op.node.attribute.remove(axes)


for _op_type in REDUCTIONS:
    lowers(_op_type, 11)(_lower_negative_axes)
    lowers(_op_type, AXES_AN_INPUT[_op_type])(_lower_noop)
    raises(_op_type, AXES_AN_INPUT[_op_type])(_check_attribute)
