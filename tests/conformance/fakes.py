"""Runtimes that are onnxruntime but for one thing, for worker processes to import.

Each is a function from model bytes and arrays by name to a list of arrays. Those that look at no node do without onnx,
which every process would take some time to import.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

__version__ = "1.0"

Arrays = dict[str, Any]


def right(model: bytes, inputs: Arrays) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def _graph(model: bytes) -> GraphProto:
    from onnx import load_model_from_string

    return load_model_from_string(model).graph


def _node(model: bytes) -> NodeProto:
    return _graph(model).node[-1]


def _written(node: NodeProto, name: str) -> bool:
    return any(attribute.name == name for attribute in node.attribute)


def without_keepdims_default(model: bytes, inputs: Arrays) -> list[Any]:
    results = right(model, inputs)
    if _written(_node(model), "keepdims"):
        return results
    return [result.ravel() for result in results]


def without_int64(model: bytes, inputs: Arrays) -> list[Any]:
    if next(iter(inputs.values())).dtype == np.int64:
        raise NotImplementedError("no int64 here")
    return right(model, inputs)


def without_product(model: bytes, inputs: Arrays) -> list[Any]:
    if _node(model).op_type == "ReduceProd":
        raise NotImplementedError("no ReduceProd here")
    return right(model, inputs)


def crashing_on_fed_axes(model: bytes, inputs: Arrays) -> list[Any]:
    if "axes" in inputs:
        print("error: the axes are not constant", file=sys.stderr, flush=True)
        os.abort()
    return right(model, inputs)


def hanging_on_fed_axes(model: bytes, inputs: Arrays) -> list[Any]:
    if "axes" in inputs:
        time.sleep(600)
    return right(model, inputs)


def chatty(model: bytes, inputs: Arrays) -> list[Any]:
    print("loading", end="")
    os.write(1, b"\x00\x01 from below Python")
    return right(model, inputs)


def leaving(model: bytes, inputs: Arrays) -> list[Any]:
    sys.exit(7)


def no_list(model: bytes, inputs: Arrays) -> dict[str, Any]:
    """Hand over outputs by name."""
    return {"reduced": right(model, inputs)[0]}


def no_array(model: bytes, inputs: Arrays) -> list[Any]:
    return [object()]


def nothing(model: bytes, inputs: Arrays) -> list[Any]:
    return []


def _refusing(
    model: bytes, inputs: Arrays, words: str, is_met: Callable[[NodeProto, dict[str, NodeProto]], bool]
) -> list[Any]:
    nodes = _graph(model).node
    made = {name: node for node in nodes for name in node.output}
    if any(is_met(node, made) for node in nodes):
        raise NotImplementedError(words)
    return right(model, inputs)


def without_softmax_over_rows(model: bytes, inputs: Arrays) -> list[Any]:
    def is_met(node: NodeProto, made: dict[str, NodeProto]) -> bool:
        return node.op_type == "Softmax" and [attribute.i for attribute in node.attribute] == [0]

    return _refusing(model, inputs, "no Softmax over rows", is_met)


def without_negative_indices(model: bytes, inputs: Arrays) -> list[Any]:
    return _without_indices(model, inputs, lambda indices: indices.min() < 0)


def without_falling_indices(model: bytes, inputs: Arrays) -> list[Any]:
    return _without_indices(model, inputs, lambda indices: indices[0] > indices[-1])


def _without_indices(model: bytes, inputs: Arrays, is_met: Callable[[Any], bool]) -> list[Any]:
    from onnx.numpy_helper import to_array

    held = {tensor.name: to_array(tensor) for tensor in _graph(model).initializer}
    return _refusing(
        model, inputs, "no such indices", lambda node, _: node.op_type == "Gather" and bool(is_met(held[node.input[1]]))
    )


def without_hard_swish(model: bytes, inputs: Arrays) -> list[Any]:
    return _refusing(model, inputs, "no HardSwish", lambda node, made: node.op_type == "HardSwish")


def without_quick_gelu(model: bytes, inputs: Arrays) -> list[Any]:
    return _refusing(model, inputs, "no QuickGelu", lambda node, made: node.op_type == "QuickGelu")


def without_elu_behind_softmax(model: bytes, inputs: Arrays) -> list[Any]:
    def is_met(node: NodeProto, made: dict[str, NodeProto]) -> bool:
        return node.op_type == "Elu" and node.input[0] in made and made[node.input[0]].op_type == "Softmax"

    return _refusing(model, inputs, "Softmax and Elu cannot be fused", is_met)


def without_names_of_sizes(model: bytes, inputs: Arrays) -> list[Any]:
    shapes = [value.type.tensor_type.shape for value in _graph(model).input]
    if any(dim.dim_param for shape in shapes for dim in shape.dim):
        raise NotImplementedError("sizes have to be set")
    return right(model, inputs)
