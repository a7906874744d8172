"""What a model as a whole has and a runtime does not take: done away with, or refused with a hint."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from reducelower import ConversionError, Target, check, legalize, load_runtime
from reducelower.conformance.whole_models import feature_cases
from tests.models import yields
from tests.runtimes.toaster import runtime

CASES = {case.operator: case for case in feature_cases(18)}


def toaster(feature: str) -> Target:
    return Target(18, runtime=runtime(f'model = ["{feature}"]\nis = "refused"'))


@pytest.mark.parametrize(
    "feature", ["functions", "sparse initializers", "imports of other domains", "narrow values in int32_data"]
)
def test_a_feature_that_a_runtime_lacks_is_done_away_with(feature: str) -> None:
    case = CASES[feature]
    source = onnx.load_model_from_string(case.model)
    made = legalize(source, toaster(feature))
    for found, expected in zip(yields(made.model, dict(case.inputs)), case.expected, strict=True):
        np.testing.assert_array_equal(found, expected)
    onnx.checker.check_model(made.model, full_check=True)
    assert not check(made.model, target=toaster(feature)).fitted
    assert made.plan.fitted == made.plan.notes[:1]
    assert "on toaster 1.0: Fact 1" in made.plan.fitted[0]
    assert source == onnx.load_model_from_string(case.model)


@pytest.mark.parametrize("feature", ["outputs that are inputs", "named sizes", "defaults of inputs"])
def test_a_feature_without_a_remedy_is_refused_with_a_hint(feature: str) -> None:
    source = onnx.load_model_from_string(CASES[feature].model)
    with pytest.raises(ConversionError, match=r"on toaster 1\.0, it is refused: Fact 1") as caught:
        legalize(source, toaster(feature))
    assert caught.value.refusals == check(source, target=toaster(feature)).refusals
    assert all(refusal.hint for refusal in caught.value.refusals)


@pytest.mark.parametrize("feature", sorted(CASES))
def test_a_model_without_what_a_fact_is_about_stays_as_it_is(feature: str) -> None:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x) => (float[2,3] y) { y = Neg (x) }'
    assert check(onnx.parser.parse_model(text), target=toaster(feature)).changes_nothing


@pytest.mark.parametrize("element_type", ["BOOL", "INT8", "UINT8", "INT16", "UINT16", "FLOAT16", "BFLOAT16", "INT4"])
def test_values_stored_as_raw_data_are_the_same(element_type: str) -> None:
    given = helper.make_tensor("c", onnx.TensorProto.DataType.Value(element_type), [3], [1, 0, 1])
    assert given.int32_data
    node = helper.make_node("Constant", [], ["c"], value=given)
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("c", given.data_type, [3])])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    target = Target(21, runtime=toaster("narrow values in int32_data").runtime)
    (made,) = legalize(source, target).model.graph.node
    (attribute,) = made.attribute
    assert attribute.t.raw_data and not attribute.t.int32_data
    np.testing.assert_array_equal(numpy_helper.to_array(attribute.t), numpy_helper.to_array(given))


def test_a_model_may_be_changed_in_place() -> None:
    source = onnx.load_model_from_string(CASES["functions"].model)
    legalize(source, toaster("functions"), in_place=True)
    assert [node.op_type for node in source.graph.node] == ["Add", "Add"]


@pytest.mark.parametrize(
    ("target", "feature"),
    [
        (target, feature)
        for target in ("openvino", "opencv", "opencv@4.14", "tract", "mnn", "tinygrad")
        for feature in ("functions", "sparse initializers")
    ],
)
def test_runtimes_that_lack_functions_and_sparse_initializers_get_neither(target: str, feature: str) -> None:
    source = onnx.load_model_from_string(CASES[feature].model)
    made = legalize(source, Target(runtime=load_runtime(target))).model
    assert not made.functions
    assert not made.graph.sparse_initializer


@pytest.mark.parametrize("target", ["opencv", "tract", "mnn"])
def test_a_sparse_constant_becomes_dense(target: str) -> None:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (float[4] y) { y = Add (x, c) }'
    source = onnx.parser.parse_model(text)
    values, places = (onnx.helper.make_tensor("", kind, [1], [at]) for kind, at in ((1, 5.0), (7, 2)))
    sparse = onnx.helper.make_sparse_tensor(values, places, [4])
    source.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["c"], sparse_value=sparse))
    made = legalize(source, Target(runtime=load_runtime(target))).model
    assert not any(attribute.name == "sparse_value" for node in made.graph.node for attribute in node.attribute)
    (found,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": np.ones(4, np.float32)})
    np.testing.assert_array_equal(found, [1, 1, 6, 1])
