"""What a conversion leaves alone, and what it promises whatever the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, TypeProto, checker, defs, helper, numpy_helper, parser

import reducelower
from reducelower import ConversionError
from tests.legalization.models import OPERATORS, Case
from tests.models import model as written


def parse(text: str) -> ModelProto:
    model = parser.parse_model(text)
    checker.check_model(model, full_check=True)
    return model


def rich_model() -> ModelProto:
    """A model with everything a conversion must not touch, and one Reduce to convert."""
    model = parse(
        """
        <ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3, "unused" : 7], producer_name: "p", doc_string: "d">
        g (float[N, 3] x) => (float[N, 1] y)
        <float[2] unused = {1, 2}, int64[1] axes = {-1}, float[N, 3] z>
        {
            z = Relu (x)
            y = ReduceSum <keepdims = 1> (z, axes)
        }
        """
    )
    graph = model.graph
    for holder in (model, graph, graph.node[0], graph.node[1], graph.input[0], graph.value_info[0]):
        holder.metadata_props.add(key="k", value="v")
        holder.doc_string = "doc"
    graph.initializer[0].doc_string = "weights"
    graph.node[0].name, graph.node[1].name = "first", "second"
    graph.quantization_annotation.add(tensor_name="z").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="unused"
    )
    sparse = graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([1.0], np.float32), "sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([2], np.int64)))
    training = model.training_info.add()
    training.algorithm.name = "step"
    training.initialization.name = "start"
    return model


def test_only_the_rewritten_node_and_the_imported_version_change() -> None:
    model = rich_model()
    converted = reducelower.convert_version(model, 11)
    expected = ModelProto()
    expected.CopyFrom(model)
    expected.opset_import[0].version = 11
    expected.ir_version = 7  # that of opset 11 is 6, and training information came with 7
    node = expected.graph.node[1]
    del node.input[1]
    node.attribute.append(helper.make_attribute("axes", [-1]))
    del expected.graph.initializer[1]
    assert converted == expected


def test_the_callers_model_is_not_changed() -> None:
    model = rich_model()
    before = model.SerializeToString()
    reducelower.convert_version(model, 11)
    reducelower.check(model, 11)
    with pytest.raises(ConversionError):
        reducelower.convert_version(refused_model(), 11)
    assert model.SerializeToString() == before


def refused_model() -> ModelProto:
    """Two nodes no opset below 13 can express, in two graphs."""
    return parse(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (bfloat16[2, 3] x, bool c) => (bfloat16 y)
        {
            s = ReduceSum <keepdims = 0> (x)
            y = If (c) <
                then_branch = t () => (bfloat16 a) { a = ReduceMax <keepdims = 0> (x) },
                else_branch = e () => (bfloat16 b) { b = Identity (s) }
            >
        }
        """
    )


def test_every_refusal_is_reported_with_its_place() -> None:
    with pytest.raises(ConversionError) as caught:
        reducelower.convert_version(refused_model(), 11)
    places = {(refusal.graph, refusal.operator, refusal.node) for refusal in caught.value.refusals}
    assert ("graph", "ReduceSum", "ReduceSum#0") in places
    assert ("graph/If#1.then_branch", "ReduceMax", "ReduceMax#0") in places
    assert all("bfloat16" in refusal.reason for refusal in caught.value.refusals)


def test_in_place_leaves_a_refused_model_as_it_was() -> None:
    model = refused_model()
    before = model.SerializeToString()
    with pytest.raises(ConversionError):
        reducelower.convert_version(model, 11, in_place=True)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("target", [9, 11, 13, 18, 21])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_converting_twice_changes_nothing(op_type: str, target: int) -> None:
    once = reducelower.convert_version(Case(op_type, 20, "several", place="If").model(), target)
    twice = reducelower.convert_version(once, target)
    assert twice.SerializeToString() == once.SerializeToString()
    assert reducelower.check(once, target).changes_nothing


@pytest.mark.parametrize(("source", "target", "ir_version", "expected"), [
    (18, 13, 8, 7), (18, 13, 10, 7), (13, 18, 7, 8), (13, 21, 3, 10), (18, 11, 8, 6), (18, 9, 9, 4), (13, 18, 9, 8),
    (18, 18, 10, 10), (18, 18, 7, 7), (18, 18, 3, 3),
])  # fmt: skip
def test_ir_version_follows_the_opset(source: int, target: int, ir_version: int, expected: int) -> None:
    model = Case("ReduceSum", source, "absent").model()
    model.ir_version = ir_version
    assert reducelower.convert_version(model, target).ir_version == expected
    assert reducelower.convert_version(model, target, ir_version="keep").ir_version == ir_version
    assert reducelower.convert_version(model, target, ir_version=11).ir_version == 11


@pytest.mark.parametrize("ir_version", [3, 7, 8, 10])
def test_a_model_that_stays_at_its_opset_stays_as_it_is(ir_version: int) -> None:
    """Runtimes read an IR version older than that of the release that brought the opset version."""
    model = Case("ReduceSum", 18, "absent").model()
    model.ir_version = ir_version
    assert reducelower.convert_version(model, 18) == model
    assert reducelower.check(model, 18).changes_nothing


def test_ir_version_stays_as_high_as_the_model_needs() -> None:
    model = Case("ReduceSum", 18, "absent").model()
    model.ir_version = 10
    model.graph.node[0].overload = "o"
    assert reducelower.convert_version(model, 11).ir_version == 10


# Source of the versions: the change log of IR versions in onnx.proto.
@pytest.mark.parametrize(
    ("value_type", "expected"),
    [
        (helper.make_tensor_type_proto(TensorProto.FLOAT, [3]), 6),
        (helper.make_tensor_type_proto(TensorProto.FLOAT8E5M2, [3]), 9),
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.INT4, [3])), 10),
        (helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [3])), 8),
        (helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.INT4, [3])), 10),
    ],
    ids=["float", "float8", "sequence of int4", "optional", "optional int4"],
)
@pytest.mark.parametrize("where", ["input", "value_info"])
def test_ir_version_stays_as_high_as_stated_types_need(where: str, value_type: TypeProto, expected: int) -> None:
    model = Case("ReduceSum", 18, "absent").model()
    model.ir_version = 10
    getattr(model.graph, where).add(name="more").type.CopyFrom(value_type)
    assert reducelower.convert_version(model, 11).ir_version == expected


@pytest.mark.parametrize(("name", "version"), [
    ("FLOAT8E4M3FN", 9), ("FLOAT8E5M2FNUZ", 9), ("INT4", 10), ("UINT4", 10), ("FLOAT4E2M1", 11), ("INT2", 13),
])  # fmt: skip
def test_opset_versions_whose_constants_take_a_type_come_with_its_ir_version(name: str, version: int) -> None:
    kind = f"tensor({name.lower()})"
    taking = [
        found.since_version
        for found in defs.get_all_schemas_with_history()
        if (found.domain, found.name) == ("", "Constant") and kind in found.outputs[0].types
    ]
    if not taking:
        pytest.skip("the installed onnx does not have the type")
    assert helper.find_min_ir_version_for([helper.make_opsetid("", min(taking))]) >= version


@pytest.mark.parametrize("where", ["graph", "node", "input", "output", "value_info", "initializer"])
def test_metadata_stays_where_it_is_and_needs_no_newer_reader(where: str) -> None:
    model = Case("ReduceSum", 18, "absent").model()
    model.ir_version = 10
    if where in ("value_info", "initializer"):
        model.graph.initializer.add(name="more", data_type=TensorProto.FLOAT, dims=[0])
        model.graph.value_info.add(name="more").type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [0]))
    marked = model.graph if where == "graph" else getattr(model.graph, where)[0]
    marked.metadata_props.add(key="k", value="v")
    converted = reducelower.convert_version(model, 13)
    assert converted.ir_version == 7
    found = converted.graph if where == "graph" else getattr(converted.graph, where)[0]
    assert [(entry.key, entry.value) for entry in found.metadata_props] == [("k", "v")]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_spellings_of_the_default_domain_are_understood(domain: str) -> None:
    model = Case("ReduceMax", 18, "one").model()
    model.opset_import[0].domain = domain
    model.graph.node[0].domain = domain
    converted = reducelower.convert_version(model, 13)
    assert converted.opset_import[0].domain == domain
    converted.opset_import[0].domain = ""  # Checkers before onnx 1.23 know imports by this spelling only.
    checker.check_model(converted, full_check=True)
    assert converted.graph.node[0].attribute[0].name == "axes"


BAD_IMPORTS = {
    "none": [],
    "zero": [0],
    "negative": [-1],
    "unknown": [999],
    "two different": [13, 18],
}


@pytest.mark.parametrize("imports", BAD_IMPORTS.values(), ids=BAD_IMPORTS.keys())
def test_a_model_without_one_known_opset_is_refused(imports: list[int]) -> None:
    model = Case("ReduceMax", 18, "one").model()
    del model.opset_import[:]
    for number, version in enumerate(imports):
        model.opset_import.add(domain="" if number == 0 else "ai.onnx", version=version)
    with pytest.raises(ConversionError) as caught:
        reducelower.convert_version(model, 13)
    assert "opset" in str(caught.value)


def test_a_function_in_the_default_domain_is_refused() -> None:
    model = Case("ReduceMax", 18, "one", place="function").model()
    model.functions[0].domain = ""
    model.functions[0].name = "ReduceMax"
    with pytest.raises(ConversionError, match="default domain"):
        reducelower.convert_version(model, 13)


def test_an_element_type_can_be_declared() -> None:
    # Nothing is stated of y either, which is of the same type.
    text = "(bool[2,3] x) => (z, y) <int64[1] axes = {0}> { z = custom.Flip (x)  y = ReduceMax (z, axes) }"
    model = written(text, 20, imports='"custom": 1')
    with pytest.raises(ConversionError, match="--type z=TYPE"):
        reducelower.convert_version(model, 18)
    converted = reducelower.convert_version(model, 18, element_types={"z": "bool"})
    assert "Cast" in {node.op_type for node in converted.graph.node}


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("rewrite", [partial(reducelower.convert_version, target_version=13), reducelower.expand])
def test_a_model_without_a_graph_is_refused_and_gets_none(rewrite: Callable[..., ModelProto], in_place: bool) -> None:
    model = ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 18)])
    with pytest.raises(ConversionError, match="the model holds no graph"):
        rewrite(model, in_place=in_place)
    with pytest.raises(ConversionError, match="the model holds no graph"):
        reducelower.convert_version(model.SerializeToString(), 13)
    assert not model.HasField("graph")
    assert not reducelower.repair(model).model.HasField("graph")


def test_graphs_for_training_are_not_left_behind() -> None:
    model = written("(float[3] x) => (float[3] y) { y = Relu (x) }")
    algorithm = "a (float[3] u) => (float[1, 3] v) <int64[1] k = {0}> { v = Unsqueeze (u, k) }"
    model.training_info.add().algorithm.CopyFrom(parser.parse_graph(algorithm))
    with pytest.raises(ConversionError, match=r"training_info.*del model.training_info\[:\]"):
        reducelower.convert_version(model, 12)
    del model.training_info[:]
    assert reducelower.convert_version(model, 12)
