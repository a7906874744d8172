"""The sizes of all values of a model on given inputs, and how much memory the reference evaluator needs for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper, shape_inference

from reducelower.model.graph import subgraphs, walk
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.skeleton import skeleton
from reducelower.model.value_info import sizes
from reducelower.types import ContradictionError, infer_main

__all__ = ["A_SHAPE", "as_fed", "evaluator_bytes", "inferred", "shape_told"]

A_SHAPE = 64
"""Whole numbers of one input that may be a shape."""


def inferred(model: ModelProto, given: Mapping[str, Any]) -> GraphProto | None:
    """The graph with the shapes of its values on inputs of these shapes (see `as_fed`); None where they do not fit."""
    fed = as_fed(model, given)
    try:
        # onnx follows no computed sizes without their values, which it holds as messages: gigabytes of long vectors.
        found = infer_shapes(fed).graph
        told = {value.name: sizes(value.type) for value in (*found.value_info, *found.output)}
        computed = (name for node in found.node if node.op_type != "Constant" for name in node.output if name)
        if all((shape := told.get(name)) is not None and None not in shape for name in computed):
            return found
        return infer_main(fed)
    except (ContradictionError, shape_inference.InferenceError):
        return None


def as_fed(model: ModelProto, given: Mapping[str, Any]) -> ModelProto:
    """A model without weights whose inputs have these shapes, or those of arrays, and that states no other shapes.

    Small whole numbers become constants, since they may be shapes.
    """
    bare = skeleton(model)
    for node in walk(bare.graph.node):  # of what is inside, types do not matter
        for _, _, graph in subgraphs(node):
            del graph.value_info[:]
            for value in (*graph.input, *graph.output):
                if value.type.HasField("tensor_type"):
                    value.type.tensor_type.ClearField("shape")
    held = {tensor.name for tensor in bare.graph.initializer}  # whose shapes exporters state, too
    for value in (*bare.graph.value_info, *bare.graph.output):
        if value.name not in held and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    inputs = list(bare.graph.input)
    del bare.graph.input[:]
    for value in inputs:
        fed = given.get(value.name)
        dims = fed.shape if isinstance(fed, np.ndarray) else fed
        if isinstance(dims, tuple):
            value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, dims))
        if isinstance(fed, np.ndarray) and fed.dtype == np.int64 and fed.size <= A_SHAPE and value.name not in held:
            bare.graph.initializer.append(numpy_helper.from_array(fed, value.name))
        else:
            bare.graph.input.append(value)
    return bare


_WINDOWS = frozenset({"Conv", "ConvInteger", "ConvTranspose", "DeformConv"})
_SINGLE, _DOUBLE = 4, 8


def evaluator_bytes(model: ModelProto, feeds: Mapping[str, Any]) -> int:
    """How many bytes a run takes at least; 0 where inference does not know."""
    graph = inferred(model, feeds)
    if graph is None:
        return 0
    shapes: dict[str, list[int]] = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    taken = 0
    for value in (*graph.input, *graph.value_info, *graph.output):
        shape, kind = sizes(value.type), value.type.tensor_type.elem_type
        known = [size for size in shape or () if size is not None]
        if shape is not None and len(known) == len(shape) and kind and value.name not in shapes:
            shapes[value.name] = known
            taken += prod(known) * int(helper.tensor_dtype_to_np_dtype(kind).itemsize)
    return taken + max((_laid_out(node, shapes) for node in graph.node), default=0)


def shape_told(value: Any) -> object:
    """What the sizes of results depend on; whole numbers may be a shape."""
    may_be_shape = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size <= A_SHAPE
    return np.shape(value), value.tobytes() if may_be_shape else b""


def _laid_out(node: NodeProto, shapes: Mapping[str, Sequence[int]]) -> int:
    """How many bytes are laid out beside what a node gives: all scores of attention, or what each window sees."""
    known = [shapes.get(name) for name in (*node.input[:2], *node.output[:1])]
    if None in known or len(known) < 3:
        return 0
    data, weights, result = (shape for shape in known if shape is not None)
    if node.op_type == "Attention":
        heads = next((item.i for item in node.attribute if item.name == "q_num_heads"), 1)
        return 2 * _SINGLE * prod(data[:3] if len(data) == 4 else (*data[:2], heads)) * prod(weights[-2:-1])
    if node.op_type not in _WINDOWS:
        return 0
    moved = data if node.op_type == "ConvTranspose" else result
    return 2 * _DOUBLE * prod(data[:1]) * prod(weights[1:]) * prod(moved[2:])
