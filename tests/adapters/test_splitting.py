"""Split at 2, 13 and 18."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.adapters.models import assert_same, converted, floats, int64s, one, operators, run

X = floats(2, 7)


@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("target", [17, 13, 11, 10])
def test_parts_that_do_not_come_out_even_are_cut_where_opset_18_cuts(target: int, axis: int, ranked: list[str]) -> None:
    made = one("Split", {"x": X}, 18, outputs=["a", "b", "c"], ranked=ranked, num_outputs=3, axis=axis)
    assert_same(made, {"x": X}, target, X[:, :3], X[:, 3:6], X[:, 6:])


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


@pytest.mark.parametrize("target", [9, 11, 12])
def test_constant_sizes_become_an_attribute(target: int) -> None:
    made = one("Split", {"x": X}, 13, outputs=["a", "b"], constants={"s": int64s(3, 4)}, axis=1)
    result = assert_same(made, {"x": X}, target)
    assert operators(result) == ["Split"]
    assert not result.graph.initializer


@pytest.mark.parametrize("target", [9, 11])
def test_computed_sizes_are_cut_out_one_by_one(target: int) -> None:
    feeds = {"x": X, "s": int64s(3, 0, 4)}
    made = one("Split", feeds, 13, outputs=["a", "b", "c"], axis=1)
    assert_same(made, feeds, target, X[:, :3], X[:, 3:3], X[:, 3:])


def test_an_attribute_becomes_sizes() -> None:
    made = one("Split", {"x": X}, 11, outputs=["a", "b"], split=[3, 4], axis=1)
    assert_same(made, {"x": X}, 21, *np.split(X, [3], axis=1))
    assert len(run(made, {"x": X})) == 2


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
