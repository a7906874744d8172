"""Folds nodes with constant inputs, such as ``axes`` computed by Concat, Range, or Shape of a known shape.

Nodes run one by one in onnx's reference implementation, with a limit on the size of outputs. Operators
that it gets wrong are computed here or left unknown.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.model.attributes import value_of
from reducelower.model.skeleton import LARGEST_CONSTANT

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["SELECTING", "evaluated", "is_computable", "places"]

_SMALL, _EVALUATED = 256, 1024
"""The most elements that a cached computation reads, and the number of cached computations."""

SELECTING = frozenset(
    {"Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators that copy elements: their result may be known although not all sizes of a shape are."""

# The input that determines the size of the result, which is checked before it is computed.
_SIZES = {"ConstantOfShape": 0, "Expand": 1, "Tile": 1, "Reshape": None}

_COMPUTABLE = frozenset(
    {
        "Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat",
        "ConstantOfShape", "CumSum", "Div", "Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements",
        "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg",
        "NonZero", "Not", "Or", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape",
        "ScatterElements", "ScatterND", "Shape", "Sign", "Size", "Slice", "Split", "Squeeze", "Sub", "Tile", "TopK",
        "Transpose", "Unsqueeze", "Where", "Xor",
    }
)  # fmt: skip


def is_computable(node: NodeProto) -> bool:
    """Whether a node can be folded, by its operator."""
    return node.op_type in _COMPUTABLE


def _is_small(node: NodeProto, inputs: list[Array | None]) -> bool:
    if node.op_type == "Range":
        start, limit, delta = (float(value.reshape(-1)[0]) if value is not None else 0.0 for value in inputs)
        return delta != 0 and abs((limit - start) / delta) <= LARGEST_CONSTANT
    place = _SIZES.get(node.op_type)
    if place is None:
        return True
    sizes = inputs[place]
    if sizes is None:
        return False
    total = prod(int(size) for size in sizes.reshape(-1).tolist())
    data = inputs[0]
    if node.op_type == "Tile" and data is not None:
        total *= data.size
    return 0 <= total <= LARGEST_CONSTANT


def places(start: int, end: int, step: int, size: int) -> range:
    """The positions that Slice takes along an axis; negative bounds count from its end.

    With a negative step, a start before the first element is clamped to it. numpy and onnx's reference evaluator select
    nothing then.

    Source: https://onnx.ai/onnx/operators/onnx__Slice.html (13), "clamped"; onnxruntime does so in every version.
    """
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


def _sliced(node: NodeProto, inputs: list[Array | None]) -> Array | None:
    data, *bounds = inputs
    attributes = [value_of(node, name) for name in ("starts", "ends", "axes")] if not bounds else []
    starts, ends, axes, steps = [*(attributes or bounds), None, None][:4]
    if data is None or starts is None or ends is None:
        return None
    along = range(len(starts)) if axes is None else [int(axis) for axis in axes]
    for axis, start, end, step in zip(along, starts, ends, [1] * len(starts) if steps is None else steps, strict=True):
        data = np.take(data, places(int(start), int(end), int(step), data.shape[axis]), axis)
    return data


def _unsqueezed(node: NodeProto, inputs: list[Array | None]) -> Array | None:
    data, axes = (*inputs, None)[:2]
    axes = value_of(node, "axes") if axes is None else axes
    return None if data is None else np.expand_dims(data, tuple(int(axis) for axis in axes))


def _gathered_elements(node: NodeProto, inputs: list[Array | None]) -> Array | None:
    data, indices = inputs
    if data is None or indices is None:
        return None
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[value_of(node, "axis", 0)] = indices
    return np.asarray(data[tuple(places)])


_OWN = {"GatherElements": _gathered_elements, "Slice": _sliced, "Unsqueeze": _unsqueezed}
"""Operators that the reference evaluator gets wrong: Slice backward from before the first element, Unsqueeze with
several negative axes, and GatherElements along more than 32 elements."""


def evaluated(node: NodeProto, inputs: list[Array | None], opset: int, place: int = 0) -> Array | None:
    """An output of a node for constant inputs, None for absent ones; None if it cannot be folded."""
    if node.op_type not in _COMPUTABLE or not _is_small(node, inputs):
        return None
    name = node.output[place]
    try:
        result = _OWN[node.op_type](node, inputs) if node.op_type in _OWN else _by_reference(node, name, inputs, opset)
    except Exception:
        # Any failure, by an invalid model or an unsupported operator, means that the value is not constant.
        return None
    if result is None or result.size > LARGEST_CONSTANT:
        return None
    # Runtimes differ in how they print numbers.
    writes_numbers = result.dtype.kind in "OUS" and node.op_type in ("Cast", "CastLike")
    return None if writes_numbers else result


def _by_reference(node: NodeProto, name: str, inputs: list[Array | None], opset: int) -> Array | None:
    """The output by the reference evaluator, cached, since exporters repeat the same few size computations."""
    alike = NodeProto(op_type=node.op_type, attribute=node.attribute)
    alike.input.extend("" if value is None else str(place) for place, value in enumerate(inputs))
    alike.output.extend("y" if output == name else "" for output in node.output)
    present = [value for value in inputs if value is not None]
    tensors = tuple(numpy_helper.from_array(value).SerializeToString() for value in present)
    is_small = sum(value.size for value in present) <= _SMALL
    return (_evaluated_once if is_small else _evaluated)(alike.SerializeToString(), tensors, opset)


def _evaluated(serialized: bytes, tensors: tuple[bytes, ...], opset: int) -> Array | None:
    from onnx.reference import ReferenceEvaluator

    node = NodeProto.FromString(serialized)
    graph = GraphProto(name="fold", node=[node])
    values = [numpy_helper.to_array(TensorProto.FromString(tensor)) for tensor in tensors]
    feeds = dict(zip(filter(None, node.input), values, strict=True))
    for name, value in feeds.items():
        element_type = helper.np_dtype_to_tensor_dtype(value.dtype)
        graph.input.append(helper.make_tensor_value_info(name, element_type, value.shape))
    graph.output.add(name="y")
    model = ModelProto(ir_version=8, graph=graph)
    model.opset_import.add(version=opset)
    (result,) = ReferenceEvaluator(model).run(None, feeds)
    return result if isinstance(result, np.ndarray) and result.size <= LARGEST_CONSTANT else None


_evaluated_once = lru_cache(_EVALUATED)(_evaluated)
