"""Conformance cases of the operators that replacements of reductions consist of.

They decide which replacement of a reduction is right on a runtime. Expected values are numpy's, in double or in the
integers' own type, rounded to the element type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from onnx import helper

from reducelower.conformance.building import make_case, takes
from reducelower.conformance.case import Array, Case
from reducelower.model.schemas import parse_element_type, schema

__all__ = ["PARTS", "part_cases"]

_Sizes: TypeAlias = tuple[int, ...]

_FLOATS = ("float", "float16", "double")
_INTEGERS = ("int32", "int64")
_NUMBERS = (*_FLOATS, *_INTEGERS)

_MIXED = np.array([[1.5, -2.25, 3.0, -0.5], [2.0, 1.0, -1.0, 4.0], [0.25, -3.5, 2.5, 1.25]])
_OTHER = np.array([[1.5, 2.0, -1.0, 0.5], [2.0, -1.0, 3.0, 4.0], [0.5, 1.75, 2.5, -1.25]])
_CLOSE = np.array([[1.5, -1.0, 4.0, -0.75], [2.0, -1.0, -2.0, -4.0], [0.5, -3.5, -2.5, 1.0]])
"""Some are equal to the first values, and of two negative ones each is sometimes the larger."""
_POSITIVE = np.abs(_MIXED)
_TRUTHS = _MIXED > 0
_OTHER_TRUTHS = _OTHER > 1


@dataclass(frozen=True)
class _Elementwise:
    """An elementwise operator: what it computes, and its inputs, which are truncated for integers."""

    compute: Callable[..., Array]
    types: tuple[str, ...] = _NUMBERS
    values: tuple[Array, ...] = (_MIXED, _OTHER)
    inputs: int = 2


def _quotient(left: Array, right: Array) -> Array:
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    return np.asarray(np.trunc(left / right)).astype(left.dtype)


def _one(compute: Callable[..., Array], types: tuple[str, ...] = _FLOATS, values: Array = _MIXED) -> _Elementwise:
    return _Elementwise(compute, types, (values,), 1)


_INFINITE = np.array([[np.inf, -2.25, 3.0, -np.inf], [2.0, 1.0, -np.inf, 4.0], [0.25, -3.5, np.inf, 1.25]])
_NAN = np.where(np.isinf(_INFINITE), np.nan, _INFINITE)
_HALVES = (5, 2**31 + 9, 2**31 - 2, 2**32 - 3)
"""Positive numbers whose lower halves are negative as 32-bit integers."""

_NOT_ZERO = np.where(np.abs(_OTHER) < 1, 2.0, _OTHER)

_ELEMENTWISE: Mapping[str, _Elementwise] = {
    "Abs": _one(np.abs, _NUMBERS),
    "Neg": _one(np.negative, _NUMBERS),
    "Sign": _one(np.sign, _NUMBERS),
    "Identity": _one(np.array, (*_NUMBERS, "bool")),
    "Sqrt": _one(np.sqrt, _FLOATS, _POSITIVE),
    "Log": _one(np.log, _FLOATS, _POSITIVE),
    "Exp": _one(np.exp),
    "Floor": _one(np.floor),
    "Ceil": _one(np.ceil),
    "Reciprocal": _one(np.reciprocal, _FLOATS, _POSITIVE),
    "Not": _one(np.logical_not, ("bool",)),
    "IsInf": _one(np.isinf, ("float", "double"), _INFINITE),
    "IsNaN": _one(np.isnan, ("float", "double"), _NAN),
    "Add": _Elementwise(np.add),
    "Sub": _Elementwise(np.subtract),
    "Mul": _Elementwise(np.multiply),
    "Div": _Elementwise(_quotient, values=(_MIXED, _NOT_ZERO)),
    "Pow": _Elementwise(np.power, _FLOATS, (_POSITIVE, _OTHER)),
    "Max": _Elementwise(np.maximum, values=(_MIXED, _CLOSE)),
    "Min": _Elementwise(np.minimum, values=(_MIXED, _CLOSE)),
    "Equal": _Elementwise(np.equal),
    "Less": _Elementwise(np.less, values=(_MIXED, _CLOSE)),
    "Greater": _Elementwise(np.greater, values=(_MIXED, _CLOSE)),
    "And": _Elementwise(np.logical_and, ("bool",)),
    "Or": _Elementwise(np.logical_or, ("bool",)),
}

_CASTS = (
    *(("float", goal) for goal in ("float16", "double", "int32", "int64", "bool", "int8", "uint8", "uint32")),
    *((source, "float") for source in ("float16", "double", "int32", "int64", "bool", "int8", "uint8", "uint32")),
    *(("double", goal) for goal in ("int32", "int64", "float16")),
    *((source, "double") for source in ("int32", "int64", "float16")),
    ("int32", "int64"),
    ("int64", "int32"),
    ("bool", "int32"),
    ("bool", "int64"),
)


def part_cases(operator: str, opset: int) -> Iterator[Case]:
    """The cases of an operator at an opset version; none if the version lacks operator or type."""
    if schema(operator, opset) is None:
        return
    if operator in _ELEMENTWISE:
        yield from _elementwise(operator, opset, _ELEMENTWISE[operator])
    else:
        yield from _OTHERS[operator](operator, opset)


def _case(
    name: str,
    operator: str,
    opset: int,
    inputs: Mapping[str, Array],
    expected: Array,
    constants: Mapping[str, Array] | None = None,
    tag: str = "",
    **attributes: Any,
) -> Case:
    """A case of a node that reads fed inputs, then constants."""
    known = {**inputs, **(constants or {})}
    node = helper.make_node(operator, list(known), ["result"], name="part", **attributes)
    return make_case(name, [node], opset, inputs, [expected], initializers=constants, tag=tag)


def _elementwise(operator: str, opset: int, part: _Elementwise) -> Iterator[Case]:
    for element_type in _taken(operator, opset, part.types):
        values = [_typed(value, element_type) for value in part.values[: part.inputs]]
        with np.errstate(all="ignore"):
            expected = part.compute(*(_wide(value) for value in values))
        kind = values[0].dtype if expected.dtype != np.bool_ else expected.dtype
        inputs = dict(zip("xyz", values, strict=False))
        yield _case(element_type, operator, opset, inputs, np.asarray(expected).astype(kind))
        if part.inputs == 2 and element_type in ("float", "int64"):
            row = values[1][1]
            broadcast = part.compute(_wide(values[0]), _wide(row)).astype(kind)
            yield _case(f"{element_type} broadcast", operator, opset, {"x": values[0], "y": row}, broadcast)
    if operator in ("Max", "Min") and _taken(operator, opset, ("int64",)):
        left, right = np.resize(_HALVES, 16), np.resize(_HALVES[::-1], 16)
        yield _case("int64 huge", operator, opset, {"x": left, "y": right}, part.compute(left, right), tag="huge")


def _cast(operator: str, opset: int) -> Iterator[Case]:
    for source, goal in _CASTS:
        values = _POSITIVE if goal.startswith("uint") or source.startswith("uint") else _MIXED
        data = _typed(_TRUTHS if source == "bool" else values, source)
        expected = data.astype(_dtype(goal))
        yield _case(f"{source} to {goal}", operator, opset, {"x": data}, expected, to=parse_element_type(goal))


def _cast_like(operator: str, opset: int) -> Iterator[Case]:
    for source, goal in (("float", "double"), ("double", "float"), ("float", "int64"), ("int64", "float")):
        data, like = _typed(_MIXED, source), _typed(np.asarray(1.0), goal)
        yield _case(f"{source} to {goal}", operator, opset, {"x": data}, data.astype(_dtype(goal)), {"like": like})


def _where(operator: str, opset: int) -> Iterator[Case]:
    """The condition is computed, since a runtime may take no bools as inputs."""
    for element_type in _NUMBERS:
        left, right = _typed(_MIXED, element_type), _typed(_OTHER, element_type)
        spread = [(f"{element_type} broadcast", right[1])] if element_type == "float" else []
        for name, other in [(element_type, right), *spread]:
            inputs = {"a": _typed(_MIXED, "float"), "b": _typed(_OTHER, "float"), "x": left, "y": other}
            nodes = [
                helper.make_node("Greater", ["a", "b"], ["condition"]),
                helper.make_node(operator, ["condition", "x", "y"], ["result"], name="part"),
            ]
            expected = np.where(inputs["a"] > inputs["b"], left, other)
            yield make_case(name, nodes, opset, inputs, [expected])


def _clip(operator: str, opset: int) -> Iterator[Case]:
    for element_type in _taken(operator, opset, _NUMBERS):
        data, low, high = (_typed(np.asarray(value), element_type) for value in (_MIXED, -1.0, 2.0))
        yield _case(element_type, operator, opset, {"x": data}, np.clip(data, low, high), {"low": low, "high": high})
    if _taken(operator, opset, ("int64",)):
        data, low, high = np.resize(_HALVES, 16), np.array(7), np.array(2**31 - 1)
        limits = {"low": low, "high": high}
        yield _case("int64 huge", operator, opset, {"x": data}, np.clip(data, low, high), limits, "huge")


def _resizing(operator: str, opset: int) -> Iterator[Case]:
    """Squeeze and Unsqueeze, whose axes are an attribute below opset 13."""
    six = _MIXED.ravel()[:6]
    shapes: list[tuple[str, _Sizes, _Sizes, _Sizes]]
    shapes = [(kind, (1,), (2, 1, 3), (2, 3)) for kind in ("float", "double", "int32", "int64")]
    shapes += [("float several", (0, 2), (1, 2, 1, 3), (2, 3)), ("float rank 0", (0,), (1,), ())]
    for name, axes, long, short in shapes:
        before, after = (long, short) if operator == "Squeeze" else (short, long)
        values = six if math.prod(long) == 6 else np.asarray([1.5])
        data = _typed(values.reshape(before), name.partition(" ")[0])
        given: dict[str, Any] = {"axes": axes} if opset < 13 else {"constants": {"axes": np.array(axes, np.int64)}}
        yield _case(name, operator, opset, {"x": data}, data.reshape(after), **given)


def _shaped(operator: str, opset: int) -> Iterator[Case]:
    """Reshape and Expand, by a constant shape and by one that is fed."""
    before, shape = ((3, 1), (2, 3, 4)) if operator == "Expand" else ((3, 4), (2, 6))
    sizes = np.array(shape, np.int64)
    for element_type in ("float", "double", "int32", "int64"):
        data = _typed(_MIXED.ravel()[: math.prod(before)].reshape(before), element_type)
        expected = np.array(np.broadcast_to(data, shape)) if operator == "Expand" else data.reshape(shape)
        yield _case(f"{element_type} constant", operator, opset, {"x": data}, expected, {"shape": sizes})
        if element_type == "float":
            yield _case(f"{element_type} fed", operator, opset, {"x": data, "shape": sizes}, expected)
    if operator == "Expand":
        data, expected = np.array(1.5, np.float32), np.full(shape, 1.5, np.float32)
        yield _case("float rank 0", operator, opset, {"x": data}, expected, {"shape": sizes})


def _measured(operator: str, opset: int) -> Iterator[Case]:
    """Shape and Size."""
    expected = np.array(_MIXED.shape if operator == "Shape" else _MIXED.size, np.int64)
    for element_type in ("float", "int64"):
        yield _case(element_type, operator, opset, {"x": _typed(_MIXED, element_type)}, expected)


def _gather(operator: str, opset: int) -> Iterator[Case]:
    indices = np.array([2, 0], np.int64)
    for element_type in ("float", "int64"):
        data = _typed(_MIXED, element_type)
        yield _case(element_type, operator, opset, {"x": data}, data[:, indices], {"indices": indices}, axis=1)


def _concat(operator: str, opset: int) -> Iterator[Case]:
    for element_type in ("float", "int64"):
        left, right = _typed(_MIXED, element_type), _typed(_OTHER, element_type)
        yield _case(element_type, operator, opset, {"x": left, "y": right}, np.concatenate([left, right]), axis=0)


_OTHERS: Mapping[str, Callable[[str, int], Iterator[Case]]] = {
    "Cast": _cast,
    "CastLike": _cast_like,
    "Where": _where,
    "Clip": _clip,
    **dict.fromkeys(("Squeeze", "Unsqueeze"), _resizing),
    **dict.fromkeys(("Reshape", "Expand"), _shaped),
    **dict.fromkeys(("Shape", "Size"), _measured),
    "Gather": _gather,
    "Concat": _concat,
}

PARTS = tuple(sorted((*_ELEMENTWISE, *_OTHERS)))
"""The operators, sorted."""


def _taken(operator: str, opset: int, element_types: Sequence[str]) -> list[str]:
    return [element_type for element_type in element_types if takes(operator, opset, element_type)]


def _dtype(element_type: str) -> np.dtype[np.generic]:
    return helper.tensor_dtype_to_np_dtype(parse_element_type(element_type))


def _typed(value: Array, element_type: str) -> Array:
    if element_type == "bool":
        return np.asarray(_TRUTHS if value is _MIXED else _OTHER_TRUTHS if value is _OTHER else value > 0)
    return np.asarray(value, _dtype(element_type))


def _wide(value: Array) -> Array:
    return value.astype(np.float64) if value.dtype.kind == "f" else value
