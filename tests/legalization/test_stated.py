"""What a graph states of its values."""

from onnx import TensorProto, parser

from reducelower.model.document import Document
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground


def test_types_are_found_where_they_stand() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y)
        <int64[1] a, bool[1] b> { y = Relu (x) }"""
    )
    source = Document(model)
    scope = GraphScope(Ground(source, 18), source.copy().graph, 18)
    assert [value.name for value in model.graph.value_info] == ["a", "b"]
    assert (scope.element_type("a"), scope.element_type("b")) == (TensorProto.INT64, TensorProto.BOOL)
