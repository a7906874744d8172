"""From bytes to bytes: what parsing, converting and serializing give, however the bytes are laid out."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, TensorProto, checker, helper, numpy_helper, parser

import reducelower
from reducelower import Target
from reducelower.errors import UnreadableModelError
from reducelower.model.document import Document
from reducelower.scope.graph import GraphScope
from reducelower.types.graphs import Graph
from tests.models import model as written
from tests.models import yields
from tests.pairwise import pairwise

GRAPH, NODE = 7, 1
"""Numbers of ModelProto.graph and GraphProto.node in onnx.proto."""


def varint(number: int) -> bytes:
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def fields(message: Message) -> list[bytes]:
    """The fields of a message, each with all its values; put together in any order they are the message again."""
    return [type(message)(**{known.name: value}).SerializeToString() for known, value in message.ListFields()]


def laid_out(
    model: ModelProto,
    *,
    node: Callable[[list[bytes]], bytes] = b"".join,
    graph: Callable[[list[bytes]], list[bytes]] = lambda parts: [b"".join(parts)],
    whole: Callable[[list[bytes]], list[bytes]] = lambda parts: parts,
) -> bytes:
    """The bytes of a model, put together in a way of one's own.

    Args:
        model: the model.
        node: puts a node together from its fields.
        graph: puts the graph together from its nodes, each a part, and its other fields; several parts are so many
            occurrences of the field.
        whole: puts the other fields of the model and the graph, which comes last, in order.
    """
    nodes = [field(NODE, node(fields(each))) for each in model.graph.node]
    bare_graph, bare = GraphProto(), ModelProto()
    bare_graph.CopyFrom(model.graph)
    del bare_graph.node[:]
    bare.CopyFrom(model)
    bare.ClearField("graph")
    graphs = b"".join(field(GRAPH, part) for part in graph([*nodes, *fields(bare_graph)]))
    return b"".join(whole([*fields(bare), graphs]))


def sample(opset: int = 13) -> ModelProto:
    """Two reductions of a kind, others, and everything else a graph may hold."""
    axes = "<axes = [1], keepdims = 0>" if opset < 18 else "<keepdims = 0>"
    inputs = "" if opset < 18 else ", one"
    model = parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g (float[2, 3] x, bool c) => (float[2] y, float[2] z, float[2] w, float[2] v)
        <int64[1] one = {{1}}, float[3] scale = {{1, 2, 3}}>
        {{
            scaled = Mul (x, scale)
            y = ReduceL2 {axes} (scaled{inputs})
            z = ReduceL2 {axes} (x{inputs})
            w = If (c) <
                then_branch = t () => (float[2] a) {{ a = ReduceMean {axes} (scaled{inputs}) }},
                else_branch = e () => (float[2] b) {{ b = ReduceLogSumExp {axes} (scaled{inputs}) }}
            >
            v = local.norm (x)
        }}
        <opset_import: ["" : {opset}], domain: "local"> norm (p) => (q)
        {{
            two = Constant <value_ints = [1]> ()
            q = {"ReduceL1 <axes = [1], keepdims = 0> (p)" if opset < 18 else "ReduceL1 <keepdims = 0> (p, two)"}
        }}
        """
    )
    for number, node in enumerate(model.graph.node[:3]):
        node.name = f"node 100 % {number}"
        node.doc_string = "words"
    model.producer_name = "a test"
    model.metadata_props.add(key="k", value="v")
    model.graph.doc_string = "a graph"
    annotation = model.graph.quantization_annotation.add(tensor_name="scaled")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    sparse = model.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(numpy_helper.from_array(np.float32([5]), "sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.int64([2])))
    checker.check_model(model)
    return model


LAYOUTS: dict[str, Callable[[ModelProto], bytes]] = {
    "as protobuf writes it": lambda model: model.SerializeToString(),
    "fields of nodes backwards": lambda model: laid_out(model, node=lambda parts: b"".join(parts[::-1])),
    "outputs of nodes first": lambda model: laid_out(
        model, node=lambda parts: b"".join([parts[1], parts[0], *parts[2:]])
    ),
    "names of nodes twice": lambda model: laid_out(model, node=lambda parts: b"\x1a\x04lost" + b"".join(parts)),
    "nodes after all else": lambda model: laid_out(model, graph=lambda parts: [b"".join(parts[-4:] + parts[:-4])]),
    "a node among other fields": lambda model: laid_out(
        model, graph=lambda parts: [b"".join([parts[-1], *parts[:2], *parts[5:-1], *parts[2:5]])]
    ),
    "the graph in parts": lambda model: laid_out(model, graph=lambda parts: [b"".join(parts[:2]), *parts[2:]]),
    "the graph first": lambda model: laid_out(model, whole=lambda parts: parts[::-1]),
    "fields nobody knows": lambda model: laid_out(
        model,
        node=lambda parts: b"".join(parts) + field(99, b"node"),
        graph=lambda parts: [b"".join(parts) + field(99, b"graph")],
        whole=lambda parts: [*parts, field(99, b"model")],
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("source", "target"), [(13, 18), (18, 13), (18, 18), (13, 11), (18, 9)])
def test_any_layout_is_converted_as_the_message_is(layout: str, source: int, target: int) -> None:
    data = LAYOUTS[layout](sample(source))
    model = ModelProto.FromString(data)
    assert len(model.graph.node) == 5
    wanted = reducelower.convert_version(model, target)
    assert ModelProto.FromString(reducelower.convert_version(data, target)) == wanted


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("source", "target"), [(13, 18), (18, 13), (18, 18)])
def test_weights_make_no_difference(layout: str, source: int, target: int) -> None:
    """Nodes beside weights are cut out of the bytes rather than parsed apart."""
    model = sample(source)
    wanted = ModelProto.FromString(reducelower.convert_version(LAYOUTS[layout](model), target))
    model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[1 << 14], raw_data=bytes(1 << 16))
    data = LAYOUTS[layout](model)
    as_bytes = ModelProto.FromString(reducelower.convert_version(data, target))
    assert [node.op_type for node in wanted.graph.node].count("ReduceL2") == 2
    for made in (as_bytes, reducelower.convert_version(ModelProto.FromString(data), target)):
        made.graph.initializer.remove(model.graph.initializer[-1])
        assert made == wanted


def test_nothing_of_a_model_waits_for_the_garbage_collector() -> None:
    gc.collect()
    before = alive()
    gc.disable()
    try:
        reducelower.convert_version(sample(18).SerializeToString(), 9)
        reducelower.convert_version(sample(18), 13, in_place=True)
        reducelower.legalize(sample(13), Target(runtime=reducelower.load_runtime("opencv")))
        reducelower.check(sample(18), 9)
        reducelower.raise_reductions(sample(18))
        assert alive() == before
    finally:
        gc.enable()


def alive() -> Counter[type]:
    """How many objects there are that hold models."""
    return Counter(type(each) for each in gc.get_objects() if isinstance(each, Document | GraphScope | Graph))


@pytest.mark.parametrize(("layout", "rules", "opset"), pairwise(LAYOUTS, ("spec", "stable", "core"), (13, 18)))
def test_any_layout_is_expanded_as_the_message_is(layout: str, rules: str, opset: int) -> None:
    data = LAYOUTS[layout](sample(opset))
    wanted = reducelower.expand(ModelProto.FromString(data), rules=rules)
    assert ModelProto.FromString(reducelower.expand(data, rules=rules)) == wanted


def test_a_field_that_onnx_does_not_know_stays_in_a_node() -> None:
    text = "(float[2, 3] x) => (float[2, 3] r, float[2, 1] y) { r = Relu (x)  y = ReduceMax <axes = [1]> (x) }"
    model = written(text, 13)
    usual = model.graph.node[0].SerializeToString()
    odd = usual + field(500, b"?")
    data = laid_out(model, graph=lambda parts: [field(NODE, odd) + b"".join(parts[1:])])
    assert odd in reducelower.convert_version(data, 18)


NAMES = {
    "alike": ["n", "n", "n"],
    "none": ["", "", ""],
    "like what is added": ["a", "a/ReduceL2", "a/ReduceL2/square"],
    "ending like what is added": ["a", "a/ReduceL2", "b"],
    "with signs of formats": ["%s", "%%b", "{0}"],
    "of other scripts": ["ä", "名前", "π" * 80],
    "some": ["n", "", "n"],
}


@pytest.mark.parametrize(
    ("is_typed", "names", "opset", "rules"), pairwise((True, False), NAMES, (13, 18), ("spec", "stable", "core"))
)
def test_new_names_collide_with_none(is_typed: bool, names: str, opset: int, rules: str) -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    # Nodes are treated many at once where nothing at hand tells the type of their data.
    source, relu = ("x", "") if is_typed else ("r", "r = Relu (x)")
    model = written(f"(float[3,4] x) => () {{ {relu} }}", opset, **({"axes": np.int64([1])} if opset == 18 else {}))
    for number, name in enumerate(NAMES[names] * 2):
        output = f"{name}{number}" if number < 3 else f"out{number}"
        inputs, axes = ([source, "axes"], {}) if opset == 18 else ([source], {"axes": [1]})
        model.graph.node.append(helper.make_node("ReduceL2", inputs, [output], name=name, keepdims=0, **axes))
        model.graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, [3]))
    expanded = ModelProto.FromString(reducelower.expand(model.SerializeToString(), rules=rules))
    checker.check_model(expanded, full_check=True)
    assert "ReduceL2" not in {node.op_type for node in expanded.graph.node}
    outputs = [name for node in expanded.graph.node for name in node.output]
    assert len(outputs) == len(set(outputs))
    for node in expanded.graph.node:
        node.name = ""  # onnxruntime takes no model with two nodes of one name
    for result in yields(expanded, {"x": data}):
        np.testing.assert_allclose(result, np.sqrt((data.astype(np.float64) ** 2).sum(1)), rtol=1e-6)


def test_many_nodes_of_a_kind_get_readable_names() -> None:
    nodes = " ".join(f"[norm{n}] v{n + 1} = ReduceL1 <axes = [0]> (v{n})" for n in range(12))
    model = written(f"(float[3] v0) => (float[1] v12) {{ {nodes} }}", 11, 6)
    expanded = ModelProto.FromString(reducelower.expand(model.SerializeToString()))
    assert [list(node.output) for node in expanded.graph.node[::2]] == [
        [f"norm{n}/ReduceL1/magnitude"] for n in range(12)
    ]
    assert [node.name for node in expanded.graph.node[1::2]] == [f"norm{n}" for n in range(12)]


def test_damaged_bytes_are_no_model() -> None:
    data = sample().SerializeToString()
    for damaged in (data[: len(data) // 2], b"\xff" * 100, b"PK\x03\x04" + bytes(40)):
        with pytest.raises(UnreadableModelError, match="not an ONNX model"):
            reducelower.convert_version(damaged, 18)


def test_no_bytes_are_a_model_of_nothing() -> None:
    with pytest.raises(reducelower.ConversionError, match="imports no opset"):
        reducelower.convert_version(b"", 18)


def test_a_damaged_node_that_is_to_be_rewritten_is_no_model() -> None:
    model = sample(13)
    data = laid_out(model, node=lambda parts: b"".join(parts) + b"\x2a\x7f")
    with pytest.raises(UnreadableModelError, match="not an ONNX model"):
        reducelower.convert_version(data, 18)
