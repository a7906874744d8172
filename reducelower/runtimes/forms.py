"""Equivalent ways to write operators other than reductions, for runtimes that get one of them wrong."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.model.attributes import value_of
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
    shape = body.constant(sizes, TensorProto.INT64, "shape")
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
    shape = body.constant([-1 if size is None else size for size in sizes], TensorProto.INT64, "shape")
    _release_rest(node, scope)
    return body.yields("Reshape", node.input[0], shape), _OPSET


def _times_ones(node: NodeProto, scope: Scope) -> Written | None:
    """Multiply by ones of the shape, which is exact."""
    sizes, element_type = scope.constant(node.input[1]), scope.needed_element_type(node.input[0])
    if sizes is None or element_type not in _COUNTABLE or not 0 < prod(map(int, sizes)) <= _MOST_ONES:
        return None
    body = Writer(node, scope)
    ones = body.constant(np.ones(tuple(map(int, sizes))), element_type, "ones")
    _release_rest(node, scope)
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
    _release_rest(node, scope)
    return body.yields("Concat", *parts, axis=axis), _OPSET


def _release_rest(node: NodeProto, scope: Scope) -> None:
    for name in node.input[1:]:
        if name:
            scope.release(name)


FORMS: Mapping[str, Mapping[str, Remedy]] = {
    **{op: {"the other comparison of the operands swapped": _swap_operands} for op in _MIRRORED},
    **{op: {"Reshape in place of it": _reshape} for op in ("Squeeze", "Unsqueeze")},
    "Expand": {"Mul by ones in place of it": _times_ones},
    "Gather": {"Slice and Concat in place of it": _slice_each},
    "Identity": {"Neg twice in place of it": _negate_twice},
    "Where": {"its branches swapped": _swap_branches, "Expand before it": _expand_operands},
}
"""By operator, in the order in which they are tried."""
