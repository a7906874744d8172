"""The sizes of all values of a model on given inputs, and how much memory the reference evaluator needs for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, helper, numpy_helper, shape_inference

from reducelower.files.external import bytes_of
from reducelower.model.graph import subgraphs, walk
from reducelower.model.protected import infer_shapes
from reducelower.model.skeleton import skeleton
from reducelower.model.value_info import sizes
from reducelower.types import infer

__all__ = ["A_SHAPE", "as_fed", "evaluator_bytes", "inferred", "shape_key"]

A_SHAPE = 64
"""An int64 input with at most so many elements may be a shape."""


def inferred(model: ModelProto, feeds: Mapping[str, Any]) -> GraphProto | None:
    """The graph with the shapes of its values for inputs of these shapes (see `as_fed`); None if they do not fit."""
    fed = as_fed(model, feeds)
    try:
        # To follow computed sizes, onnx would propagate data, which it keeps as messages: gigabytes for long vectors.
        graph = infer_shapes(fed).graph
        shapes = {value.name: sizes(value.type) for value in (*graph.value_info, *graph.output)}
        computed = (name for node in graph.node if node.op_type != "Constant" for name in node.output if name)
        if all((shape := shapes.get(name)) is not None and None not in shape for name in computed):
            return graph
        if any(dim.dim_value < 0 for value in graph.value_info for dim in value.type.tensor_type.shape.dim):
            return graph  # a window is larger than its data
        return infer(fed).graph
    except shape_inference.InferenceError:
        return None


def as_fed(model: ModelProto, feeds: Mapping[str, Any]) -> ModelProto:
    """A copy without weights whose inputs have these shapes, or those of these arrays; it states no other shapes.

    Small int64 inputs become constants, since they may be shapes.
    """
    bare = skeleton(model)
    for node in walk(bare.graph.node):  # subgraphs do not need any shapes
        for _, _, graph in subgraphs(node):
            del graph.value_info[:]
            for value in (*graph.input, *graph.output):
                if value.type.HasField("tensor_type"):
                    value.type.tensor_type.ClearField("shape")
    held = {tensor.name for tensor in bare.graph.initializer}  # exporters state their shapes too
    for value in (*bare.graph.value_info, *bare.graph.output):
        if value.name not in held and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    inputs = list(bare.graph.input)
    del bare.graph.input[:]
    for value in inputs:
        fed = feeds.get(value.name)
        dims = fed.shape if isinstance(fed, np.ndarray) else fed
        if isinstance(dims, tuple):
            value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, dims))
        if isinstance(fed, np.ndarray) and fed.dtype == np.int64 and fed.size <= A_SHAPE and value.name not in held:
            bare.graph.initializer.append(numpy_helper.from_array(fed, value.name))
        else:
            bare.graph.input.append(value)
    return bare


def evaluator_bytes(model: ModelProto, feeds: Mapping[str, Any]) -> int:
    """How many bytes the values of a run take together, without weights; 0 if inference does not know."""
    graph = inferred(model, feeds)
    weights = {tensor.name for tensor in model.graph.initializer}
    values = () if graph is None else (*graph.input, *graph.value_info, *graph.output)
    types = {value.name: value.type for value in values if value.name not in weights}
    return sum(map(_bytes_of_type, types.values()))


def _bytes_of_type(value_type: TypeProto) -> int:
    shape = sizes(value_type)
    dims = [size for size in shape or () if size is not None]
    is_known = shape is not None and len(dims) == len(shape)
    return bytes_of(TensorProto(data_type=value_type.tensor_type.elem_type, dims=dims)) if is_known else 0


def shape_key(value: Any) -> object:
    """What the sizes of results depend on: the shape of an input, and its values if it may be a shape."""
    may_be_shape = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size <= A_SHAPE
    return np.shape(value), value.tobytes() if may_be_shape else b""
