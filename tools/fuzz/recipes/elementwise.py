"""Elementwise operators with two or more inputs, and those whose values need care."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe

_BINARY = (
    "Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Less", "Greater", "GreaterOrEqual", "LessOrEqual", "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "StringConcat",
)  # fmt: skip


def _other_shape(draft: Draft, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another one, in either direction."""
    kept = shape[draft.integer(0, len(shape)) :] if draft.flip(0.4) else shape
    other = tuple(1 if draft.flip(0.25) else size for size in kept)
    grown = draft.flip(0.15) and len(other) == len(shape) < 5
    return (draft.integer(1, 3), *other) if grown else other


def _pair(draft: Draft) -> tuple[np.ndarray, np.ndarray]:
    first = draft.data(0)
    if "broadcast" not in draft.schema.attributes:
        return first, draft.tensor(1, _other_shape(draft, first.shape))
    if not draft.flip():
        return first, draft.tensor(1, first.shape)
    draft.attributes["broadcast"] = 1
    start = draft.integer(0, first.ndim)
    stop = draft.integer(start, first.ndim)
    if stop != first.ndim or draft.flip(0.3):
        draft.attributes["axis"] = start
    return first, draft.tensor(1, first.shape[start:stop])


@recipe(*_BINARY)
def binary(draft: Draft) -> None:
    _pair(draft)


@recipe("Div")
def division(draft: Draft) -> None:
    """Division of small integers by integers other than zero; small, because -128 / -1 overflows."""
    edge, draft.edge = draft.edge, False
    _, divisor = _pair(draft)
    if divisor.dtype.kind in "iu":
        draft.give(1, np.where(divisor == 0, np.asarray(3, divisor.dtype), divisor).reshape(divisor.shape))
    elif edge:
        draft.tensor(1, divisor.shape, edge=True)


@recipe("Where")
def where(draft: Draft) -> None:
    shape = draft.data(1).shape
    draft.tensor(0, _other_shape(draft, shape))
    kept = tuple(1 if draft.flip(0.3) else size for size in shape)
    draft.tensor(2, kept)


@recipe("Max", "Min", "Sum", "Mean")
def variadic(draft: Draft) -> None:
    shape = draft.data(0).shape
    for position in range(1, draft.integer(1, 4)):
        same = draft.opset < 8
        draft.tensor(position, shape if same else tuple(1 if draft.flip(0.25) else size for size in shape))


@recipe("PRelu")
def prelu(draft: Draft) -> None:
    data = draft.data(0, 0 if draft.opset >= 7 else 2)
    if draft.opset < 7:
        draft.tensor(1, (data.shape[1],) if draft.flip() else (1,))
    else:
        kept = data.shape[draft.integer(0, data.ndim) :]
        draft.tensor(1, tuple(1 if draft.flip(0.3) else size for size in kept))


@recipe("Clip")
def clip(draft: Draft) -> None:
    data = draft.data(0)
    bounds = sorted(float(bound) for bound in draft.rng.integers(0 if data.dtype.kind == "u" else -3, 6, 2))
    for name, bound in zip(("min", "max"), bounds, strict=True):
        if not draft.flip(0.7):
            continue
        if name in draft.schema.attributes:
            draft.attributes[name] = bound
        else:
            draft.give(1 if name == "min" else 2, np.asarray(bound).astype(data.dtype), parameter=True)


@recipe("Shape")
def shape_of(draft: Draft) -> None:
    rank = draft.data(0).ndim
    for name in ("start", "end"):
        if name in draft.schema.attributes and draft.flip():
            draft.attributes[name] = draft.integer(-rank - 2, rank + 2)


@recipe("Constant")
def constant(draft: Draft) -> None:
    from onnx import numpy_helper

    from tools.fuzz.values import draw_values

    element_type = draft.draw_element_type("T")
    draft.types["T"] = f"tensor({TensorProto.DataType.Name(element_type).lower()})"
    value = draw_values(draft.rng, element_type, draft.shape(), edge=draft.edge)
    plain = {
        TensorProto.FLOAT: ("value_float", "value_floats"),
        TensorProto.INT64: ("value_int", "value_ints"),
        TensorProto.STRING: ("value_string", "value_strings"),
    }.get(element_type)
    if plain and plain[0] in draft.schema.attributes and value.ndim < 2 and value.size and draft.flip():
        draft.attributes[plain[value.ndim]] = value.tolist()
    else:
        draft.attributes["value"] = numpy_helper.from_array(value)
