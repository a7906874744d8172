"""Which shapes the model of a region accepts and yields, as far as shape inference knows without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, shape_inference

from reducelower.model.attributes import value_of
from reducelower.model.graph import all_nodes
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.inputs.made import Dims, InputSpec, tensor_dims
from reducelower.verification.operators import column, of_kind
from reducelower.verification.running.sizes import as_fed, inferred

__all__ = ["has_empty_results", "has_empty_window", "is_ruled_out", "window"]

_ENDING = of_kind("ending on ranks")

_NUMBERS: Mapping[str, slice] = column("numbers")
_CHECKED = _ENDING | _NUMBERS.keys() | {"Compress"}
_SPATIAL = 2  # the first axis that a window moves along


def has_empty_window(model: ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Whether a window of the main graph is larger than its input at these shapes, so that its result has no elements.

    Some of onnxruntime's kernels end the process on such values. An empty batch does not count.
    """
    of_windows = {name for node in model.graph.node if window(node) > 1 for name in node.output}
    if not of_windows:
        return False
    graph = inferred(model, feeds)
    return graph is not None and any(
        value.name in of_windows and _is_empty(value, _SPATIAL) for value in (*graph.value_info, *graph.output)
    )


def has_empty_results(model: ModelProto, inputs: Iterable[InputSpec]) -> bool:
    """Whether no result of a model has elements, at the declared sizes of its inputs."""
    graph = inferred(model, {item.name: item.dims for item in inputs})
    return graph is not None and all(map(_is_empty, graph.output))


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
    if not is_empty and not any(node.op_type in _CHECKED or _agreeing(node) for node in all_nodes(model)):
        return False
    try:
        graph = _checked(as_fed(model, feeds))
    except shape_inference.InferenceError:
        return True
    values = (*graph.value_info, *graph.input, *graph.output)
    shapes = {value.name: tensor_dims(value.type.tensor_type) or () for value in values}
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    numbers = (name for node in graph.node for name in node.input[_NUMBERS.get(node.op_type, slice(0))] if name)
    if any(isinstance(size, int) and size != 1 for name in numbers for size in shapes.get(name, ())):
        return True
    if any(_chooses_beyond(node, shapes) for node in graph.node):
        return True
    agreeing = ((node, *places) for node in graph.node for places in _agreeing(node))
    return not all(
        _fits(shapes.get(node.input[one], ())[own], shapes.get(node.input[other], ())[others])
        for node, one, other, own, others in agreeing
    )


def _checked(model: ModelProto) -> GraphProto:
    """The graph with all types that strict inference finds; an InferenceError if it objects."""
    try:
        return infer_shapes(model, strict_mode=True, data_prop=True).graph
    except shape_inference.InferenceError as error:
        if _OF_DATA not in str(error):
            raise
        return infer_shapes(model, strict_mode=True).graph


_OF_DATA = "Invalid rank for"
"""The error of onnx's data propagation (1.23) when an addition broadcasts constants of several axes."""


def _chooses_beyond(node: NodeProto, shapes: Mapping[str, Dims]) -> bool:
    """Whether the condition of a Compress is longer than its data; runtimes ignore the rest."""
    if node.op_type != "Compress" or node.domain not in DEFAULT_DOMAINS:
        return False
    data, axis = shapes.get(node.input[0], ()), value_of(node, "axis")
    sizes = data if axis is None else data[axis:][:1]
    lengths = shapes.get(node.input[1], ())
    most = prod(size if isinstance(size, int) else inf for size in sizes)
    return any(isinstance(length, int) and length > most for length in lengths)


def _agreeing(node: NodeProto) -> Sequence[tuple[int, int, slice, slice]]:
    """Which inputs must agree in which sizes; if they do not, onnxruntime 1.31 reads out of bounds."""
    if node.domain in DEFAULT_DOMAINS and node.op_type in column("agreeing"):
        pairs: Sequence[tuple[int, int, slice, slice]] = column("agreeing")[node.op_type]
        return pairs
    if node.domain in DEFAULT_DOMAINS and node.op_type == "Einsum":
        return list(_of_one_letter(value_of(node, "equation", "")))
    batches = (item.i for item in node.attribute if node.op_type == "GatherND" and item.name == "batch_dims")
    return [(0, 1, slice(count), slice(count)) for count in batches if count]


def _of_one_letter(equation: str) -> Iterator[tuple[int, int, slice, slice]]:
    """Axes of Einsum's operands with the same letter; onnxruntime broadcasts a size of 1 there, its page does not."""
    first: dict[str, tuple[int, slice]] = {}
    for operand, term in enumerate(equation.replace(" ", "").partition("->")[0].split(",")):
        ahead, _, behind = term.partition("...")
        axes = [(letter, slice(axis, axis + 1)) for axis, letter in enumerate(ahead)]
        axes += [(letter, slice(-back, 1 - back or None)) for back, letter in enumerate(behind[::-1], 1)]
        for letter, axis in axes:
            if letter in first:
                yield first[letter][0], operand, first[letter][1], axis
            first.setdefault(letter, (operand, axis))


def _fits(one: Dims, other: Dims) -> bool:
    """Whether sizes are equal, as far as they are known."""
    sizes = zip(one, other, strict=False)
    return all(left == right for left, right in sizes if isinstance(left, int) and isinstance(right, int))


def window(node: NodeProto) -> int:
    """The largest extent of the node's window along any axis, by its attributes; 1 for a node without a window."""
    attributes = {item.name: list(item.ints) for item in node.attribute if item.name in ("kernel_shape", "dilations")}
    kernel = attributes.get("kernel_shape", [])
    dilations = attributes.get("dilations") or [1] * len(kernel)
    return max(((size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=False)), default=1)
