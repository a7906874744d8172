"""Axes and indices below opset 11, which had to be counted from the front."""

from __future__ import annotations

import pytest
from onnx import checker, helper

import reducelower
from tests.adapters.models import converted, floats, one, refusal

X = floats(2, 3, 4)


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("opset", [1, 5, 12])
def test_axes_of_squeeze_are_sorted_below_opset_11_even_without_a_rank(opset: int, target: int) -> None:
    # The Relu of opset 1 has no inference, which would find another shape than its output states.
    nodes = [helper.make_node("Squeeze", ["x"], ["s"], axes=[3, 1]), helper.make_node("Relu", ["s"], ["y"])]
    given, found = (helper.make_tensor_value_info(*each) for each in (("x", 1, (2, 1, 3, 1)), ("y", 1, (2, 3))))
    graph = helper.make_graph(nodes, "g", [given], [found])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
    checker.check_model(made, full_check=True)
    result = converted(made, target)
    checker.check_model(result, full_check=True)
    assert list(result.graph.node[0].attribute[0].ints) == [1, 3]
    made.graph.input[0].type.tensor_type.ClearField("shape")
    assert reducelower.convert_version(made, target).graph.node == result.graph.node


def test_negative_axes_of_squeeze_that_were_never_valid_stay() -> None:
    made = one("Squeeze", {"x": floats(2, 1, 3, 1)}, 11, axes=[-1, 1])
    made.opset_import[0].version = 9
    assert reducelower.convert_version(made, 8).graph.node == made.graph.node


def test_the_rank_has_to_be_known_where_an_axis_is_negative() -> None:
    made = one("ArgMax", {"x": X}, 11, axis=-1)
    made.graph.input[0].type.tensor_type.ClearField("shape")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    assert "the rank of 'x' is not known" in refusal(made, 9)
