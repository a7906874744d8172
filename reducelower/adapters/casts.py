"""Handle element types that the target's version of an operator lacks: cast, compute, cast back.

This is done only if the wider type holds every value and the result after the cast back is that of the narrow type;
otherwise the node is refused. The table at the end lists the operators, with reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, defs, helper, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import entered
from reducelower.errors import RefusedError
from reducelower.model.attributes import make_node
from reducelower.model.numbers import whole_range
from reducelower.model.schemas import element_type_name, parse_element_type, schema, versions
from reducelower.rulebook.boundaries import Boundaries, shipped
from reducelower.scope.body import AnyScope
from reducelower.scope.values import read_tensor

__all__ = ["CAST_OPSET", "Fitted", "cast_exactly", "refusal", "retype", "retypes"]

CAST_OPSET = 13
"""Opset version that the nodes added here are written for."""

Fitted: TypeAlias = "tuple[list[NodeProto], NodeProto | None, list[NodeProto]]"
"""Nodes to put before a node, the node itself unless they replace it, nodes to put after it.

The node is written for the target's opset version, the ones added for `CAST_OPSET`.
"""

_Retype: TypeAlias = Callable[[Writer, int, defs.OpSchema], Fitted]

_RETYPES: dict[str, _Retype] = {}


def retypes(*op_types: str) -> Callable[[_Retype], _Retype]:
    """Register how operators handle an element type that their version at the target lacks."""
    return entered(_RETYPES, *op_types)


def retype(node: NodeProto, scope: AnyScope, misfit: str, goal: defs.OpSchema, own: Boundaries | None = None) -> Fitted:
    """Fit a node to the version `goal` of its operator, which lacks the type `misfit`, spelled as in schemas.

    Rules of the user's `own` are tried first.
    """
    for rule in (*(() if own is None else own.retypings(node.op_type)), *shipped().retypings(node.op_type)):
        nodes = rule.apply(node, scope, goal.since_version)
        if isinstance(nodes, list):
            return nodes, None, []
    if not misfit.startswith("tensor("):
        raise RefusedError(f"{node.op_type} does not take {misfit} at opset {scope.target_opset}")
    op, element_type = Writer(node, scope), parse_element_type(misfit)
    if node.op_type not in _RETYPES:
        raise refusal(op, element_type)
    return _RETYPES[node.op_type](op, element_type, goal)


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
_WIDER: Mapping[int, tuple[int, ...]] = {
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


def _allow(variables: Mapping[str, set[str]], wide: int) -> bool:
    """Whether all these type variables allow a wider type."""
    return all(f"tensor({element_type_name(wide)})" in types for types in variables.values())


def _indices(names: Iterable[str], formals: list[defs.OpSchema.FormalParameter], variables: Iterable[str]) -> list[int]:
    return [
        index
        for index, name in enumerate(names)
        if name and formals[min(index, len(formals) - 1)].type_str in variables
    ]


def _cast_around(op: Writer, element_type: int, wide: int, goal: defs.OpSchema, *, clamp: bool = False) -> Fitted:
    """Compute a node in a wider element type: inputs of the narrow type are cast to it, and outputs back.

    Inputs and outputs of the node are renamed in place. `clamp` limits results to the range of the narrow type, for the
    maximum or minimum of no values, which is infinite.
    """
    variables = _variables(op, element_type, goal)
    if not _allow(variables, wide):
        raise refusal(op, element_type)
    before, after, cast_names = list[NodeProto](), list[NodeProto](), dict[str, str]()
    for index in _indices(op.node.input, list(goal.inputs), variables):
        name = op.node.input[index]
        if name not in cast_names:
            cast = op.fresh(element_type_name(wide))
            op.scope.declare(cast, wide)
            before.append(make_node("Cast", [name], [cast], to=wide))
            cast_names[name] = cast
        op.node.input[index] = cast_names[name]
    for index in _indices(op.node.output, list(goal.outputs), variables):
        name = op.node.output[index]
        result = op.node.output[index] = op.fresh("result")
        op.scope.declare(result, wide)
        if clamp:
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
    scope.declare(clamped, wide)
    after.append(make_node("Clip", [name, *bounds], [clamped]))
    return clamped


def cast_exactly(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Compute in the first wider type that the target takes and that holds every value exactly.

    This is for operators that only move, choose or compare values, since the wider type has them in the same order.
    """
    variables = _variables(op, element_type, goal)
    for wide in _WIDER.get(element_type, ()):
        if _allow(variables, wide):
            return _cast_around(op, element_type, wide, goal)
    raise refusal(op, element_type)


def _wrap_around(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Compute integers of 8 and 16 bits in wider ones; the cast back keeps the low bits, as the narrow type wraps."""
    if element_type in (_T.INT8, _T.UINT8):
        return _cast_around(op, element_type, _T.INT32, goal)
    if element_type in (_T.INT16, _T.UINT16):
        # A product of uint16 needs 32 bits and a sign, so int32 is too narrow.
        return _cast_around(op, element_type, _T.INT64, goal)
    return _round_once(op, element_type, goal)


def _round_once(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Compute 16-bit floats in float32 and round at the end, as runtimes do.

    For + - * / and square root the result is correctly rounded: rounding twice does no harm if the wider type has 2p+2
    digits (24 >= 2*11+2; Figueroa, "When is double rounding innocuous?", 1995).
    """
    if element_type not in (_T.FLOAT16, _T.BFLOAT16):
        raise refusal(op, element_type)
    return _cast_around(op, element_type, _T.FLOAT, goal)


def _by_expression(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Apply the rules for targets that lack the operator."""
    for rule in shipped().expressions(op.node.op_type):
        nodes = rule.apply(op.node, op.scope, goal.since_version)
        if isinstance(nodes, list) and rule.opset == CAST_OPSET:
            return nodes, None, []
    raise refusal(op, element_type)


def _extreme_of_small(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Compute the maximum or minimum of bools or small integers in float."""
    if element_type not in (_T.BOOL, _T.INT8, _T.UINT8):
        raise refusal(op, element_type)
    return _cast_around(op, element_type, _T.FLOAT, goal, clamp=True)


def _log_in_double(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Compute logarithms of integers in double and truncate, as the function body of later versions does."""
    if element_type not in (_T.INT32, _T.INT64, _T.UINT32, _T.UINT64):
        raise refusal(op, element_type)
    return _cast_around(op, element_type, _T.DOUBLE, goal)


_SHORT_FLOATS = frozenset(
    number for name, number in _T.DataType.items() if name == "BFLOAT16" or name.startswith("FLOAT8")
)


def _generate_floats(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Let operators that generate numbers generate floats, which hold every value of the narrow type."""
    if element_type not in _SHORT_FLOATS:
        raise refusal(op, element_type)
    if op.node.op_type == "ConstantOfShape":
        value = read_tensor(op.attribute("value")).astype(np.float32)
        op.set("value", numpy_helper.from_array(value))
    elif op.attribute("dtype", 0) == element_type:
        op.set("dtype", _T.FLOAT)
    return _cast_around(op, element_type, _T.FLOAT, goal)


# Values move or are chosen; nothing is computed.
retypes(
    "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity",
    "NonZero", "OneHot", "Pad", "Reshape", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND", "Shape",
    "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where",
)(cast_exactly)  # fmt: skip
# Values are compared; the result is one of them, or its index.
retypes(
    "ArgMax", "ArgMin", "Clip", "Equal", "GlobalMaxPool", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less",
    "LessOrEqual", "Max", "MaxPool", "Min", "Relu", "Sign", "TopK",
)(cast_exactly)  # fmt: skip
retypes("Add", "Div", "Mul", "Sub")(_wrap_around)
# Signed integers came late; the rules shift them by 64-bit arithmetic.
retypes("BitShift")(_by_expression)
# Functions of real numbers, which are rounded once.
retypes(
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Celu", "Conv", "ConvTranspose", "Cos", "Cosh",
    "Det", "Einsum", "Elu", "Erf", "GlobalAveragePool", "GlobalLpPool", "HardSigmoid", "HardSwish",
    "InstanceNormalization", "LeakyRelu", "LpNormalization", "LpPool", "Mish", "PRelu", "Range", "Round", "Selu", "Sin",
    "Sinh", "Softplus", "Softsign", "Tan", "ThresholdedRelu",
)(_round_once)  # fmt: skip
# Only its scales are floats, and float32 holds 16-bit ones exactly.
retypes("QLinearMatMul")(_round_once)
retypes(
    "ConstantOfShape", "EyeLike", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
)(_generate_floats)  # fmt: skip
retypes("ReduceMax", "ReduceMin")(_extreme_of_small)
retypes("ReduceLogSum", "ReduceLogSumExp")(_log_in_double)
