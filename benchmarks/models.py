"""The models that the benchmark runs over; all are made on the spot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

__all__ = ["REDUCTIONS", "chain", "external_model", "inline_model", "reduction", "small_model"]

REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp")

# Operators that the official converter takes from 13 to 18 and back; it has no adapter for Relu or Add downward.
_COMMON = ("Abs", "Sigmoid", "Neg", "Tanh")
_EVERYDAY = ("Relu", "Add", "Mul", "Sigmoid")

_CHUNK = 1 << 24


def chain(length: int, opset: int, *, everyday: bool = False) -> bytes:
    """A chain of nodes, every tenth of them a Reduce over the last axis.

    Args:
        length: how many nodes.
        opset: the opset version they are written for.
        everyday: Relu, Add and Mul between the reductions rather than operators that did not change.
    """
    nodes: list[NodeProto] = []
    current = "x"
    for index in range(length):
        output = f"value_{index}"
        if index % 10 == 9:
            nodes.append(_reduce(REDUCTIONS[index // 10 % len(REDUCTIONS)], current, output, opset))
        else:
            op_type = (_EVERYDAY if everyday else _COMMON)[index % 4]
            inputs = [current, "x"] if op_type in ("Add", "Mul") else [current]
            nodes.append(helper.make_node(op_type, inputs, [output], name=f"node_{index}"))
        current = output
    return _model(nodes, current, opset, [2, 8]).SerializeToString()


def _reduce(op_type: str, data: str, output: str, opset: int) -> NodeProto:
    name = output.replace("value", "node")
    if opset >= 18 or (opset >= 13 and op_type == "ReduceSum"):
        return helper.make_node(op_type, [data, "axes"], [output], name=name, keepdims=1)
    return helper.make_node(op_type, [data], [output], name=name, keepdims=1, axes=[-1])


def _model(nodes: Sequence[NodeProto], output: str, opset: int, shape: Sequence[int]) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * len(shape))],
        [numpy_helper.from_array(np.array([-1], np.int64), "axes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def small_model() -> bytes:
    """A model of twenty nodes at opset 13."""
    return chain(20, 13)


def reduction(op_type: str, shape: Sequence[int]) -> ModelProto:
    """One Reduce over the last axis, at opset 18."""
    return _model([_reduce(op_type, "x", "y", 18)], "y", 18, shape)


def inline_model(path: Path, size: int, tensors: int = 12) -> None:
    """Write a model of about that many bytes, nearly all of them weights inside the file; needs little memory."""
    each = size // tensors // 4096 * 4096
    nodes: list[NodeProto] = []
    total = "x"
    for index in range(tensors):
        nodes.append(helper.make_node("MatMul", ["x", f"weight_{index}"], [f"product_{index}"]))
        nodes.append(_reduce("ReduceMean", f"product_{index}", f"value_{index}", 13))
        nodes.append(helper.make_node("Add", [total, f"value_{index}"], [f"total_{index}"]))
        total = f"total_{index}"
    skeleton = _model(nodes, total, 13, [1, 1024])
    placeholder = os.urandom(16)
    head = skeleton.graph.SerializeToString()
    parts: list[tuple[bytes, int]] = [(head, 0)]
    for index in range(tensors):
        tensor = TensorProto(
            name=f"weight_{index}", data_type=TensorProto.FLOAT, dims=[1024, each // 4096], raw_data=placeholder
        )
        # The payload comes last but for the name, as protobuf writes it: everything before it, then its length.
        start = tensor.SerializeToString().removesuffix(b"\x4a\x10" + placeholder) + b"\x4a" + _varint(each)
        parts.append((b"\x2a" + _varint(len(start) + each) + start, each))
    graph_length = sum(len(piece) + payload for piece, payload in parts)
    skeleton.ClearField("graph")
    block = os.urandom(_CHUNK)
    with path.open("wb") as file:
        file.write(skeleton.SerializeToString() + b"\x3a" + _varint(graph_length))
        for piece, payload in parts:
            file.write(piece)
            while payload > 0:
                payload -= file.write(block[: min(payload, _CHUNK)])


def external_model(path: Path, size: int) -> None:
    """Write a model with a sparse file of external data of that many bytes."""
    model = ModelProto.FromString(chain(100, 13))
    data = path.with_suffix(".data")
    tensor = model.graph.initializer.add(
        name="weight", data_type=TensorProto.FLOAT, dims=[size // 4096, 1024], data_location=TensorProto.EXTERNAL
    )
    tensor.external_data.add(key="location", value=data.name)
    tensor.external_data.add(key="length", value=str(size))
    with data.open("wb") as file:
        file.truncate(size)
    path.write_bytes(model.SerializeToString())


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])
