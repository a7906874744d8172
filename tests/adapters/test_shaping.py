"""Reshape, Shape, GatherND, Dropout, Concat, Cast and Tile at their boundaries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from tests.adapters.models import assert_same, converted, floats, int64s, model, one, operators, refusal, run

X = floats(2, 3, 4)


def test_allowzero_says_nothing_of_a_shape_without_zeros() -> None:
    made = one("Reshape", {"x": X}, 14, constants={"s": int64s(4, 6)}, allowzero=1)
    assert operators(assert_same(made, {"x": X}, 13, X.reshape(4, 6))) == ["Reshape"]


@pytest.mark.parametrize(
    ("shape", "expected"), [((0, 3), ["Reshape"]), ((3, 0), ["Reshape"]), ((0, 5, 0), ["Identity"])]
)
def test_constant_shapes_with_zeros(shape: tuple[int, ...], expected: list[str]) -> None:
    data = floats(4, 0)
    made = one("Reshape", {"x": data}, 14, constants={"s": int64s(*shape)}, allowzero=1)
    assert operators(assert_same(made, {"x": data}, 13, data.reshape(shape))) == expected


@pytest.mark.parametrize("target", [13, 9])
def test_computed_shapes_may_hold_a_zero(target: int) -> None:
    for data, shape in ((floats(4, 0), int64s(0, 7)), (floats(4, 6), int64s(3, 8))):
        feeds = {"x": data, "s": shape}
        made = one("Reshape", feeds, 14, ranked=["x"], allowzero=1)
        assert_same(made, feeds, target, data.reshape(shape))


@pytest.mark.parametrize("target", [13, 11, 9])
@pytest.mark.parametrize(("start", "end"), [(1, None), (-1, None), (0, -1), (1, 2), (0, 2), (-9, 9), (None, 1)])
def test_parts_of_shapes(start: int | None, end: int | None, target: int) -> None:
    attributes = {name: value for name, value in (("start", start), ("end", end)) if value is not None}
    made = one("Shape", {"x": X}, 15, ranked=["x"], **attributes)
    assert_same(made, {"x": X}, target, np.array(X.shape[start:end], np.int64))


@pytest.mark.parametrize("given", ["constants", "computed"])
@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("batch_dims", [0, 1, 2])
def test_gather_nd_in_batches(batch_dims: int, target: int, given: str) -> None:
    indices = np.array([[[1], [0], [-1]], [[0], [2], [1]]], np.int64)
    if batch_dims == 0:
        indices = indices % 2
    feeds = {"x": X, **({"i": indices} if given == "computed" else {})}
    constants = {} if given == "computed" else {"i": indices}
    made = one("GatherND", feeds, 13, constants=constants, batch_dims=batch_dims)
    expected = {
        0: lambda: X[indices[..., 0]],
        1: lambda: X[np.arange(2)[:, None], indices[..., 0]],
        2: lambda: np.take_along_axis(X, indices, 2)[..., 0],
    }[batch_dims]()
    assert_same(made, feeds, target, expected)


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


@pytest.mark.parametrize("target", [11, 9, 7])
def test_dropout_outside_of_training_passes_data_through(target: int) -> None:
    made = one("Dropout", {"x": X}, 13, constants={"r": np.float32(0.3), "t": np.array(False)})
    assert operators(assert_same(made, {"x": X}, target, X)) == ["Dropout"]


@pytest.mark.parametrize("target", [11, 9])
def test_the_mask_of_dropout_keeps_everything(target: int) -> None:
    made = one("Dropout", {"x": X}, 13, outputs=["y", "m"], constants={"r": np.float32(0.3)})
    assert_same(made, {"x": X}, target, X, np.ones(X.shape, np.bool_))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", [11, 9])
def test_dropout_in_training_keeps_a_share_and_makes_up_for_the_rest(target: int, dtype: type[np.generic]) -> None:
    data = np.full((50, 40), 3, dtype)
    constants = {"r": np.float32(0.25), "t": np.array(True)}
    made = one("Dropout", {"x": data}, 13, outputs=["y", "m"], constants=constants, seed=7)
    found, mask = run(converted(made, target), {"x": data})
    np.testing.assert_array_equal(found, np.where(mask, dtype(4), dtype(0)))
    assert abs(mask.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 2000)


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize(("ratio", "training"), [(0.3, False), (0.0, True)])
def test_dropout_told_at_run_time_to_drop_nothing(ratio: float, training: bool, target: int) -> None:
    feeds = {"x": X, "r": np.array(ratio, np.float32), "t": np.array(training)}
    made = one("Dropout", feeds, 13, outputs=["y", "m"])
    assert_same(made, feeds, target, X, np.ones(X.shape, np.bool_))


def test_the_ratio_of_dropout_is_dropped_on_the_way_up() -> None:
    made = one("Dropout", {"x": X}, 10, ratio=0.3)
    assert len(assert_same(made, {"x": X}, 21, X).graph.node[0].input) == 1


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


def test_identity_of_a_sequence_below_14() -> None:
    feeds = {"x": X}
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("Identity", ["s"], ["t"]),
        helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ]
    assert_same(model(nodes, feeds, 14), feeds, 13, np.concatenate([X, X]))


@pytest.mark.parametrize("target", [13, 9])
@pytest.mark.parametrize("shape", [(0, 0), (0, 0, 5), (0, 3)])
def test_computed_shapes_may_hold_several_zeros(shape: tuple[int, ...], target: int) -> None:
    feeds = {"x": floats(0, 3), "s": int64s(*shape)}
    made = one("Reshape", feeds, 14, ranked=["x"], allowzero=1)
    assert_same(made, feeds, target, np.zeros(shape, np.float32))


@pytest.mark.parametrize("target", [13, 12, 8])
@pytest.mark.parametrize(
    ("before", "shape"), [((0,), (-1,)), ((0, 3), (-1, 3)), ((0, 6), (2, -1, 3)), ((4, 3), (6, -1))]
)
def test_computed_shapes_may_leave_a_size_of_zero_to_be_inferred(
    before: tuple[int, ...], shape: tuple[int, ...], target: int
) -> None:
    feeds = {"x": floats(*before), "s": int64s(*shape)}
    expected = feeds["x"].reshape([math.prod(before) // -math.prod(shape) if size < 0 else size for size in shape])
    assert_same(one("Reshape", feeds, 16, ranked=["x"], allowzero=1), feeds, target, expected)


@pytest.mark.parametrize("data", [np.array([["a", "b"]], object), np.int64([[2**53 + 1, -1]]), np.array([[True]])])
def test_what_is_no_float_is_repeated_by_concatenation_below_6(data: np.ndarray) -> None:
    made = one("Tile", {"x": data}, 13, constants={"r": int64s(2, 3)})
    lowered = converted(made, 5)
    (result,) = ReferenceEvaluator(lowered).run(None, {"x": data})
    np.testing.assert_array_equal(result, np.tile(data, (2, 3)))


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


def test_strings_outside_a_triangle_become_empty() -> None:
    data = np.array([["a", "b"], ["c", "d"]], dtype=object)
    result = converted(one("Trilu", {"x": data}, 14), 13)
    assert run(result, {"x": data})[0].tolist() == [["a", "b"], ["", "d"]]


@pytest.mark.parametrize("target", [13, 9])
def test_a_triangle_of_booleans_is_one_that_onnxruntime_runs(target: int) -> None:
    data = np.ones((3, 4), np.bool_)
    assert_same(one("Trilu", {"x": data}, 14, upper=0), {"x": data}, target, np.tril(data))
