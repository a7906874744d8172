"""What a graph states of its values, of old and since."""

from onnx import ModelProto, TensorProto, helper, parser

from reducelower.legalization.run import ground_of
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.scope.graph import GraphScope


def _scope() -> tuple[ModelProto, GraphScope]:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y)
        <int64[1] a, bool[1] b> { y = Relu (x) }"""
    )
    source = Document(model)
    ground = ground_of(model, source, Target(18), Settings(Target(18)))
    edited = source.copy()
    return edited, GraphScope(ground, edited.graph, 18, "graph", key=())


def test_types_are_found_where_they_stand() -> None:
    model, scope = _scope()
    assert [value.name for value in model.graph.value_info] == ["a", "b"]
    assert (scope.element_type("a"), scope.element_type("b")) == (TensorProto.INT64, TensorProto.BOOL)


def test_a_type_is_stated_once_and_known_from_then_on() -> None:
    model, scope = _scope()
    double = helper.make_tensor_type_proto(TensorProto.DOUBLE, [1]).SerializeToString()
    for name in ("a", "y", "c", "c"):
        scope.state(name, double)
    assert [value.name for value in model.graph.value_info] == ["a", "b", "c"]
    found = scope.described("c")
    assert found is not None
    assert found.type == double
