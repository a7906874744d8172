"""What the census tells of the types that a graph states."""

import pytest
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from reducelower.model.census import Stated


def _stating(*values: ValueInfoProto) -> bytes:
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])] * 3, "graph", [], [], value_info=values)
    return helper.make_model(graph).SerializeToString()


def test_what_value_info_states() -> None:
    float_value = helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, None])
    integer = helper.make_tensor_value_info("b", TensorProto.INT64, None)
    stated = Stated(_stating(float_value, integer, float_value))
    assert list(stated.names) == [b"a", b"b", b"a"]
    assert stated.element_types == frozenset([TensorProto.FLOAT, TensorProto.INT64])
    stated.add(GraphProto(value_info=[helper.make_tensor_value_info("c", TensorProto.BOOL, [])]).SerializeToString())
    assert stated.element_types == frozenset([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL])
    assert list(stated.names) == [b"a", b"b", b"a"]
    stated.add(GraphProto(value_info=[ValueInfoProto(name="d")]).SerializeToString())
    assert stated.element_types is None


@pytest.mark.parametrize(
    "other",
    [
        ValueInfoProto(name="b"),
        helper.make_tensor_value_info("b", TensorProto.UNDEFINED, [2]),
        helper.make_tensor_sequence_value_info("b", TensorProto.INT64, None),
        helper.make_value_info("b", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, None))),
        helper.make_sparse_tensor_value_info("b", TensorProto.FLOAT, [2]),
    ],
)
def test_values_that_are_no_tensors_of_a_stated_type(other: ValueInfoProto) -> None:
    value = helper.make_tensor_value_info("a", TensorProto.FLOAT, [2])
    stated = Stated(_stating(value, other, value))
    assert list(stated.names) == [b"a", b"b", b"a"]
    assert stated.element_types is None


def test_a_model_that_states_nothing() -> None:
    assert Stated(_stating()).element_types == frozenset()
    assert Stated(b"").element_types == frozenset()
    assert list(Stated(b"").names) == []
