"""Arithmetic on the contents of tensors: on numbers, and on sizes that are not all numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.model.attributes import attribute_of, value_of
from reducelower.model.numbers import FLOATS, SIGNED, UNSIGNED, Array
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.types.sizes import Size, is_positive

__all__ = [
    "cast_to", "checked", "clipped", "divided", "each_alone", "equal", "ints", "is_symbolic", "pairwise", "reduced",
    "remainder",
]  # fmt: skip

_Any: TypeAlias = "np.ndarray[Any, Any]"

_NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED, TensorProto.BOOL)
"""What Cast yields here. Narrower types saturate or wrap, and runtimes differ in how they print numbers."""


def is_symbolic(contents: Array) -> bool:
    """Whether not all of the contents are numbers."""
    return contents.dtype.hasobject


def ints(node: NodeProto, name: str, given: _Any | None) -> list[int] | None:
    """The integers of an input, or of an attribute if there is no such input."""
    values = value_of(node, name) if given is None else given.reshape(-1).tolist()
    return None if values is None else [operator.index(each) for each in values]


def checked(sizes: Iterable[int]) -> tuple[int, ...]:
    """The sizes of a result, before it is computed."""
    shape = tuple(sizes)
    if prod(shape) > LARGEST_CONSTANT:
        raise ValueError(shape)
    return shape


def cast_to(data: _Any, element_type: int) -> Any:
    """The numbers in another type; None if runtimes differ in that."""
    if is_symbolic(data):
        return data if element_type in (TensorProto.INT32, TensorProto.INT64) else None
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    if element_type not in _NUMBERS:
        return None
    if dtype.kind in "iu" and data.dtype.kind not in "biu":
        limits, values = np.iinfo(dtype), data.astype(np.float64)
        if not np.all((values >= limits.min) & (values <= limits.max)):
            return None  # runtimes differ
    return data.astype(dtype)


def divided(left: _Any, right: _Any) -> Any:
    """Quotients, of integers rounded towards zero; None if any integer divisor is zero."""
    if left.dtype.kind not in "iu":
        return np.divide(left, right)
    quotients = np.floor_divide(left, right)
    inexact = (quotients * right != left) & ((left < 0) != (right < 0))
    return (quotients + inexact).astype(left.dtype) if np.all(right) else None


def remainder(node: NodeProto, left: _Any, right: _Any) -> Any:
    """What Mod gives; None if any integer divisor is zero."""
    if right.dtype.kind in "iu" and not np.all(right):
        return None
    return (np.fmod if value_of(node, "fmod", 0) else np.mod)(left, right)


def clipped(node: NodeProto, data: _Any, *bounds: _Any | None) -> Any:
    """What Clip gives."""
    least, most = (*bounds, None, None)[:2] if bounds else (value_of(node, "min"), value_of(node, "max"))
    return (data if least is most is None else np.clip(data, least, most)).astype(data.dtype)


def equal(left: Size, right: Size) -> Size | None:
    """Whether two sizes are equal; None if that depends on what they are."""
    if left == right:
        return 1
    difference = left - right
    differs = isinstance(difference, int) or is_positive(difference) or is_positive(-difference)
    return 0 if differs else None


def pairwise(
    function: Callable[..., Any], symbolic: Callable[[Size, Size], Size | None] | None = None
) -> Callable[..., Any]:
    """The rule of an operator with two inputs or more, for numbers and for sizes."""

    def known(left: Size | None, right: Size | None) -> Size | None:
        return None if left is None or right is None or symbolic is None else symbolic(left, right)

    lifted = np.frompyfunc(known, 2, 1)

    def computed(node: NodeProto, *operands: _Any) -> Any:
        checked(np.broadcast_shapes(*(each.shape for each in operands)))
        if attribute_of(node, "broadcast") is not None:
            return None
        return reduce(lifted if any(map(is_symbolic, operands)) else function, operands)

    return computed


def each_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of an operator with one input."""
    return lambda node, data: None if is_symbolic(data) else function(data)


def reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a Reduce operator."""

    def computed(node: NodeProto, data: _Any, axes: _Any | None = None) -> Any:
        named = ints(node, "axes", axes)
        if not named and value_of(node, "noop_with_empty_axes", 0):
            return data
        return function(data, axis=tuple(named) if named else None, keepdims=bool(value_of(node, "keepdims", 1)))

    return computed
