"""The contents of tensors that follow from the contents of others: constants, and small vectors of sizes.

One rule for an operator computes both. Sizes that are not all numbers are in an array of objects: numbers, polynomials,
and None for unknown ones. The rules hold for all opset versions, so axes may be in an attribute or in an input.

Source: the operators' pages, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from reducelower.model.attributes import value_of
from reducelower.model.numbers import Array
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.types.arithmetic import (
    cast_to,
    checked,
    clipped,
    divided,
    each_alone,
    equal,
    ints,
    is_symbolic,
    pairwise,
    reduced,
    remainder,
)
from reducelower.types.sizes import Size, quotient

__all__ = ["evaluated", "has_rule", "tensor"]

_Any: TypeAlias = "np.ndarray[Any, Any]"


def has_rule(op_type: str) -> bool:
    """Whether the contents of an operator's outputs may follow from those of its inputs."""
    return op_type in _RULES


def tensor(sizes: Iterable[Size | None], shape: Sequence[int]) -> Array:
    """Sizes as the contents of a tensor."""
    return _settled(np.array([*sizes, None], object)[:-1].reshape(shape))


def evaluated(node: NodeProto, inputs: Sequence[Array | None]) -> Array | None:
    """The output of a node for inputs with these contents, None for absent ones; None if it is unknown or large."""
    rule = _RULES.get(node.op_type)
    if rule is None or any(each is not None and _is_text(each) for each in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            result = rule(node, *inputs)
        if result is None:
            return None
        contents = _settled(np.asarray(result))
    except Exception:
        # Any failure, by an invalid model or an unsupported form, means that the contents are unknown.
        return None
    return contents if contents.size <= LARGEST_CONSTANT else None


def _is_text(contents: Array) -> bool:
    return contents.dtype.hasobject and str in {*map(type, contents.flat)}


def _settled(contents: _Any) -> Array:
    """The contents as integers if all of them are."""
    has_numbers_only = contents.dtype.hasobject and {*map(type, contents.flat)} <= {int}
    return contents.astype(np.int64) if has_numbers_only else contents


# Operators that copy elements


def _gathered(node: NodeProto, data: _Any, indices: _Any) -> Any:
    axis = value_of(node, "axis", 0)
    checked((indices.size, data.size // (data.shape[axis] or 1)))
    return np.take(data, indices, axis)


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
    sizes = ints(node, "shape", shape) or []
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
        ints(node, name, given) or []
        for name, given in zip(("starts", "ends", "axes", "steps"), (*bounds, None, None, None, None), strict=False)
    )
    axes, steps = axes or [*range(len(starts))], steps or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        data = np.take(data, _places(start, end, step, data.shape[axis]), axis)
    return data


def _squeezed(node: NodeProto, data: _Any, axes: _Any | None = None) -> Any:
    gone = ints(node, "axes", axes)
    return np.squeeze(data, None if gone is None else tuple(gone))


def _unsqueezed(node: NodeProto, data: _Any, axes: _Any | None = None) -> Any:
    return np.expand_dims(data, tuple(ints(node, "axes", axes) or ()))


def _where(node: NodeProto, chosen: _Any, then: _Any, otherwise: _Any) -> Any:
    checked(np.broadcast_shapes(chosen.shape, then.shape, otherwise.shape))
    return None if is_symbolic(chosen) else np.where(chosen, then, otherwise)


# Operators that make tensors of a size


def _filled(node: NodeProto, shape: _Any) -> Any:
    value = value_of(node, "value")
    one = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value).reshape(-1)
    return np.full(checked(map(operator.index, shape.tolist())), one[0], one.dtype)


def _expanded(node: NodeProto, data: _Any, shape: _Any) -> Any:
    whole = checked(np.broadcast_shapes(data.shape, tuple(map(operator.index, shape.tolist()))))
    return np.broadcast_to(data, whole).copy()


def _tiled(node: NodeProto, data: _Any, repeats: _Any) -> Any:
    checked((data.size, *repeats.tolist()))
    return np.tile(data, repeats)


def _ranged(node: NodeProto, start: _Any, limit: _Any, delta: _Any) -> Any:
    first, end, step = start.item(), limit.item(), delta.item()
    checked([abs(int((end - first) / step))])
    return np.arange(first, end, step).astype(start.dtype)


_RULES: Mapping[str, Callable[..., Any]] = {
    **{name: each_alone(function) for name, function in {
        "Abs": np.abs, "Ceil": np.ceil, "Floor": np.floor, "Neg": np.negative, "Not": np.logical_not, "Sign": np.sign,
    }.items()},
    **{name: pairwise(function) for name, function in {
        "And": np.logical_and, "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less,
        "LessOrEqual": np.less_equal, "Max": np.maximum, "Min": np.minimum, "Or": np.logical_or, "Xor": np.logical_xor,
    }.items()},
    "Add": pairwise(np.add, operator.add),
    "Cast": lambda node, data: cast_to(data, value_of(node, "to")),
    "CastLike": lambda node, data, like: cast_to(data, helper.np_dtype_to_tensor_dtype(like.dtype)),
    "Clip": clipped,
    "Compress": lambda node, data, kept: None if is_symbolic(kept) else np.compress(kept, data, value_of(node, "axis")),
    "Concat": lambda node, *parts: np.concatenate(parts, value_of(node, "axis", 1)),
    "ConstantOfShape": _filled,
    "Div": pairwise(divided, quotient),
    "Equal": pairwise(np.equal, equal),
    "Expand": _expanded,
    "Flatten": _flattened,
    "Gather": _gathered,
    "GatherElements": _gathered_elements,
    "Identity": lambda node, data: data,
    "NonZero": each_alone(lambda data: np.array(np.nonzero(data))),
    "Mod": remainder,
    "Mul": pairwise(np.multiply, operator.mul),
    "Range": _ranged,
    "ReduceMax": reduced(np.max),
    "ReduceMin": reduced(np.min),
    "ReduceProd": reduced(lambda data, **along: np.prod(data, dtype=data.dtype, **along)),
    "ReduceSum": reduced(lambda data, **along: np.sum(data, dtype=data.dtype, **along)),
    "Reshape": _reshaped,
    "ScatterElements": _scattered_elements,
    "Shape": lambda node, data: np.array(data.shape[value_of(node, "start", 0) : value_of(node, "end")], np.int64),
    "Size": lambda node, data: np.array(data.size),
    "Slice": _sliced,
    "Squeeze": _squeezed,
    "Sub": pairwise(np.subtract, operator.sub),
    "Tile": _tiled,
    "Transpose": lambda node, data: np.transpose(data, value_of(node, "perm")),
    "Unsqueeze": _unsqueezed,
    "Where": _where,
}  # fmt: skip
"""The contents of the output by those of the inputs."""
