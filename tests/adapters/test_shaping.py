"""Reshape, Shape, GatherND, Dropout, Concat, Cast and Tile at their boundaries."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper, parser

import reducelower
from tests.adapters.models import assert_same, converted, floats, int64s, one, operators, refusal, run

X = floats(2, 3, 4)


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("count", [2, 1, 0])
def test_gather_nd_in_batches_of_unknown_sizes(count: int, target: int) -> None:
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[a,b,c] x, int64[a,b,n,1] i) => (float[a,b,n] y) { y = GatherND <batch_dims = 2> (x, i) }"""
    )
    indices = np.array([[[1, 0], [0, 3], [-1, 2]], [[0, 1], [2, 3], [1, -4]]], np.int64)[:count, ..., None]
    feeds = {"x": X[:count], "i": indices}
    assert_same(made, feeds, target, np.take_along_axis(X[:count], indices[..., 0], 2))


def test_gather_nd_of_batches_that_contradict_each_other_is_refused() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,2,3] x) => (float[a,b] y) <int64[1,4,1] i = {0, 1, 2, 0}> { y = GatherND <batch_dims = 2> (x, i) }"""
    )
    with pytest.raises(reducelower.ConversionError, match="batch axis 0 is of size 2 in its data and 1 in its indices"):
        reducelower.convert_version(model, 9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", [11, 9])
def test_dropout_in_training_keeps_a_share_and_makes_up_for_the_rest(target: int, dtype: type[np.generic]) -> None:
    data = np.full((50, 40), 3, dtype)
    constants = {"r": np.float32(0.25), "t": np.array(True)}
    made = one("Dropout", {"x": data}, 13, outputs=["y", "m"], constants=constants, seed=7)
    found, mask = run(converted(made, target), {"x": data})
    np.testing.assert_array_equal(found, np.where(mask, dtype(4), dtype(0)))
    assert abs(mask.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 2000)


def test_concat_states_the_axis_it_defaulted_to() -> None:
    node = helper.make_node("Concat", ["a", "b"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in
              (("a", (2, 3)), ("b", (2, 1)), ("y", (2, 4)))]  # fmt: skip
    made = helper.make_model(
        helper.make_graph([node], "g", values[:2], values[2:]), opset_imports=[helper.make_opsetid("", 3)]
    )
    assert converted(made, 13).graph.node[0].attribute[0].i == 1


def test_cast_names_and_numbers_element_types() -> None:
    made = one("Cast", {"x": X}, 13, to=TensorProto.INT64)
    old = converted(made, 5)
    assert old.graph.node[0].attribute[0].s == b"INT64"
    assert converted(old, 13).graph.node[0].attribute[0].i == TensorProto.INT64


def test_moving_bfloat16_is_refused_where_nothing_takes_it() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, (2, 2)) for name in "xy"]
    node = helper.make_node("Transpose", ["x"], ["y"])
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    assert "Cast does not take bfloat16" in refusal(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), 12
    )


def test_integers_that_no_constant_may_hold_below_9_are_cast_from_doubles() -> None:
    made = one("Reshape", {"x": X}, 14, constants={"s": int64s(4, 6)}, allowzero=1)
    del made.graph.initializer[:]
    made.graph.node.insert(0, helper.make_node("Constant", [], ["s"], value_ints=[4, 6]))
    made.ir_version = 3
    lowered = converted(made, 8)
    assert lowered.ir_version == 4  # an initializer holds them unless the IR version is kept
    kept = reducelower.convert_version(made, 8, ir_version="keep")
    checker.check_model(kept, full_check=True)
    assert operators(kept) == ["Constant", "Cast", "Reshape"]
    np.testing.assert_array_equal(run(kept, {"x": X})[0], X.reshape(4, 6))


def test_a_cast_in_a_function_below_6_is_refused_unless_it_casts_nothing() -> None:
    def made(to: int) -> ModelProto:
        return parser.parse_model(
            f"""
            <ir_version: 8, opset_import: ["": 13, "my": 1]>
            g (float[3] x) => (float[1] y) {{ y = my.F (x) }}
            <domain: "my", opset_import: ["": 13]>
            F (d) => (r) {{ c = Cast <to = {to}> (d) s = ReduceSum (c) r = Cast <to = 1> (s) }}
            """
        )

    assert "inference does not read the Cast of opset 5" in refusal(made(TensorProto.DOUBLE), 5)
    lowered = converted(made(TensorProto.FLOAT), 5)
    assert [node.op_type for node in lowered.functions[0].node] == ["Identity", "ReduceSum", "Identity"]
