"""Running an operator as a shipped rule writes it, or a function body, in onnxruntime or the reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import FunctionProto, ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower.rulebook import load_book

Array = np.ndarray[Any, Any]


def run(
    book: str,
    op_type: str,
    data: Array,
    axes: Sequence[int] | None = None,
    keepdims: int = 1,
    noop: int = 0,
    runtime: str = "onnxruntime",
) -> Array:
    rule = load_book(book).find(op_type, helper.np_dtype_to_tensor_dtype(data.dtype))
    assert rule is not None
    model = calling(op_type, "", rule.opset, data, axes, keepdims, noop)
    return result(reducelower.expand(model, ops=[op_type], rules=book), data, runtime)


def run_function(function: FunctionProto, opset: int, data: Array, axes: Sequence[int] | None, *how: int) -> Array:
    model = calling(function.name, function.domain, opset, data, axes, *how)
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid(function.domain, 1))
    return result(model, data, "onnxruntime")


def calling(
    op_type: str, domain: str, opset: int, data: Array, axes: Sequence[int] | None, keepdims: int, noop: int
) -> ModelProto:
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    names = ["data", "" if axes is None else "axes"]
    node = helper.make_node(op_type, names, ["reduced"], domain=domain, keepdims=keepdims, noop_with_empty_axes=noop)
    graph = helper.make_graph(
        [node],
        "call",
        [helper.make_tensor_value_info("data", element_type, data.shape)],
        [helper.make_tensor_value_info("reduced", element_type, None)],
        [] if axes is None else [numpy_helper.from_array(np.array(axes, np.int64), "axes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def result(model: ModelProto, data: Array, runtime: str) -> Array:
    with np.errstate(all="ignore"):
        if runtime == "onnxruntime":
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            return np.asarray(session.run(None, {"data": data})[0])
        return np.asarray(ReferenceEvaluator(model).run(None, {"data": data})[0])
