"""Handle element types that the target's version of an operator lacks: cast, compute, cast back.

This is done only if the wider type holds every value and the result after the cast back is that of the narrow type;
otherwise the node is refused. The table at the end lists the operators, with reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, defs, helper, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import first, rules_for
from reducelower.errors import RefusedError
from reducelower.model.attributes import make_node
from reducelower.model.numbers import whole_range
from reducelower.model.schemas import element_type_name, parse_element_type, schema, versions
from reducelower.rulebook.boundaries import Boundaries
from reducelower.scope.body import AnyScope
from reducelower.scope.values import read_tensor

__all__ = ["CAST_OPSET", "Fitted", "retype"]

CAST_OPSET = 13
"""Opset version that the nodes added here are written for."""

Fitted: TypeAlias = "tuple[list[NodeProto], NodeProto | None, list[NodeProto]]"
"""Nodes to put before a node, the node itself unless they replace it, nodes to put after it.

The node is written for the target's opset version, the ones added for `CAST_OPSET`.
"""


def retype(node: NodeProto, scope: AnyScope, misfit: str, goal: defs.OpSchema, own: Boundaries | None = None) -> Fitted:
    """Fit a node to the version `goal` of its operator, which lacks the type `misfit`, spelled as in schemas.

    Rules of the user's `own` are tried first.
    """
    written = first(rules_for(node.op_type, "lacking", own=own), node, scope, goal.since_version)
    if written is not None:
        return written.nodes, None, []
    if not misfit.startswith("tensor("):
        raise RefusedError(f"{node.op_type} does not take {misfit} at opset {scope.target_opset}")
    op, element_type = Writer(node, scope), parse_element_type(misfit)
    variables = _variables(op, element_type, goal)
    for wide in _COMPUTED_IN.get(node.op_type, {}).get(element_type, ()):
        if all(f"tensor({element_type_name(wide)})" in types for types in variables.values()):
            if node.op_type in _GENERATORS:
                _generate_floats(op, element_type)
            return _cast_around(op, element_type, wide, goal, variables)
    others = rules_for(node.op_type, "absent") if node.op_type == "BitShift" else ()
    written = first(others, node, scope, goal.since_version)
    if written is not None:
        return written.nodes, None, []
    raise refusal(op, element_type)


def refusal(op: Writer, element_type: int) -> RefusedError:
    """The refusal if no wider type will do; it names the oldest opset version that takes the type, if any does."""
    name, goal = element_type_name(element_type), op.scope.target_opset
    reason = f"{op.node.op_type} does not take {name} at opset {goal}, and no wider type gives the same result"
    for version in versions(op.node.op_type):
        definition = schema(op.node.op_type, version)
        takes = definition is not None and any(f"tensor({name})" in one.types for one in definition.inputs)
        if version > goal and takes:
            return RefusedError(reason, f"opset {version} is the oldest that takes it")
    return RefusedError(reason)


_T = TensorProto
_Wider: TypeAlias = Mapping[int, tuple[int, ...]]

_EXACT: _Wider = {
    _T.BOOL: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    **dict.fromkeys((_T.INT8, _T.UINT8, _T.INT16, _T.UINT16), (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE)),
    _T.INT32: (_T.INT64, _T.DOUBLE),
    _T.UINT32: (_T.INT64, _T.DOUBLE),
    _T.FLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.BFLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.FLOAT: (_T.DOUBLE,),
}
"""Wider types that hold every value exactly, those that runtimes have kernels for first."""


def _variables(op: Writer, element_type: int, goal: defs.OpSchema) -> dict[str, set[str]]:
    """The type variables of a schema that would be the narrow type at this node, each with the types it allows."""
    narrow, variables = f"tensor({element_type_name(element_type)})", dict[str, set[str]]()
    for names, formals in ((op.node.input, list(goal.inputs)), (op.node.output, list(goal.outputs))):
        for index, name in enumerate(names):
            formal = formals[min(index, len(formals) - 1)]
            allowed = formal.types
            if name and narrow not in allowed and op.scope.type_string(name) == narrow:
                variables[formal.type_str] = allowed
    return variables


def _indices(names: Iterable[str], formals: list[defs.OpSchema.FormalParameter], variables: Iterable[str]) -> list[int]:
    return [
        index
        for index, name in enumerate(names)
        if name and formals[min(index, len(formals) - 1)].type_str in variables
    ]


def _cast_around(op: Writer, element_type: int, wide: int, goal: defs.OpSchema, variables: Collection[str]) -> Fitted:
    """Compute a node in a wider element type: inputs of the narrow type are cast to it, and outputs back.

    Inputs and outputs of the node are renamed in place. The maximum or minimum of no values is infinite, so it is
    limited to the range of the narrow type.
    """
    before, after, cast_names = list[NodeProto](), list[NodeProto](), dict[str, str]()
    for index in _indices(op.node.input, list(goal.inputs), variables):
        name = op.node.input[index]
        if name not in cast_names:
            cast = op.fresh(element_type_name(wide))
            before.append(make_node("Cast", [name], [cast], to=wide))
            cast_names[name] = cast
        op.node.input[index] = cast_names[name]
    for index in _indices(op.node.output, list(goal.outputs), variables):
        name = op.node.output[index]
        result = op.node.output[index] = op.fresh("result")
        if op.node.op_type in _EXTREMES:
            result = _clamped(result, op.node, op.scope, element_type, wide, after)
        last = make_node("Cast", [result], [name], to=element_type)
        last.name = op.fresh(element_type_name(element_type))
        after.append(last)
    return before, op.node, after


def _clamped(name: str, node: NodeProto, scope: AnyScope, element_type: int, wide: int, after: list[NodeProto]) -> str:
    lowest, highest = whole_range(element_type)
    clamped = scope.fresh(node.name or name, f"/{node.op_type}/clamped")
    dtype = helper.tensor_dtype_to_np_dtype(wide)
    bounds = [
        scope.add_constant(np.array(bound, dtype), f"{element_type_name(element_type)}_{end}")
        for end, bound in (("lowest", lowest), ("highest", highest))
    ]
    after.append(make_node("Clip", [name, *bounds], [clamped]))
    return clamped


def _generate_floats(op: Writer, element_type: int) -> None:
    """Let an operator that generates numbers generate floats, which hold every value of the narrow type."""
    if op.node.op_type == "ConstantOfShape":
        value = read_tensor(op.attribute("value")).astype(np.float32)
        op.set("value", numpy_helper.from_array(value))
    elif op.attribute("dtype", 0) == element_type:
        op.set("dtype", _T.FLOAT)


_GENERATORS = (
    "ConstantOfShape", "EyeLike", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
)  # fmt: skip
_EXTREMES = ("ReduceMax", "ReduceMin")

_ROUNDED: _Wider = dict.fromkeys((_T.FLOAT16, _T.BFLOAT16), (_T.FLOAT,))
"""16-bit floats are computed in float32 and rounded at the end, as in runtimes.

For + - * / and square root the result is correctly rounded: rounding twice does no harm if the wider type has 2p+2
digits (24 >= 2*11+2; Figueroa, "When is double rounding innocuous?", 1995).
"""

_WRAPPED: _Wider = {
    **dict.fromkeys((_T.INT8, _T.UINT8), (_T.INT32,)),
    **dict.fromkeys((_T.INT16, _T.UINT16), (_T.INT64,)),  # a product of uint16 needs 32 bits and a sign
    **_ROUNDED,
}
"""The cast back keeps the low bits of integers, as the narrow type wraps."""

_COMPUTED_IN: Mapping[str, _Wider] = {
    # Values move or are chosen; nothing is computed.
    **dict.fromkeys((
        "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity",
        "NonZero", "OneHot", "Pad", "Reshape", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND", "Shape",
        "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unique", "Unsqueeze",
        "Where",
    ), _EXACT),
    # Values are compared; the result is one of them, or its index. A wider type has them in the same order.
    **dict.fromkeys((
        "ArgMax", "ArgMin", "Clip", "Equal", "GlobalMaxPool", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less",
        "LessOrEqual", "Max", "MaxPool", "Min", "Relu", "Sign", "TopK",
    ), _EXACT),
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), _WRAPPED),
    # Functions of real numbers. Of QLinearMatMul only the scales are floats, and float32 holds 16-bit ones exactly.
    **dict.fromkeys((
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Celu", "Conv", "ConvTranspose", "Cos",
        "Cosh", "Det", "Einsum", "Elu", "Erf", "GlobalAveragePool", "GlobalLpPool", "HardSigmoid", "HardSwish",
        "InstanceNormalization", "LeakyRelu", "LpNormalization", "LpPool", "Mish", "PRelu", "QLinearMatMul", "Range",
        "Round", "Selu", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "ThresholdedRelu",
    ), _ROUNDED),
    **dict.fromkeys(_GENERATORS, dict.fromkeys(
        (number for name, number in _T.DataType.items() if name == "BFLOAT16" or name.startswith("FLOAT8")), (_T.FLOAT,)
    )),
    **dict.fromkeys(_EXTREMES, dict.fromkeys((_T.BOOL, _T.INT8, _T.UINT8), (_T.FLOAT,))),
    # In double, and truncated, as in the function body of later versions.
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), dict.fromkeys(
        (_T.INT32, _T.INT64, _T.UINT32, _T.UINT64), (_T.DOUBLE,)
    )),
}  # fmt: skip
"""The wider types in which a narrow one is computed by each operator, in the order in which they are tried."""
