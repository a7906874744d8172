"""Nodes of element types that the target's version of their operator lacks: cast, compute, cast back.

This is done only if the wider type holds every value and the result after the cast back is that of the narrow type. The
table at the end lists the operators, with reasons. Before it, rules for lacking types are tried, after it those for
absent operators; then the node is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, defs, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import AnyRule, Function, rules_for
from reducelower.errors import RefusedError, UnknownValueError
from reducelower.files.external import read_tensor
from reducelower.model.attributes import make_node
from reducelower.model.schemas import element_type_name, parse_element_type, schema, versions
from reducelower.rulebook.boundaries import Boundaries
from reducelower.rulebook.occasions import Occasion
from reducelower.scope.body import AnyScope

__all__ = ["computed_in", "lacking", "retypings", "wider_types"]

_NUMBERED_SINCE = 6
"""First opset version whose Cast has its type as a number, and not as a name."""


def retypings(op_type: str, own: Boundaries | None = None) -> list[AnyRule]:
    """The ways to write a node of a lacking element type, in the order in which they are tried; the last refuses it."""
    occasion = Occasion("lacking", "")
    return [
        *rules_for(op_type, "lacking", own=own),
        Function(occasion, 0, _in_types_that_are_taken),
        *rules_for(op_type, "absent", own=own),
        Function(occasion, 0, _refuse),
    ]


def wider_types(op_type: str, narrow: int) -> Sequence[int]:
    """The types in which an operator gives the same result as in a narrow one, in the order in which they are tried."""
    return _COMPUTED_IN.get(op_type, {}).get(narrow, ())


def computed_in(op: Writer, narrow: int, wide: int) -> list[NodeProto] | None:
    """Compute a node in a wider type in place of a narrow one; None if the operator does not take that everywhere."""
    narrow_name, wide_name = (f"tensor({element_type_name(each)})" for each in (narrow, wide))
    goal = schema(op.node.op_type, op.scope.target_opset)
    assert goal is not None
    variables: dict[str, Collection[str]] = {}
    for names, formals in ((op.node.input, goal.inputs), (op.node.output, goal.outputs)):
        for index, name in enumerate(names):
            formal = formals[min(index, len(formals) - 1)]
            is_free = len(formal.types) > 1  # axes are of one type in any case
            if name and is_free and op.scope.type_string(name) == narrow_name:
                variables[formal.type_str] = formal.types
    if not variables or not all(wide_name in types for types in variables.values()):
        return None
    return _cast(op, goal, {narrow_name: variables}, {narrow_name: wide})


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


def _indices(names: Iterable[str], formals: list[defs.OpSchema.FormalParameter], variables: Iterable[str]) -> list[int]:
    return [
        index
        for index, name in enumerate(names)
        if name and formals[min(index, len(formals) - 1)].type_str in variables
    ]


def lacking(
    node: NodeProto, scope: AnyScope, goal: defs.OpSchema, *, strict: bool = False
) -> Mapping[str, Mapping[str, Collection[str]]]:
    """The types of operands that a schema does not take: for each, the type variables, with the types they allow.

    Raises:
        UnknownValueError: it is `strict`, none is known to be lacking, and the type of an operand is not known. An
            output that shares a type variable with an input has that input's type.
    """
    found: dict[str, dict[str, Collection[str]]] = {}
    unknown = ""
    variables = {formal.type_str for formal in goal.inputs}
    for names, formals, follows in ((node.input, goal.inputs, ()), (node.output, goal.outputs, variables)):
        for index, name in enumerate(names if formals else ()):
            formal = formals[min(index, len(formals) - 1)]
            type_name = scope.type_string(name) if name else ""
            if type_name is None and formal.type_str not in follows:
                unknown = unknown or name
            elif type_name and type_name not in formal.types:
                found.setdefault(type_name, {})[formal.type_str] = formal.types
    if strict and unknown and not found:
        raise UnknownValueError(
            f"the element type of {unknown!r} is not known, and opset {scope.target_opset} takes fewer types",
            scope.how_to_declare(unknown, "type"),
        )
    return found


def _wider(op_type: str, name: str, variables: Mapping[str, Collection[str]]) -> int:
    """The type in which to compute one that is lacking, by the table below; 0 if there is none."""
    if not name.startswith("tensor("):
        return 0
    for wide in wider_types(op_type, parse_element_type(name)):
        if all(f"tensor({element_type_name(wide)})" in types for types in variables.values()):
            return wide
    return 0


def _in_types_that_are_taken(op: Writer) -> list[NodeProto] | None:
    """Compute a node in wider types in place of those that are lacking."""
    goal = schema(op.node.op_type, op.scope.target_opset)
    assert goal is not None
    lacked = lacking(op.node, op.scope, goal)
    wider = {name: _wider(op.node.op_type, name, variables) for name, variables in lacked.items()}
    return _cast(op, goal, lacked, wider) if all(wider.values()) else None


def _cast(
    op: Writer, goal: defs.OpSchema, variables: Mapping[str, Mapping[str, Collection[str]]], wider: Mapping[str, int]
) -> list[NodeProto]:
    """Cast inputs of some types to wider ones, and outputs back; the node is for the target, and so are the casts.

    Inputs and outputs of the node are renamed in place.
    """
    for name, wide in wider.items():
        if op.node.op_type in _GENERATORS:
            _generate_floats(op, parse_element_type(name))
        cast_names = dict[str, str]()
        for index in _indices(op.node.input, list(goal.inputs), variables[name]):
            value = op.node.input[index]
            if value not in cast_names:
                cast_names[value] = op.add("Cast", value, tail=element_type_name(wide), to=_as_attribute(op, wide))
            op.node.input[index] = cast_names[value]
    op.nodes.append(op.node)
    for name in wider:
        narrow = parse_element_type(name)
        for index in _indices(op.node.output, list(goal.outputs), variables[name]):
            value = op.node.output[index]
            result = op.node.output[index] = op.fresh("result")
            last = make_node("Cast", [result], [value], to=_as_attribute(op, narrow))
            last.name = op.fresh(element_type_name(narrow))
            op.nodes.append(last)
    return op.nodes


def _as_attribute(op: Writer, element_type: int) -> int | str:
    return element_type if op.scope.target_opset >= _NUMBERED_SINCE else TensorProto.DataType.Name(element_type)


def _refuse(op: Writer) -> None:
    """Refuse a node; the refusal names the oldest opset version that takes the type, if any does."""
    op_type, opset = op.node.op_type, op.scope.target_opset
    goal = schema(op_type, opset)
    assert goal is not None
    lacked = lacking(op.node, op.scope, goal)
    name = next(name for name, variables in lacked.items() if not _wider(op_type, name, variables))
    if not name.startswith("tensor("):
        raise RefusedError(f"{op_type} does not take {name} at opset {opset}")
    narrow = element_type_name(parse_element_type(name))
    reason = f"{op_type} does not take {narrow} at opset {opset}, and no wider type gives the same result"
    for version in versions(op_type):
        definition = schema(op_type, version)
        if version > opset and definition is not None and any(name in one.types for one in definition.inputs):
            raise RefusedError(reason, f"opset {version} is the oldest that takes it")
    raise RefusedError(reason)


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

_TRUNCATED: _Wider = {**dict.fromkeys((_T.INT32, _T.INT64, _T.UINT32, _T.UINT64), (_T.DOUBLE, _T.FLOAT)), **_ROUNDED}
"""Integers are computed in double, or else in float, and truncated, as in the function body of later versions."""

_ADDED: _Wider = {_T.UINT32: (_T.INT64,), **_ROUNDED}

_PICKED: _Wider = {
    **dict.fromkeys((_T.INT8, _T.UINT8, _T.INT16, _T.UINT16), (_T.FLOAT,)),
    _T.INT32: (_T.DOUBLE,),
    _T.UINT32: (_T.DOUBLE, _T.INT64),
    **_ROUNDED,
}
"""The wider type holds every value, one of which is the result."""

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
    **dict.fromkeys(("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"), _TRUNCATED),
    # The lower half of a sum or product of 64 bits is that of 32 bits.
    **dict.fromkeys(("ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"), _ADDED),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _PICKED),
}  # fmt: skip
"""The wider types in which a narrow one is computed by each operator, in the order in which they are tried."""
