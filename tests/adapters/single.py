"""Models of one node, and what they yield before and after a conversion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

import reducelower
from tests.legalization.running import run

__all__ = ["converted", "model_of", "operators_of", "yields"]


def model_of(
    op_type: str,
    inputs: Mapping[str, np.ndarray],
    *,
    opset: int,
    constants: Sequence[str] = (),
    outputs: Mapping[str, tuple[int, Sequence[int | str] | None]] | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    ir_version: int = 8,
    **attributes: Any,
) -> ModelProto:
    """A model of one node whose inputs are named as given; an input named ``_`` and so on is absent."""
    names = ["" if name.startswith("_") else name for name in inputs]
    results = dict(outputs or {"y": (TensorProto.FLOAT, None)})
    node = helper.make_node(op_type, names, list(results), name="node", **attributes)
    taken = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), (shapes or {}).get(name, value.shape)
        )
        for name, value in inputs.items()
        if not name.startswith("_") and name not in constants
    ]
    given = []
    for name, (element_type, shape) in results.items():
        given.append(helper.make_tensor_value_info(name, element_type, shape or ()))
        if shape is None:
            given[-1].type.tensor_type.ClearField("shape")
    held = [numpy_helper.from_array(inputs[name], name) for name in constants]
    # A result of unknown shape is stated by inference.
    graph = helper.make_graph([node], "single", taken, given, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    return _with_shapes(model)


def _with_shapes(model: ModelProto) -> ModelProto:
    from onnx import shape_inference

    inferred = shape_inference.infer_shapes(model, data_prop=True)
    for value, found in zip(model.graph.output, inferred.graph.output, strict=True):
        value.CopyFrom(found)
    return model


def converted(model: ModelProto, target: int, **settings: Any) -> ModelProto:
    """The model at another opset version, found valid."""
    result = reducelower.convert_version(model, target, **settings)
    checker.check_model(result, full_check=True)
    return result


def yields(model: ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What a model yields for those of the inputs that it takes."""
    return run(model, {value.name: inputs[value.name] for value in model.graph.input})


def operators_of(model: ModelProto) -> list[str]:
    """The operators of the main graph, in order."""
    return [node.op_type for node in model.graph.node]
