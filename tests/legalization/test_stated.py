"""What a graph states of its values, told from columns as long as it is as it was."""

from onnx import ModelProto, TensorProto, helper, parser

from reducelower.legalization.run import ground_of
from reducelower.model.census import Stated
from reducelower.model.document import Document
from reducelower.model.value_info import entry
from reducelower.options import Settings, Target
from reducelower.scope.graph import GraphScope


def _scope() -> tuple[ModelProto, GraphScope]:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y)
        <int64[1] a, bool[1] b> { y = Relu (x) }"""
    )
    stated = Stated(model.SerializeToString())
    ground = ground_of(model, Document.of_message(model), Target(18), Settings(Target(18)), stated=stated)
    return model, GraphScope(ground, model.graph, 18, "graph", key=())


def test_types_are_found_where_they_stand() -> None:
    model, scope = _scope()
    assert [value.name for value in model.graph.value_info] == ["a", "b"]
    assert (scope.element_type("a"), scope.element_type("b")) == (TensorProto.INT64, TensorProto.BOOL)
    assert set(scope.stated.element_types) == {TensorProto.INT64, TensorProto.BOOL}


def test_others_stand_there_once_some_have_gone() -> None:
    model, scope = _scope()
    del model.graph.value_info[0]
    scope.drop_positions({"a"})
    double = helper.make_tensor_type_proto(TensorProto.DOUBLE, [1])
    scope.stated.add(entry(b"c", double.SerializeToString()))
    assert (scope.element_type("b"), scope.element_type("c")) == (TensorProto.BOOL, TensorProto.DOUBLE)
    assert TensorProto.DOUBLE in scope.stated.element_types
