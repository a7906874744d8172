"""Conformance cases of the operators that replacements of reductions are made of.

Whether these are right on a runtime decides which replacement can heal a reduction there. Expected values are numpy's,
in double or in the integers' own type, rounded to the element type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, helper

from reducelower.conformance.building import element_type_of, make_case
from reducelower.conformance.case import Array, Case, Features
from reducelower.model.schemas import parse_element_type, schema, taken_types

__all__ = ["PARTS", "part_cases"]

_FLOATS = ("float", "float16", "double")
_INTEGERS = ("int32", "int64")
_NUMBERS = (*_FLOATS, *_INTEGERS)

_MIXED = np.array([[1.5, -2.25, 3.0, -0.5], [2.0, 1.0, -1.0, 4.0], [0.25, -3.5, 2.5, 1.25]])
_OTHER = np.array([[1.5, 2.0, -1.0, 0.5], [2.0, -1.0, 3.0, 4.0], [0.5, 1.75, 2.5, -1.25]])
_POSITIVE = np.abs(_MIXED)
_TRUTHS = _MIXED > 0
_OTHER_TRUTHS = _OTHER > 1


@dataclass(frozen=True)
class _Elementwise:
    """An operator that works element by element.

    Attributes:
        compute: what it does, on numpy arrays.
        types: element types to try.
        values: what to put in; integers are these, truncated.
        inputs: how many tensors it takes.
    """

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
"""Numbers whose lower halves, taken for numbers of their own, are negative where the whole is not."""

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
    "Max": _Elementwise(np.maximum),
    "Min": _Elementwise(np.minimum),
    "Equal": _Elementwise(np.equal),
    "Less": _Elementwise(np.less),
    "Greater": _Elementwise(np.greater),
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
    """The cases of an operator at an opset version; none where it has no such operator or takes no such type."""
    if schema(operator, opset) is None:
        return
    if operator in _ELEMENTWISE:
        yield from _elementwise(operator, opset, _ELEMENTWISE[operator])
    else:
        yield from _OTHERS[operator](opset)


def _elementwise(operator: str, opset: int, part: _Elementwise) -> Iterator[Case]:
    for element_type in part.types:
        if not _takes(operator, opset, element_type):
            continue
        values = [_typed(value, element_type) for value in part.values[: part.inputs]]
        with np.errstate(all="ignore"):
            expected = part.compute(*(_wide(value) for value in values))
        kind = values[0].dtype if expected.dtype != np.bool_ else expected.dtype
        yield _of_inputs(operator, opset, element_type, values, np.asarray(expected).astype(kind))
        if part.inputs == 2 and element_type in ("float", "int64"):
            row = values[1][1]
            broadcast = part.compute(_wide(values[0]), _wide(row)).astype(kind)
            yield _of_inputs(operator, opset, f"{element_type} broadcast", [values[0], row], broadcast)
    if operator in ("Max", "Min") and _takes(operator, opset, "int64"):
        values = [np.resize(_HALVES, 16), np.resize(_HALVES[::-1], 16)]
        yield _of_inputs(operator, opset, "int64 huge", values, part.compute(*values), "huge")


def _of_inputs(operator: str, opset: int, name: str, values: list[Array], expected: Array, tag: str = "") -> Case:
    names = ["x", "y", "z"][: len(values)]
    node = helper.make_node(operator, names, ["result"], name="part")
    return _case(name, node, opset, dict(zip(names, values, strict=True)), expected, tag=tag)


def _case(
    name: str,
    node: NodeProto,
    opset: int,
    inputs: Mapping[str, Array],
    expected: Array,
    initializers: Mapping[str, Array] | None = None,
    tag: str = "",
) -> Case:
    known = {**(initializers or {}), **inputs}
    first = known[node.input[0]] if node.input else expected
    features = Features(
        element_type_of(first),
        first.ndim,
        expected.ndim,
        output_types=element_type_of(expected),
        fed=any(each in inputs for each in node.input[1:]),
    )
    return make_case(name, [node], opset, features, inputs, [expected], initializers=initializers, tag=tag)


def _cast(opset: int) -> Iterator[Case]:
    for source, goal in _CASTS:
        values = _POSITIVE if goal.startswith("uint") or source.startswith("uint") else _MIXED
        data = _typed(_TRUTHS if source == "bool" else values, source)
        number = parse_element_type(goal)
        node = helper.make_node("Cast", ["x"], ["result"], name="part", to=number)
        yield _case(f"{source} to {goal}", node, opset, {"x": data}, data.astype(_dtype(goal)))


def _cast_like(opset: int) -> Iterator[Case]:
    for source, goal in (("float", "double"), ("double", "float"), ("float", "int64"), ("int64", "float")):
        data = _typed(_MIXED, source)
        node = helper.make_node("CastLike", ["x", "like"], ["result"], name="part")
        like = _typed(np.asarray(1.0), goal)
        yield _case(f"{source} to {goal}", node, opset, {"x": data}, data.astype(_dtype(goal)), {"like": like})


def _where(opset: int) -> Iterator[Case]:
    """Truth values are compared first: a runtime that is fed none may still pick by them."""
    for element_type in _NUMBERS:
        left, right = _typed(_MIXED, element_type), _typed(_OTHER, element_type)
        inputs = {"a": _typed(_MIXED, "float"), "b": _typed(_OTHER, "float"), "x": left, "y": right}
        nodes = [
            helper.make_node("Greater", ["a", "b"], ["condition"]),
            helper.make_node("Where", ["condition", "x", "y"], ["result"], name="part"),
        ]
        features = Features("bool", left.ndim, left.ndim, output_types=element_type, fed=True)
        expected = np.where(inputs["a"] > inputs["b"], left, right)
        yield make_case(element_type, nodes, opset, features, inputs, [expected])


def _clip(opset: int) -> Iterator[Case]:
    for element_type in _NUMBERS:
        if not _takes("Clip", opset, element_type):
            continue
        data, low, high = (_typed(np.asarray(value), element_type) for value in (_MIXED, -1.0, 2.0))
        node = helper.make_node("Clip", ["x", "low", "high"], ["result"], name="part")
        expected = np.clip(data, low, high)
        yield _case(element_type, node, opset, {"x": data}, expected, {"low": low, "high": high})
    if _takes("Clip", opset, "int64"):
        data, low, high = np.resize(_HALVES, 16), np.array(7), np.array(2**31 - 1)
        node = helper.make_node("Clip", ["x", "low", "high"], ["result"], name="part")
        expected = np.clip(data, low, high)
        yield _case("int64 huge", node, opset, {"x": data}, expected, {"low": low, "high": high}, "huge")


def _resizing(operator: str) -> Callable[[int], Iterator[Case]]:
    """Squeeze and Unsqueeze, whose axes are an attribute below opset 13."""
    before, axes, after = ((2, 1, 3), (1,), (2, 3)) if operator == "Squeeze" else ((2, 3), (1,), (2, 1, 3))

    def cases(opset: int) -> Iterator[Case]:
        for element_type in ("float", "double", "int32", "int64"):
            data = _typed(_MIXED.ravel()[:6].reshape(before), element_type)
            given = _with_axes(operator, opset, axes)
            yield _case(element_type, given[0], opset, {"x": data}, data.reshape(after), given[1])
        several, longer = np.asarray(_MIXED.ravel()[:6].reshape(2, 3), np.float32), (1, 2, 1, 3)
        node, initializers = _with_axes(operator, opset, (0, 2))
        data, expected = (
            (several.reshape(longer), several) if operator == "Squeeze" else (several, several.reshape(longer))
        )
        yield _case("float several", node, opset, {"x": data}, expected, initializers)
        data = _typed(np.asarray([1.5]), "float")
        to_scalar = operator == "Squeeze"
        node, initializers = _with_axes(operator, opset, (0,))
        source = data if to_scalar else data.reshape(())
        goal = data.reshape(() if to_scalar else (1,))
        yield _case("float rank 0", node, opset, {"x": source}, goal, initializers)

    return cases


def _with_axes(operator: str, opset: int, axes: tuple[int, ...]) -> tuple[NodeProto, dict[str, Array]]:
    if opset < 13:
        return helper.make_node(operator, ["x"], ["result"], name="part", axes=axes), {}
    node = helper.make_node(operator, ["x", "axes"], ["result"], name="part")
    return node, {"axes": np.array(axes, np.int64)}


def _shaped(operator: str, before: tuple[int, ...], shape: tuple[int, ...]) -> Callable[[int], Iterator[Case]]:
    """Reshape and Expand, by a constant shape and by one that is fed."""

    def cases(opset: int) -> Iterator[Case]:
        for element_type in ("float", "double", "int32", "int64"):
            data = _typed(_MIXED.ravel()[: int(np.prod(before))].reshape(before), element_type)
            sizes = np.array(shape, np.int64)
            expected = np.array(np.broadcast_to(data, shape)) if operator == "Expand" else data.reshape(shape)
            node = helper.make_node(operator, ["x", "shape"], ["result"], name="part")
            yield _case(f"{element_type} constant", node, opset, {"x": data}, expected, {"shape": sizes})
            if element_type == "float":
                yield _case(f"{element_type} fed", node, opset, {"x": data, "shape": sizes}, expected)

    return cases


def _measured(operator: str) -> Callable[[int], Iterator[Case]]:
    """Shape and Size."""

    def cases(opset: int) -> Iterator[Case]:
        for element_type in ("float", "int64"):
            data = _typed(_MIXED, element_type)
            expected = np.array(data.shape if operator == "Shape" else data.size, np.int64)
            node = helper.make_node(operator, ["x"], ["result"], name="part")
            yield _case(element_type, node, opset, {"x": data}, expected)

    return cases


def _gather(opset: int) -> Iterator[Case]:
    for element_type in ("float", "int64"):
        data, indices = _typed(_MIXED, element_type), np.array([2, 0], np.int64)
        node = helper.make_node("Gather", ["x", "indices"], ["result"], name="part", axis=1)
        yield _case(element_type, node, opset, {"x": data}, data[:, indices], {"indices": indices})


def _concat(opset: int) -> Iterator[Case]:
    for element_type in ("float", "int64"):
        left, right = _typed(_MIXED, element_type), _typed(_OTHER, element_type)
        node = helper.make_node("Concat", ["x", "y"], ["result"], name="part", axis=0)
        yield _case(element_type, node, opset, {"x": left, "y": right}, np.concatenate([left, right]))


_OTHERS: Mapping[str, Callable[[int], Iterator[Case]]] = {
    "Cast": _cast,
    "CastLike": _cast_like,
    "Where": _where,
    "Clip": _clip,
    "Squeeze": _resizing("Squeeze"),
    "Unsqueeze": _resizing("Unsqueeze"),
    "Reshape": _shaped("Reshape", (3, 4), (2, 6)),
    "Expand": _shaped("Expand", (3, 1), (2, 3, 4)),
    "Shape": _measured("Shape"),
    "Size": _measured("Size"),
    "Gather": _gather,
    "Concat": _concat,
}

PARTS = tuple(sorted((*_ELEMENTWISE, *_OTHERS)))
"""The operators, sorted."""


def _takes(operator: str, opset: int, element_type: str) -> bool:
    found = schema(operator, opset)
    assert found is not None
    return f"tensor({element_type})" in taken_types(found, found.inputs[0])


def _dtype(element_type: str) -> np.dtype[np.generic]:
    return helper.tensor_dtype_to_np_dtype(parse_element_type(element_type))


def _typed(value: Array, element_type: str) -> Array:
    if element_type == "bool":
        return np.asarray(_TRUTHS if value is _MIXED else _OTHER_TRUTHS if value is _OTHER else value > 0)
    return np.asarray(value, _dtype(element_type))


def _wide(value: Array) -> Array:
    return value.astype(np.float64) if value.dtype.kind == "f" else value
