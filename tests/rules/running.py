"""Running a shipped rule as a model-local function, in onnxruntime or in the reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import FunctionProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from reducelower.rulebook import bind, load_book

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
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    rule = load_book(book).find(op_type, element_type)
    assert rule is not None
    attributes = bind(rule, element_type).values()
    return run_function(rule.function, rule.opset, data, axes, keepdims, noop, runtime, list(attributes))


def run_function(
    function: FunctionProto,
    opset: int,
    data: Array,
    axes: Sequence[int] | None,
    keepdims: int,
    noop: int,
    runtime: str,
    attributes: Sequence[Any] = (),
) -> Array:
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    node = helper.make_node(
        function.name,
        ["data", "" if axes is None else "axes"],
        ["reduced"],
        domain=function.domain,
        overload=function.overload,
        keepdims=keepdims,
        noop_with_empty_axes=noop,
    )
    node.attribute.extend(attributes)
    graph = helper.make_graph(
        [node],
        "call",
        [helper.make_tensor_value_info("data", element_type, data.shape)],
        [helper.make_tensor_value_info("reduced", element_type, None)],
        [] if axes is None else [numpy_helper.from_array(np.array(axes, np.int64), "axes")],
    )
    imports = [helper.make_opsetid("", opset)]
    if function.domain:
        imports.append(helper.make_opsetid(function.domain, 1))
    model = helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=10)
    with np.errstate(all="ignore"):
        if runtime == "onnxruntime":
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            return np.asarray(session.run(None, {"data": data})[0])
        return np.asarray(ReferenceEvaluator(model).run(None, {"data": data})[0])
