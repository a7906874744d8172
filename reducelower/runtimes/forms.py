"""Equivalent ways to write operators other than reductions, for runtimes that get one of them wrong."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.model.attributes import value_of
from reducelower.model.schemas import default_attributes, schema
from reducelower.runtimes.recurrences import RECURRENCES
from reducelower.runtimes.remedies import Remedy, Written
from reducelower.runtimes.windows import WINDOWS
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

_MOST_SPREAD = 1 << 20
"""Elements up to which a constant operand is written out once for each matrix of a stack."""

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


def _reshape_no_zeros(node: NodeProto, scope: Scope) -> Written | None:
    """Leave allowzero out if the shape has no zeros."""
    sizes, own = scope.constant(node.input[1]), scope.shape(node.input[0])
    may_have_zeros = 0 in sizes if sizes is not None else own is None or not all(own)
    if not value_of(node, "allowzero", 0) or may_have_zeros:
        return None
    return Writer(node, scope).yields("Reshape", *node.input), _OPSET


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


def _set_inputs_apart(node: NodeProto, scope: Scope) -> Written | None:
    """Let an Identity come before what the model is fed, so that it is computed as any other value."""
    body = Writer(node, scope)
    operands = [
        body.add("Identity", name, tail=f"operand_{at}") if scope.written_as(name) == "fed" else name
        for at, name in enumerate(node.input)
    ]
    return (body.yields(node.op_type, *operands, copied=node.attribute), scope.target_opset) if body.nodes else None


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


def _multiply_and_add(node: NodeProto, scope: Scope) -> Written | None:
    """Gemm as the product and sum that it stands for."""
    element_type = scope.needed_element_type(node.input[0])
    factors = {name: value_of(node, name, 1.0) for name in ("alpha", "beta")}
    if element_type not in _COUNTABLE:
        return None
    body = Writer(node, scope)

    def turned(name: str, flag: str) -> str:
        return body.add("Transpose", name, tail=flag, perm=[1, 0]) if value_of(node, flag, 0) else name

    def scaled(name: str, by: str) -> str:
        factor = factors[by]
        return name if factor == 1 else body.add("Mul", name, body.constant(factor, element_type, by), tail=f"by_{by}")

    operands = turned(node.input[0], "transA"), turned(node.input[1], "transB")
    product = scaled(body.add("MatMul", *operands, tail="product"), "alpha")
    if len(node.input) < 3 or not node.input[2]:
        return body.yields_value(product), _OPSET
    return body.yields("Add", product, scaled(node.input[2], "beta")), _OPSET


def _spread_operands(node: NodeProto, scope: Scope) -> Written | None:
    """Bring both operands of a product of stacked matrices to the same stack beforehand."""
    shapes = [scope.shape(name) for name in (*node.input, node.output[0])]
    known = [[size for size in shape if size is not None] for shape in shapes if shape is not None and len(shape) > 1]
    if len(known) < len(shapes) or any(
        len(sizes) != len(shape or ()) for sizes, shape in zip(known, shapes, strict=True)
    ):
        return None
    stack, body = known.pop()[:-2], Writer(node, scope)
    operands = []
    for name, sizes in zip(node.input, known, strict=True):
        wanted, value = [*stack, *sizes[-2:]], scope.constant(name)
        if sizes == wanted:
            operands.append(name)
        elif value is not None and prod(wanted) <= _MOST_SPREAD:
            operands.append(scope.add_constant(np.broadcast_to(value, wanted).copy(), "spread"))
            scope.release(name)
        else:
            operands.append(body.add("Expand", name, body.integers(wanted, "shape"), tail="spread"))
    return None if operands == list(node.input) else (body.yields(node.op_type, *operands), _OPSET)


def _count(node: NodeProto, scope: Scope) -> Written:
    """The number of elements as the product of the sizes."""
    body = Writer(node, scope)
    return body.yields("ReduceProd", body.add("Shape", node.input[0]), keepdims=0), _OPSET


def _write_defaults(node: NodeProto, scope: Scope) -> Written | None:
    """State every attribute that has a default."""
    stated = {each.name for each in node.attribute}
    missing = {
        name: value
        for name, value in default_attributes(node.op_type, scope.target_opset).items()
        if name not in stated
    }
    if not missing:
        return None
    made = Writer(node, scope).yields(node.op_type, *node.input, copied=node.attribute, **missing)
    return made, scope.target_opset


def _bytes(attribute: AttributeProto) -> bytes:
    return attribute.SerializeToString(deterministic=True)


_MOST_UPDATES = 64
"""Indices for each of which five nodes are written."""

_REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
"""What puts together what is there and an update, by reduction."""


def _scatter_one_by_one(node: NodeProto, scope: Scope) -> Written | None:
    """Put each update together with what is there by then, and scatter that; opset 13 has no reduction."""
    step = _REDUCTIONS.get(value_of(node, "reduction", "none"))
    data, indices, updates = node.input
    sizes, extents = scope.shape(indices), scope.shape(data)
    if step is None or not sizes or not extents or scope.needed_element_type(data) not in _COUNTABLE:
        return None
    body = Writer(node, scope)
    is_nd = node.op_type == "ScatterND"
    axis = 0 if is_nd else value_of(node, "axis", 0)
    known = [size for size in (*sizes, *extents) if size is not None]
    count = prod(known[: len(sizes) - 1]) if is_nd else known[axis % len(sizes)]
    if len(known) < len(sizes) + len(extents) or not 0 < count <= _MOST_UPDATES:
        return None
    if is_nd and len(sizes) != 2:  # one list of them all
        depth = known[len(sizes) - 1]
        indices = body.add("Reshape", indices, body.integers([count, depth], "shape"), tail="indices")
        updates = body.add(
            "Reshape", updates, body.integers([count, *known[len(sizes) + depth :]], "shape"), tail="updates"
        )
    stated: dict[str, Any] = {} if is_nd else {"axis": axis}
    for at in range(count):
        bounds = [body.number(place) for place in (at, at + 1, axis)]
        place, update = (body.add("Slice", name, *bounds, tail=f"part_{at}") for name in (indices, updates))
        there = body.add("GatherND" if is_nd else "GatherElements", data, place, tail=f"there_{at}", **stated)
        both = body.add(step, there, update, tail=f"both_{at}")
        data = body.add(node.op_type, data, place, both, tail=f"scattered_{at}", **stated)
    return body.yields_value(data), _OPSET


FORMS: Mapping[str, Mapping[str, Remedy]] = {
    **WINDOWS,
    **{op: {"the other comparison of the operands swapped": _swap_operands} for op in _MIRRORED},
    **{op: {"Reshape in place of it": _reshape} for op in ("Squeeze", "Unsqueeze")},
    **{
        op: {
            "its indices counted from the front": _count_from_front,
            "defaults left out": _leave_defaults_out,
            **({"one index after the other": _scatter_one_by_one} if op.startswith("Scatter") else {}),
        }
        for op in _INDEXED
    },
    "Cast": {"Identity before it": _set_apart, "comparison with zero in place of it": _compare_to_zero},
    "Concat": {"Identity before its inputs": _set_inputs_apart},
    "Erf": {"Identity before it": _set_apart},
    "Expand": {"Mul by ones in place of it": _times_ones},
    **RECURRENCES,
    "Gather": {"Slice and Concat in place of it": _slice_each},
    "Gemm": {"MatMul and Add in place of it": _multiply_and_add},
    "Identity": {"Neg twice in place of it": _negate_twice},
    "LogSoftmax": {"defaults written": _write_defaults},
    "MatMul": {"its operands spread beforehand": _spread_operands},
    "Reshape": {"allowzero left out": _reshape_no_zeros},
    "Size": {"the product of its sizes": _count},
    "Where": {"its branches swapped": _swap_branches, "Expand before it": _expand_operands},
}
"""By operator, in the order in which they are tried."""
