"""Runtimes that are onnxruntime but for one thing, for worker processes to import.

Each is a function from model bytes and arrays by name to a list of arrays. Those that look at no node do without onnx,
which every process would take some time to import.
"""

from __future__ import annotations

import os
import sys
import time
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
