"""The contents of tensors that follow from the contents of others: constants, and small vectors of sizes.

One rule for an operator computes both. Sizes that are not all numbers are in an array of objects: numbers, polynomials,
and None for unknown ones. The rules hold for all opset versions, so axes may be in an attribute or in an input.

Source: the operators' pages, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from reducelower.model.attributes import attribute_of, value_of
from reducelower.model.numbers import FLOATS, SIGNED, UNSIGNED, Array
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.types.sizes import Size, is_positive, quotient

__all__ = ["evaluated", "has_rule", "is_symbolic", "tensor"]

_Any: TypeAlias = "np.ndarray[Any, Any]"

_NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED, TensorProto.BOOL)
"""What Cast yields here. Narrower types saturate or wrap, and runtimes differ in how they print numbers."""


def has_rule(op_type: str) -> bool:
    """Whether the contents of an operator's outputs may follow from those of its inputs."""
    return op_type in _RULES


def is_symbolic(contents: Array) -> bool:
    """Whether not all of the contents are numbers."""
    return contents.dtype.hasobject


def tensor(sizes: Iterable[Size | None], shape: Sequence[int]) -> Array:
    """Sizes as the contents of a tensor."""
    return _settled(np.array([*sizes, None], object)[:-1].reshape(shape))


def evaluated(node: NodeProto, inputs: Sequence[Array | None], place: int = 0) -> Array | None:
    """An output of a node for inputs with these contents, None for absent ones; None if it is unknown or large."""
    rule = _RULES.get(node.op_type)
    if rule is None:
        return None
    try:
        with np.errstate(all="ignore"):
            result = rule(node, *inputs)
        result = _settled(np.asarray(result[place] if node.op_type == "Split" else result))
    except Exception:
        # Any failure, by an invalid model or an unsupported form, means that the contents are unknown.
        return None
    return result if result.size <= LARGEST_CONSTANT else None


def _settled(contents: _Any) -> Array:
    """The contents as integers if all of them are."""
    has_numbers_only = contents.dtype.hasobject and {*map(type, contents.flat)} <= {int}
    return contents.astype(np.int64) if has_numbers_only else contents


def _ints(node: NodeProto, name: str, given: _Any | None) -> list[int] | None:
    """The integers of an input, or of an attribute if there is no such input."""
    values = value_of(node, name) if given is None else given.reshape(-1).tolist()
    return None if values is None else [operator.index(each) for each in values]


def _checked(sizes: Iterable[int]) -> tuple[int, ...]:
    """The sizes of a result, before it is computed."""
    shape = tuple(sizes)
    if prod(shape) > LARGEST_CONSTANT:
        raise ValueError(shape)
    return shape


# Operators that copy elements


def _gathered(node: NodeProto, data: _Any, indices: _Any) -> Any:
    return np.take(data, indices, value_of(node, "axis", 0))


def _gathered_elements(node: NodeProto, data: _Any, indices: _Any) -> Any:
    return data[_places_of_elements(node, indices)]


def _scattered_elements(node: NodeProto, data: _Any, indices: _Any, updates: _Any) -> Any:
    result = data.copy()
    result[_places_of_elements(node, indices)] = updates
    return None if value_of(node, "reduction", "none") != "none" else result


def _places_of_elements(node: NodeProto, indices: _Any) -> tuple[Any, ...]:
    found: list[Any] = list(np.indices(indices.shape, sparse=True))
    found[value_of(node, "axis", 0)] = indices
    return tuple(found)


def _flattened(node: NodeProto, data: _Any) -> Any:
    axis = value_of(node, "axis", 1)
    return data.reshape(prod(data.shape[:axis]), prod(data.shape[axis:]))


def _reshaped(node: NodeProto, data: _Any, shape: _Any | None = None) -> Any:
    sizes = _ints(node, "shape", shape) or []
    if not value_of(node, "allowzero", 0):
        sizes = [size or data.shape[axis] for axis, size in enumerate(sizes)]
    return data.reshape(sizes)


def _places(start: int, end: int, step: int, size: int) -> range:
    """The positions that Slice takes along an axis; negative bounds count from its end.

    With a negative step, a start before the first element is clamped to it. numpy selects nothing then.

    Source: https://onnx.ai/onnx/operators/onnx__Slice.html (13), "clamped"; onnxruntime does so in every version.
    """
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


def _sliced(node: NodeProto, data: _Any, *bounds: _Any | None) -> Any:
    starts, ends, axes, steps = (
        _ints(node, name, given) or []
        for name, given in zip(("starts", "ends", "axes", "steps"), (*bounds, None, None, None, None), strict=False)
    )
    axes, steps = axes or [*range(len(starts))], steps or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        data = np.take(data, _places(start, end, step, data.shape[axis]), axis)
    return data


def _split(node: NodeProto, data: _Any, sizes: _Any | None = None) -> Any:
    axis, parts = value_of(node, "axis", 0), _ints(node, "split", sizes)
    if parts is None:
        count = value_of(node, "num_outputs", len(node.output))
        parts = [-(-data.shape[axis] // count)] * count
    return np.split(data, np.cumsum(parts[:-1]), axis)


def _squeezed(node: NodeProto, data: _Any, axes: _Any | None = None) -> Any:
    gone = _ints(node, "axes", axes)
    return np.squeeze(data, tuple(gone) if gone else None)


def _unsqueezed(node: NodeProto, data: _Any, axes: _Any | None = None) -> Any:
    return np.expand_dims(data, tuple(_ints(node, "axes", axes) or ()))


# Operators that make tensors of a size


def _filled(node: NodeProto, shape: _Any) -> Any:
    value = value_of(node, "value")
    one = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value).reshape(-1)
    return np.full(_checked(map(operator.index, shape.tolist())), one[0], one.dtype)


def _expanded(node: NodeProto, data: _Any, shape: _Any) -> Any:
    whole = _checked(np.broadcast_shapes(data.shape, tuple(map(operator.index, shape.tolist()))))
    return np.broadcast_to(data, whole).copy()


def _tiled(node: NodeProto, data: _Any, repeats: _Any) -> Any:
    _checked((data.size, *repeats.tolist()))
    return np.tile(data, repeats)


def _ranged(node: NodeProto, start: _Any, limit: _Any, delta: _Any) -> Any:
    first, end, step = start.item(), limit.item(), delta.item()
    _checked([abs(int((end - first) / step))])
    return np.arange(first, end, step).astype(start.dtype)


# Arithmetic


def _cast_to(data: _Any, element_type: int) -> Any:
    if is_symbolic(data):
        return data if element_type in (TensorProto.INT32, TensorProto.INT64) else None
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    if element_type not in _NUMBERS or data.dtype.kind in "US":
        return None
    if dtype.kind in "iu" and data.dtype.kind not in "biu":
        limits, values = np.iinfo(dtype), data.astype(np.float64)
        if not np.all((values >= limits.min) & (values <= limits.max)):
            return None  # runtimes differ
    return data.astype(dtype)


def _divided(left: _Any, right: _Any) -> Any:
    if left.dtype.kind not in "iu":
        return np.divide(left, right)
    quotients = np.floor_divide(left, right)
    inexact = (quotients * right != left) & ((left < 0) != (right < 0))
    return (quotients + inexact).astype(left.dtype) if np.all(right) else None


def _remainder(node: NodeProto, left: _Any, right: _Any) -> Any:
    if right.dtype.kind in "iu" and not np.all(right):
        return None
    return (np.fmod if value_of(node, "fmod", 0) else np.mod)(left, right)


def _clipped(node: NodeProto, data: _Any, *bounds: _Any | None) -> Any:
    least, most = (*bounds, None, None)[:2] if bounds else (value_of(node, "min"), value_of(node, "max"))
    return (data if least is most is None else np.clip(data, least, most)).astype(data.dtype)


def _equal(left: Size, right: Size) -> Size | None:
    if left == right:
        return 1
    difference = left - right
    differs = isinstance(difference, int) or is_positive(difference) or is_positive(-difference)
    return 0 if differs else None


def _pairwise(
    function: Callable[..., Any], symbolic: Callable[[Size, Size], Size | None] | None = None
) -> Callable[..., Any]:
    def known(left: Size | None, right: Size | None) -> Size | None:
        return None if left is None or right is None or symbolic is None else symbolic(left, right)

    lifted = np.frompyfunc(known, 2, 1)

    def computed(node: NodeProto, *operands: _Any) -> Any:
        if attribute_of(node, "broadcast") is not None:
            return None
        return reduce(lifted if any(map(is_symbolic, operands)) else function, operands)

    return computed


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, data: None if is_symbolic(data) else function(data)


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(node: NodeProto, data: _Any, axes: _Any | None = None) -> Any:
        named = _ints(node, "axes", axes)
        if not named and value_of(node, "noop_with_empty_axes", 0):
            return data
        return function(data, axis=tuple(named) if named else None, keepdims=bool(value_of(node, "keepdims", 1)))

    return computed


_RULES: Mapping[str, Callable[..., Any]] = {
    **{name: _each(function) for name, function in {
        "Abs": np.abs, "Ceil": np.ceil, "Floor": np.floor, "Neg": np.negative, "Not": np.logical_not, "Sign": np.sign,
            }.items()},
    **{name: _pairwise(function) for name, function in {
        "And": np.logical_and, "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less,
        "LessOrEqual": np.less_equal, "Max": np.maximum, "Min": np.minimum, "Or": np.logical_or, "Xor": np.logical_xor,
    }.items()},
    "Add": _pairwise(np.add, operator.add),
    "Cast": lambda node, data: _cast_to(data, value_of(node, "to")),
    "CastLike": lambda node, data, like: _cast_to(data, helper.np_dtype_to_tensor_dtype(like.dtype)),
    "Clip": _clipped,
    "Compress": lambda node, data, kept: None if is_symbolic(kept) else np.compress(kept, data, value_of(node, "axis")),
    "Concat": lambda node, *parts: np.concatenate(parts, value_of(node, "axis", 1)),
    "ConstantOfShape": _filled,
    "Div": _pairwise(_divided, quotient),
    "Equal": _pairwise(np.equal, _equal),
    "Expand": _expanded,
    "Flatten": _flattened,
    "Gather": _gathered,
    "GatherElements": _gathered_elements,
    "Identity": lambda node, data: data,
    "NonZero": _each(lambda data: np.array(np.nonzero(data))),
    "Mod": _remainder,
    "Mul": _pairwise(np.multiply, operator.mul),
    "Range": _ranged,
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceProd": _reduced(lambda data, **along: np.prod(data, dtype=data.dtype, **along)),
    "ReduceSum": _reduced(lambda data, **along: np.sum(data, dtype=data.dtype, **along)),
    "Reshape": _reshaped,
    "ScatterElements": _scattered_elements,
    "Shape": lambda node, data: np.array(data.shape[value_of(node, "start", 0) : value_of(node, "end")], np.int64),
    "Size": lambda node, data: np.array(data.size),
    "Slice": _sliced,
    "Split": _split,
    "Squeeze": _squeezed,
    "Sub": _pairwise(np.subtract, operator.sub),
    "Tile": _tiled,
    "Transpose": lambda node, data: np.transpose(data, value_of(node, "perm")),
    "Unsqueeze": _unsqueezed,
    "Where": lambda node, chosen, then, otherwise: None if is_symbolic(chosen) else np.where(chosen, then, otherwise),
}  # fmt: skip
"""The contents of the output (of each, for Split) by those of the inputs."""
