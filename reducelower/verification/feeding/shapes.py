"""Which shapes the model of a region accepts and yields, as far as shape inference knows without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, shape_inference

from reducelower.model.attributes import value_of
from reducelower.model.graph import all_nodes
from reducelower.model.protected import infer_shapes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.value_info import stated_type
from reducelower.types import infer
from reducelower.verification.inputs.declared import Dims
from reducelower.verification.operators import of_kind
from reducelower.verification.running.sizes import as_fed, inferred

__all__ = ["has_empty_window", "is_ruled_out", "unfit"]

# Operators that take sizes which their pages rule out: onnxruntime broadcasts batches and letters of size 1 and ignores
# what a condition chooses beyond the data, and the evaluator writes where indices and updates overlap.
_LAX = frozenset({"Compress", "Einsum", "GatherND", "Scatter", "ScatterElements"})
_CHECKED = of_kind("ending on ranks") | _LAX
_MOST_AXES = 64
_GROWING = ("ConvTranspose", "MaxUnpool")
_SPATIAL = 2  # the first axis that a window moves along


def unfit(feeds: Mapping[str, Any], *models: ModelProto) -> str:
    """Why inputs of these shapes are not fed: the first model does not accept them, or a kernel may end the process."""
    if is_ruled_out(models[0], feeds):
        return "inputs of these shapes are none that its operators take"
    if any(has_empty_window(model, feeds) for model in models):
        return "a window has nothing to look at on data so small"
    return ""


def has_empty_window(model: ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Whether a window of the main graph is larger than its input at these shapes, so that its result has no elements.

    Some of onnxruntime's kernels end the process on such values. An empty batch does not count.
    """
    windows = [node for node in model.graph.node if _has_window(node)]
    if not windows:
        return False
    graph = inferred(model, feeds)
    if graph is None:
        return False
    values = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    return any(
        any(_is_empty(values[name], _SPATIAL) for name in node.output if name in values)
        or (node.input[0] in values and _is_longer(node, stated_type(values[node.input[0]].type).sizes or ()))
        for node in windows
    )


def _is_longer(node: NodeProto, dims: Dims) -> bool:
    """Whether a window is longer than its padded data: if it moves by several, onnx infers one element all the same."""
    if node.op_type in _GROWING or value_of(node, "ceil_mode", 0) or "SAME" in value_of(node, "auto_pad", ""):
        return False
    kernel = value_of(node, "kernel_shape")
    pads = value_of(node, "pads") or [0, 0] * len(kernel)
    axes = zip(dims[_SPATIAL:], kernel, pads, pads[len(kernel) :], strict=False)
    return any(isinstance(size, int) and size + before + after < length for size, length, before, after in axes)


def _is_empty(value: ValueInfoProto, first: int = 0) -> bool:
    """Whether a value has no elements along some axis, from the first on.

    Inference yields a negative size if a window is larger than its input.
    """
    return any(dim.HasField("dim_value") and dim.dim_value <= 0 for dim in value.type.tensor_type.shape.dim[first:])


def is_ruled_out(model: ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Whether a model does not accept inputs of these shapes, though its kernels may not object.

    Some kernels end the process on wrong ranks, and some do not check the shapes of empty tensors.
    """
    is_empty = any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())
    if not is_empty and not any(node.op_type in _CHECKED for node in all_nodes(model)):
        return False
    try:
        graph = _checked(as_fed(model, feeds))
    except shape_inference.InferenceError:
        return True
    values = (*graph.value_info, *graph.input, *graph.output)
    shapes = {value.name: stated_type(value.type).sizes or () for value in values}
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    lax = [node for node in graph.node if node.op_type in _LAX and node.domain in DEFAULT_DOMAINS]
    return any(_has_two_sizes(node, shapes) or _chooses_beyond(node, shapes) for node in lax)


def _checked(model: ModelProto) -> GraphProto:
    """The graph with all types that strict inference finds; an InferenceError if it objects to what it knows."""
    try:
        return infer_shapes(model, strict_mode=True, data_prop=True).graph
    except shape_inference.InferenceError as error:
        if not any(mark in str(error) for mark in (_OF_DATA, _UNTYPED)):
            raise
    typed = infer(model)
    try:
        return infer_shapes(typed, strict_mode=True).graph
    except shape_inference.InferenceError as error:
        if _UNTYPED not in str(error):
            raise
        return typed.graph


# Errors of onnx 1.23 that say nothing against a model: its data propagation where an addition broadcasts constants of
# several axes; and operators such as GroupNormalization, of whose results it infers no type.
_OF_DATA, _UNTYPED = "Invalid rank for", "expected to have type but instead is null"


def _has_two_sizes(node: NodeProto, shapes: Mapping[str, Dims]) -> bool:
    """Whether a letter of an Einsum, or an axis along which inputs have to agree, has two sizes."""
    found: dict[object, int] = {}
    for (ahead, behind), name in zip(_letters(node), node.input, strict=False):
        shape = shapes.get(name, ())
        for letter, size in (*zip(ahead, shape, strict=False), *zip(behind[::-1], shape[::-1], strict=False)):
            if isinstance(size, int) and found.setdefault(letter, size) != size:
                return True
    return False


def _letters(node: NodeProto) -> list[tuple[Sequence[object], Sequence[object]]]:
    """For each input, the letters of its first and of its last axes."""
    if node.op_type == "Einsum":
        terms = str(value_of(node, "equation", "")).replace(" ", "").partition("->")[0].split(",")
        return [(ahead, behind) for ahead, _, behind in (term.partition("...") for term in terms)]
    if node.op_type == "GatherND":
        return [(range(value_of(node, "batch_dims", 0)), ())] * 2
    return [((), ()), (range(_MOST_AXES), ()), (range(_MOST_AXES), ())] if node.op_type.startswith("Scatter") else []


def _chooses_beyond(node: NodeProto, shapes: Mapping[str, Dims]) -> bool:
    """Whether the condition of a Compress is longer than its data."""
    if node.op_type != "Compress":
        return False
    data, axis = shapes.get(node.input[0], ()), value_of(node, "axis")
    sizes = data if axis is None else data[axis:][:1]
    most = prod(size if isinstance(size, int) else inf for size in sizes)
    return any(isinstance(length, int) and length > most for length in shapes.get(node.input[1], ()))


def _has_window(node: NodeProto) -> bool:
    """Whether a node looks at several elements at once, by its attributes."""
    return any(size > 1 for item in node.attribute if item.name == "kernel_shape" for size in item.ints)
