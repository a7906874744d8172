"""Equivalent ways to write operators other than reductions, for runtimes that get one of them wrong."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.model.attributes import value_of
from reducelower.model.schemas import schema
from reducelower.runtimes.remedies import Remedy, Written
from reducelower.scope.scope import Scope

__all__ = ["FORMS"]

_OPSET = 13
"""Opset version that the nodes are written for."""

_MIRRORED: Mapping[str, str] = {
    "Greater": "Less",
    "GreaterOrEqual": "LessOrEqual",
    "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
}
"""The comparison that says the same of the operands in the other order; what is not a number is false in either."""

_MOST_ONES = 4096
"""Elements that a constant of ones may have."""

_MOST_SLICES = 16
"""Indices for each of which a node is written."""

_INDEXED = ("GatherElements", "GatherND", "ScatterElements", "ScatterND")

_COUNTABLE = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64)


def _swap_operands(node: NodeProto, scope: Scope) -> Written:
    return Writer(node, scope).yields(_MIRRORED[node.op_type], node.input[1], node.input[0]), _OPSET


def _swap_branches(node: NodeProto, scope: Scope) -> Written:
    """Pick by the opposite, so that the last branch comes first."""
    body = Writer(node, scope)
    condition, one, other = node.input
    return body.yields("Where", body.add("Not", condition, tail="opposite"), other, one), _OPSET


def _expand_operands(node: NodeProto, scope: Scope) -> Written | None:
    """Bring every operand to the shape of the result beforehand."""
    sizes = scope.shape(node.output[0])
    if sizes is None or None in sizes or all(scope.shape(name) == sizes for name in node.input):
        return None
    body = Writer(node, scope)
    shape = body.integers(sizes, "shape")
    operands = [
        name if scope.shape(name) == sizes else body.add("Expand", name, shape, tail=f"operand_{at}")
        for at, name in enumerate(node.input)
    ]
    return body.yields(node.op_type, *operands), _OPSET


def _reshape(node: NodeProto, scope: Scope) -> Written | None:
    """State the shape of the result, of which one size may be known at run time only."""
    sizes = scope.shape(node.output[0])
    if sizes is None or 0 in sizes or sizes.count(None) > 1:
        return None
    body = Writer(node, scope)
    shape = body.integers([-1 if size is None else size for size in sizes], "shape")
    scope.release(*node.input[1:])
    return body.yields("Reshape", node.input[0], shape), _OPSET


def _times_ones(node: NodeProto, scope: Scope) -> Written | None:
    """Multiply by ones of the shape, which is exact."""
    sizes, element_type = scope.constant(node.input[1]), scope.needed_element_type(node.input[0])
    if sizes is None or element_type not in _COUNTABLE or not 0 < prod(map(int, sizes)) <= _MOST_ONES:
        return None
    body = Writer(node, scope)
    ones = body.constant(np.ones(tuple(map(int, sizes))), element_type, "ones")
    scope.release(*node.input[1:])
    return body.yields("Mul", node.input[0], ones), _OPSET


def _negate_twice(node: NodeProto, scope: Scope) -> Written | None:
    """A copy that no optimizer takes for nothing, as it does a product with one."""
    if scope.needed_element_type(node.input[0]) not in _COUNTABLE:
        return None
    body = Writer(node, scope)
    return body.yields("Neg", body.add("Neg", node.input[0], tail="opposite")), _OPSET


def _slice_each(node: NodeProto, scope: Scope) -> Written | None:
    """Take out what each index names, and put them side by side."""
    indices = scope.constant(node.input[1])
    if indices is None or indices.ndim != 1 or not 0 < indices.size <= _MOST_SLICES:
        return None
    body, axis = Writer(node, scope), value_of(node, "axis", 0)
    parts = [
        body.add(
            "Slice",
            node.input[0],
            *(body.number(place) for place in (at, TO_THE_END if at == -1 else at + 1, axis)),
            tail=f"part_{number}",
        )
        for number, at in enumerate(map(int, indices))
    ]
    scope.release(*node.input[1:])
    return body.yields("Concat", *parts, axis=axis), _OPSET


def _set_apart(node: NodeProto, scope: Scope) -> Written:
    """Let an Identity come before it, so that it is not taken for a part of what the node before begins."""
    body = Writer(node, scope)
    apart = body.add("Identity", node.input[0])
    return body.yields(node.op_type, apart, *node.input[1:], copied=node.attribute), scope.target_opset


def _compare_to_zero(node: NodeProto, scope: Scope) -> Written | None:
    """What is cast to bool is true where it is not zero."""
    element_type = scope.needed_element_type(node.input[0])
    if value_of(node, "to") != TensorProto.BOOL or element_type not in _COUNTABLE:
        return None
    body = Writer(node, scope)
    return body.yields("Not", body.add("Equal", node.input[0], body.constant(0, element_type, "zero"))), _OPSET


def _count_from_front(node: NodeProto, scope: Scope) -> Written | None:
    """Indices that are constant counted from the front, where the sizes they go by are known."""
    given, sizes = scope.constant(node.input[1]), scope.shape(node.input[0])
    if given is None or sizes is None:
        return None
    if node.op_type.endswith("ND"):
        batches = value_of(node, "batch_dims", 0)
        along = sizes[batches : batches + given.shape[-1]]
    else:
        along = (sizes[value_of(node, "axis", 0)],)
    if None in along:
        return None
    indices = given.astype(np.int64)
    counted = np.where(indices < 0, indices + np.array(along), indices)
    body = Writer(node, scope)
    place = scope.add_constant(counted.astype(given.dtype), "indices")
    scope.release(node.input[1])
    return body.yields(node.op_type, node.input[0], place, *node.input[2:], copied=node.attribute), scope.target_opset


def _leave_defaults_out(node: NodeProto, scope: Scope) -> Written | None:
    """State no attribute that says what it is by default."""
    found = schema(node.op_type, scope.target_opset)
    defaults = {_bytes(each.default_value) for each in found.attributes.values()} if found is not None else set()
    kept = [each for each in node.attribute if _bytes(each) not in defaults]
    if len(kept) == len(node.attribute):
        return None
    return Writer(node, scope).yields(node.op_type, *node.input, copied=kept), scope.target_opset


def _bytes(attribute: AttributeProto) -> bytes:
    return attribute.SerializeToString(deterministic=True)


FORMS: Mapping[str, Mapping[str, Remedy]] = {
    **{op: {"the other comparison of the operands swapped": _swap_operands} for op in _MIRRORED},
    **{op: {"Reshape in place of it": _reshape} for op in ("Squeeze", "Unsqueeze")},
    **{
        op: {"its indices counted from the front": _count_from_front, "defaults left out": _leave_defaults_out}
        for op in _INDEXED
    },
    "Cast": {"Identity before it": _set_apart, "comparison with zero in place of it": _compare_to_zero},
    "Expand": {"Mul by ones in place of it": _times_ones},
    "Gather": {"Slice and Concat in place of it": _slice_each},
    "Identity": {"Neg twice in place of it": _negate_twice},
    "Where": {"its branches swapped": _swap_branches, "Expand before it": _expand_operands},
}
"""By operator, in the order in which they are tried."""
