"""The models of the benchmark, which are all made here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper, parser, shape_inference

__all__ = [
    "REDUCTIONS",
    "chain",
    "external_model",
    "inline_model",
    "reduction",
    "run_time_axes",
    "small_model",
    "spelled_out",
    "transformer",
]

REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp")

# Operators that onnx's converter can convert from 13 to 18 and back; downward it has no adapter for Relu or Add.
_COMMON = ("Abs", "Sigmoid", "Neg", "Tanh")
_EVERYDAY = ("Relu", "Add", "Mul", "MatMul")

_LAST_AXIS = np.array([-1], np.int64)

_CHUNK = 1 << 24


def chain(length: int, opset: int, *, axes: str = "own", everyday: bool = False) -> bytes:
    """A chain of nodes, of which every tenth is a Reduce over the last axis.

    Args:
        length: how many nodes.
        opset: their opset version.
        axes: how to write axes that are an input: ``own``, an initializer for each node, as in torch and skl2onnx;
            ``constant``, a Constant node for each; ``shared``, one initializer for all, which no exporter writes.
        everyday: whether the other nodes are Relu, Add, Mul and MatMul rather than operators that did not change, and
            the type of every value is stated.
    """
    nodes: list[NodeProto] = []
    initializers = [numpy_helper.from_array(np.eye(8, dtype=np.float32), "weight")] if everyday else []
    stated = []
    current = "x"
    for index in range(length):
        output = f"value_{index}"
        if index % 10 == 9:
            op_type = REDUCTIONS[index // 10 % len(REDUCTIONS)]
            name = "axes" if axes == "shared" else f"val_{index}"
            node = _reduce(op_type, current, output, opset, name)
            if name in node.input and axes == "own":
                initializers.append(numpy_helper.from_array(_LAST_AXIS, name))
            elif name in node.input and axes == "constant":
                nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(_LAST_AXIS)))
            nodes.append(node)
        else:
            op_type = (_EVERYDAY if everyday else _COMMON)[index % 4]
            second = {"Add": ["x"], "Mul": ["x"], "MatMul": ["weight"]}.get(op_type, [])
            nodes.append(helper.make_node(op_type, [current, *second], [output], name=f"node_{index}"))
        if everyday:
            # After the last axis is reduced, Add and Mul restore it before a MatMul reads it.
            stated.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, [2, None]))
        current = output
    if axes == "shared":
        initializers.append(numpy_helper.from_array(_LAST_AXIS, "axes"))
    return _model(nodes, current, opset, [2, 8], initializers, stated[:-1]).SerializeToString()


def _reduce(op_type: str, data: str, output: str, opset: int, axes: str) -> NodeProto:
    name = output.replace("value", "node")
    if opset >= 18 or (opset >= 13 and op_type == "ReduceSum"):
        return helper.make_node(op_type, [data, axes], [output], name=name, keepdims=1)
    return helper.make_node(op_type, [data], [output], name=name, keepdims=1, axes=[-1])


def run_time_axes(length: int, *, ranked: bool) -> bytes:
    """A chain at opset 18, in which every tenth node is a ReduceMax over axes that are an input of the model.

    Args:
        length: how many nodes.
        ranked: whether the rank of the data is stated.
    """
    names = [f"value_{index}" for index in range(length)]
    nodes = [
        helper.make_node("ReduceMax", [before, "axes"], [name], keepdims=1, name=f"node_{name}")
        if index % 10 == 9
        else helper.make_node("Abs", [before], [name], name=f"node_{name}")
        for index, (before, name) in enumerate(zip(["x", *names], names, strict=False))
    ]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape if ranked else None)
        for name, shape in (("x", "abc"), (names[-1], "def"))
    )
    axes = helper.make_tensor_value_info("axes", TensorProto.INT64, ["count"])
    graph = helper.make_graph(nodes, "chain", [x, axes], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def transformer(layers: int) -> bytes:
    """A transformer encoder at opset 20, as torch writes one: some thirty nodes per layer, without weights.

    Every value has its type stated, every node has metadata of its own, and every shape and list of axes is an
    initializer of its own. LayerNormalization and Gelu must be written out below opsets 17 and 20.
    """
    size, heads, length = 64, 4, 16
    nodes: list[NodeProto] = []
    stated: list[ValueInfoProto] = []
    initializers = [
        numpy_helper.from_array(np.ones(size, np.float32), "scale"),
        numpy_helper.from_array(np.zeros(size, np.float32), "bias"),
        numpy_helper.from_array(np.eye(size, dtype=np.float32), "weight"),
    ]

    def add(op_type: str, inputs: Sequence[str], shape: Sequence[int], **attributes: Any) -> str:
        name = f"val_{len(nodes)}"
        nodes.append(helper.make_node(op_type, inputs, [name], name=f"node_{op_type}_{len(nodes)}", **attributes))
        nodes[-1].metadata_props.add(key="namespace", value=f"encoder/layer.{len(nodes) // 30}/{name}")
        stated.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def integers(values: Sequence[int]) -> str:
        name = f"ints_{len(initializers)}"
        initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    flat, split = [1, length, size], [1, heads, length, size // heads]
    x = "x"
    for _ in range(layers):
        normal = add("LayerNormalization", [x, "scale", "bias"], flat, axis=-1, epsilon=1e-5)
        parts = []
        for permutation in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            product = add("MatMul", [normal, "weight"], flat)
            biased = add("Add", [product, "bias"], flat)
            shaped = add("Reshape", [biased, integers([1, length, heads, -1])], [1, length, heads, size // heads])
            shape = split if permutation[2] == 1 else [1, heads, size // heads, length]
            parts.append(add("Transpose", [shaped], shape, perm=permutation))
        scores = add("MatMul", parts[:2], [1, heads, length, length])
        weights = add("Softmax", [scores], [1, heads, length, length], axis=-1)
        mixed = add("Transpose", [add("MatMul", [weights, parts[2]], split)], [1, length, heads, 16], perm=[0, 2, 1, 3])
        joined = add("MatMul", [add("Reshape", [mixed, integers([1, length, size])], flat), "weight"], flat)
        x = add("Add", [x, joined], flat)
        normal = add("LayerNormalization", [x, "scale", "bias"], flat, axis=-1, epsilon=1e-5)
        hidden = add("Gelu", [add("Add", [add("MatMul", [normal, "weight"], flat), "bias"], flat)], flat)
        x = add("Add", [x, add("MatMul", [hidden, "weight"], flat)], flat)
        mean = add("ReduceMean", [x, integers([-1])], [1, length, 1], keepdims=1, noop_with_empty_axes=0)
        x = add("Sub", [x, mean], flat)
    return _model(nodes, x, 20, flat, initializers, stated[:-1]).SerializeToString()


_LAYER = """m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) s = Pow(d, {power}) v = ReduceMean<axes = [-1]>(s)
    e = {floor}(v, epsilon) r = Sqrt(e) n = Div(d, r) c = Mul(n, scale) y = Add(c, bias)"""
_SPELLED = (
    _LAYER.format(power="two", floor="Add"),
    _LAYER.format(power="three", floor="Add"),  # not a variance
    _LAYER.format(power="two", floor="Max"),  # looks like one, but is not
    """s = Mul(x, x) v = ReduceMean<axes = [-1]>(s) e = Add(v, epsilon) r = Sqrt(e) i = Reciprocal(r)
    n = Mul(x, i) y = Mul(scale, n)""",
    "t = Div(x, root) e = Erf(t) p = Add(e, one) h = Mul(x, p) y = Mul(h, half)",
    "t = Div(x, root) e = Erf(t) p = Sub(e, one) h = Mul(x, p) y = Mul(h, half)",  # not a Gelu
    """c = Pow(x, three) p = Mul(share, c) b = Add(x, p) i = Mul(factor, b) t = Tanh(i) o = Add(one, t)
    h = Mul(half, x) y = Mul(h, o)""",
    "m = ReduceMax<axes = [-1]>(x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, last) y = Div(e, s)",
    "m = ReduceMax<axes = [-1]>(x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, last) l = Log(s) y = Sub(d, l)",
    "n = ReduceL2<axes = [-1]>(x) y = Div(x, n)",
    "e = Exp(x) s = ReduceSum(e, last) l = Log(s) y = Add(x, l)",
    "q = Mul(x, x) s = ReduceSum(q, last) l = Sqrt(s) y = Add(x, l)",
)
"""Operators as exporters write them with others at opset 17, and nodes that only look like them."""

_NUMBERS = {"two": 2, "three": 3, "epsilon": 1e-5, "root": 2**0.5, "one": 1, "half": 0.5, "share": 0.044715}
_NUMBERS["factor"] = 0.7978845608028654


def spelled_out(count: int) -> ModelProto:
    """A model at opset 17 with many copies of each pattern, and everyday nodes between them.

    Each copy has its own constants, as in exported models, and every value has its type stated.
    """
    nodes: list[NodeProto] = []
    initializers = [numpy_helper.from_array(np.eye(8, dtype=np.float32), "weight")]
    constants = {name: np.array(number, np.float32) for name, number in _NUMBERS.items()}
    constants |= {"scale": np.ones(8, np.float32), "bias": np.zeros(8, np.float32), "last": _LAST_AXIS}
    bodies = [parser.parse_graph(f"g (float[2, 8] x) => (float[2, 8] y) {{ {body} }}").node for body in _SPELLED]
    current = "x"
    for _ in range(count):
        for body in bodies:
            names = {"x": current}
            for node in body:
                made = NodeProto(op_type=node.op_type, attribute=node.attribute, name=f"node_{len(nodes)}")
                for name in node.input:
                    if name in constants and name not in names:
                        names[name] = f"constant_{len(initializers)}"
                        initializers.append(numpy_helper.from_array(constants[name], names[name]))
                    made.input.append(names[name])
                names[node.output[0]] = f"value_{len(nodes)}"
                made.output.append(names[node.output[0]])
                nodes.append(made)
            for op_type, second in (("Relu", None), ("MatMul", "weight"), ("Add", names["y"])):
                before = nodes[-1].output[0]
                name = f"value_{len(nodes)}"
                nodes.append(helper.make_node(op_type, [before, *([second] if second else [])], [name], name=name))
            current = name
    return shape_inference.infer_shapes(_model(nodes, current, 17, [2, 8], initializers))


def _model(
    nodes: Sequence[NodeProto],
    output: str,
    opset: int,
    shape: Sequence[int],
    initializers: Sequence[TensorProto] = (),
    stated: Sequence[ValueInfoProto] = (),
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * len(shape))],
        initializers or [numpy_helper.from_array(_LAST_AXIS, "axes")],
        value_info=stated,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def small_model() -> bytes:
    """A model of twenty nodes at opset 13."""
    return chain(20, 13)


def reduction(op_type: str, shape: Sequence[int]) -> ModelProto:
    """One Reduce over the last axis, at opset 18."""
    return _model([_reduce(op_type, "x", "y", 18, "axes")], "y", 18, shape)


def inline_model(path: Path, size: int, tensors: int = 12) -> None:
    """Write a model of about that many bytes, nearly all of them weights inside the file, with little memory."""
    each = size // tensors // 4096 * 4096
    nodes: list[NodeProto] = []
    total = "x"
    for index in range(tensors):
        nodes.append(helper.make_node("MatMul", ["x", f"weight_{index}"], [f"product_{index}"]))
        nodes.append(_reduce("ReduceMean", f"product_{index}", f"value_{index}", 13, "axes"))
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
        # protobuf writes the payload last, except for the name: everything before it, then its length.
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
