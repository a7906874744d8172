"""How broadcasting of the first opsets is asked for; what it computes is in `cases/broadcasting.toml`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.adapters.models import converted, floats

A = floats(2, 3, 4, 5)


def _binary(op_type: str, left: np.ndarray, right: np.ndarray, opset: int, **attributes: Any) -> ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(left.dtype)
    values = [helper.make_tensor_value_info(name, kind, value.shape) for name, value in (("a", left), ("b", right))]
    shape = np.broadcast_shapes(left.shape, right.shape) if opset > 6 else left.shape
    output = helper.make_tensor_value_info("y", kind, shape)
    node = helper.make_node(op_type, ["a", "b"], ["y"], **attributes)
    return helper.make_model(
        helper.make_graph([node], "g", values, [output]), opset_imports=[helper.make_opsetid("", opset)], ir_version=4
    )


def test_equal_shapes_need_no_attribute_either_way() -> None:
    made = _binary("Mul", A, A, 6)
    up = converted(made, 7)
    assert not up.graph.node[0].attribute
    assert not converted(up, 6).graph.node[0].attribute


@pytest.mark.parametrize("shape", [(4, 5), (5,), (), (1, 1)])
def test_ends_of_shapes_ask_to_be_broadcast_below_7(shape: tuple[int, ...]) -> None:
    made = converted(_binary("Sub", A, floats(*shape), 7), 6)
    assert made.graph.node[0].attribute[0].name == "broadcast"


def test_the_smaller_operand_comes_second_where_order_does_not_matter() -> None:
    right = floats(2, 3)
    made = converted(_binary("Add", floats(3), right, 7), 6)
    assert list(made.graph.node[0].input) == ["b", "a"]
