"""The sizes of all values of a model on given inputs, as far as inference knows them without running it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, helper, numpy_helper, shape_inference

from reducelower.model.graph import subgraphs, walk
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.skeleton import skeleton
from reducelower.model.value_info import sizes
from reducelower.types import ContradictionError, infer_main

__all__ = ["A_SHAPE", "as_fed", "inferred"]

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
