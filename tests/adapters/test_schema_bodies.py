"""Bodies that schemas make of the types of operands: for which operators the shapes do not matter."""

from __future__ import annotations

from collections import Counter

import pytest
from onnx import NodeProto, TypeProto, defs

from reducelower.adapters.absent import BY_ELEMENT_TYPE
from tools.node_cases import cases


def body(node: NodeProto, opset: int, types: list[bytes]) -> bytes:
    found = defs.get_schema(node.op_type, opset, "")
    written = min(found.context_dependent_function_opset_versions)
    made: bytes = found.get_context_dependent_function_with_opset_version(written, node.SerializeToString(), types)
    return made


def without_shape(found: TypeProto) -> bytes:
    return TypeProto(tensor_type=TypeProto.Tensor(elem_type=found.tensor_type.elem_type)).SerializeToString()


@pytest.mark.xdist_group("onnx's cases")
def test_shapes_make_no_difference() -> None:
    seen = Counter[str]()
    for case in cases():
        graph = case.model.graph
        if len(graph.node) != 1 or graph.node[0].op_type not in BY_ELEMENT_TYPE:
            continue
        node, given = graph.node[0], {value.name: value.type for value in graph.input}
        if not defs.get_schema(node.op_type, case.opset, "").has_context_dependent_function:
            continue
        if not all(name in given for name in node.input if name):
            continue
        types = [given.get(name, TypeProto()) for name in node.input]
        whole = [found.SerializeToString() for found in types]
        bare = [without_shape(found) if found.HasField("tensor_type") else b"" for found in types]
        assert body(node, case.opset, whole) == body(node, case.opset, bare), case.name
        seen[node.op_type] += 1
    assert seen.keys() == BY_ELEMENT_TYPE, BY_ELEMENT_TYPE - seen.keys()
