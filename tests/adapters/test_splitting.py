"""Split at 2, 13 and 18."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.adapters.models import assert_same, converted, floats, one, operators, run


def test_even_parts_need_no_sizes() -> None:
    data = floats(6, 2)
    made = one("Split", {"x": data}, 18, outputs=["a", "b"], num_outputs=2)
    result = assert_same(made, {"x": data}, 17)
    assert operators(result) == ["Split"]
    assert len(result.graph.node[0].input) == 1


def test_equal_parts_have_to_be_asked_for_since_18() -> None:
    data = floats(6, 2)
    made = one("Split", {"x": data}, 13, outputs=["a", "b"])
    result = assert_same(made, {"x": data}, 18)
    assert result.graph.node[0].attribute[-1].name == "num_outputs"


@pytest.mark.parametrize("absent", [[], [""]])
def test_equal_parts_of_an_unknown_size_are_asked_for_once(absent: list[str]) -> None:
    node = helper.make_node("Split", ["x", *absent], ["y", "z"], num_outputs=2)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 3]) for name in ("y", "z")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    data = np.arange(9, dtype=np.float32).reshape(3, 3)
    for got, want in zip(run(converted(made, 13), {"x": data}), (data[:2], data[2:]), strict=True):
        np.testing.assert_array_equal(got, want)
