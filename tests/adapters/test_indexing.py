"""GatherElements, GatherND and ScatterElements where the target has none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.models import assert_same, floats, one, operators

X = floats(3, 4, 5)


@pytest.mark.parametrize("given", ["constants", "computed"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements_below_11(axis: int, given: str) -> None:
    indices = np.random.default_rng(0).integers(-3, 3, (3, 4, 5)[:3]).astype(np.int64)[:2, :3, :4]
    feeds = {"x": X, **({"i": indices} if given == "computed" else {})}
    made = one("GatherElements", feeds, 13, constants={} if given == "computed" else {"i": indices}, axis=axis)
    limits = [slice(size) for size in indices.shape]
    limits[axis] = slice(None)
    expected = np.take_along_axis(X[tuple(limits)], indices, axis)
    assert_same(made, feeds, 9, expected)


@pytest.mark.parametrize("given", ["constants", "computed"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_gather_nd_below_11(count: int, given: str) -> None:
    indices = np.array([[[0, 1, 2], [-1, -1, -1]], [[2, 3, 4], [1, 0, 1]]], np.int64)[..., :count]
    feeds = {"x": X, **({"i": indices} if given == "computed" else {})}
    made = one("GatherND", feeds, 13, constants={} if given == "computed" else {"i": indices})
    assert_same(made, feeds, 9, X[tuple(np.moveaxis(indices, -1, 0))])


@pytest.mark.parametrize("given", ["constants", "computed"])
@pytest.mark.parametrize("index", [[1], [1, -2], [1, 2, 3], [-1, 0, -1]])
def test_one_index_gathers_one_part_below_11(index: list[int], given: str) -> None:
    indices = np.array(index, np.int64)
    feeds = {"x": X, **({"i": indices} if given == "computed" else {})}
    made = one("GatherND", feeds, 13, constants={} if given == "computed" else {"i": indices})
    assert_same(made, feeds, 9, X[tuple(index)])


@pytest.mark.parametrize("op_type", ["GatherND", "ScatterND"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_how_many_axes_an_index_names_may_be_known_at_run_time_only(count: int, op_type: str) -> None:
    indices = np.array([[0, 1, 2], [-1, -2, -1]], np.int64)[:, :count]
    places = tuple(np.moveaxis(indices, -1, 0))
    feeds, expected = {"x": X, "i": indices}, X[places]
    if op_type == "ScatterND":
        feeds["u"] = floats(2, *X.shape[count:], seed=1)
        expected = X.copy()
        expected[places] = feeds["u"]
    assert_same(one(op_type, feeds, 13, ranked=["i"]), feeds, 9, expected)


@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("count", [1, 2])
def test_parts_of_nothing_are_gathered_below_11(count: int, ranked: list[str]) -> None:
    feeds = {"x": np.zeros((2, 3, 0), np.float32), "i": np.array([[[0, 1], [1, 2]]])[..., :count]}
    expected = feeds["x"][tuple(np.moveaxis(feeds["i"], -1, 0))]
    assert_same(one("GatherND", feeds, 13, ranked=ranked), feeds, 9, expected)


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("given", ["constants", "computed"])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_scatter_nd_below_11(rank: int, count: int, given: str, target: int) -> None:
    indices = np.array([[[0, 1, 2]], [[-1, -1, -1]]], np.int64)[..., :count]
    indices = indices[0, 0] if rank == 1 else indices[:, 0] if rank == 2 else indices
    updates = floats(*indices.shape[:-1], *X.shape[count:])
    expected = X.copy()
    expected[tuple(np.moveaxis(indices, -1, 0))] = updates
    feeds = {"x": X, **({"i": indices} if given == "computed" else {}), "u": updates}
    held = {} if given == "computed" else {"i": indices}
    made = one("ScatterND", feeds, 13, constants=held, inputs=["x", "i", "u"])
    assert_same(made, feeds, target, expected)


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize(("shape", "count"), [((1, 0), 1), ((0, 3), 0), ((2, 3), 0), ((2, 3), 1)])
def test_rows_without_elements_are_scattered(shape: tuple[int, ...], count: int, target: int) -> None:
    data, indices, updates = floats(*shape), np.zeros((count, 1), np.int64), floats(count, *shape[1:], seed=1)
    expected = data.copy()
    expected[indices[:, 0]] = updates
    made = one("ScatterND", {"x": data, "i": indices, "u": updates}, 14, ranked=["x", "u"])
    made.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "n"
    assert_same(made, {"x": data, "i": indices, "u": updates}, target, expected)


@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_elements_was_scatter(axis: int) -> None:
    indices = np.array([[[0, 1, -1]]], np.int64)
    updates = np.array([[[10, 20, 30]]], np.float32)
    if axis == 0:
        indices, updates = indices.reshape(3, 1, 1), updates.reshape(3, 1, 1)
    expected = X.copy()
    np.put_along_axis(expected[tuple(slice(s) if a != axis % 3 else slice(None) for a, s in enumerate(indices.shape))],
                      indices, updates, axis)  # fmt: skip
    feeds = {"x": X, "i": indices, "u": updates}
    assert "Scatter" in operators(assert_same(one("ScatterElements", feeds, 13, axis=axis), feeds, 9, expected))


def test_scatter_becomes_scatter_elements() -> None:
    feeds = {"x": X, "i": np.array([[[1]]], np.int64), "u": np.array([[[5]]], np.float32)}
    expected = X.copy()
    expected[0, 0, 1] = 5
    made = one("Scatter", feeds, 9, axis=2)
    assert operators(assert_same(made, feeds, 18, expected)) == ["ScatterElements"]


REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("ranked", [[], ["x", "i", "u"]])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_elements_scattered_to_one_place_are_combined(reduction: str, axis: int, ranked: list[str]) -> None:
    data, updates = floats(3, 4), floats(2, 3) * 3
    indices = np.array([[0, 1, 0], [-1, 1, 0]])
    expected = data.copy()
    for at in np.ndindex(indices.shape):
        place = (indices[at], at[1]) if axis == 0 else (at[0], indices[at])
        expected[place] = REDUCTIONS[reduction](expected[place], updates[at])
    feeds = {"x": data, "i": indices, "u": updates}
    # Exporters write "max" and "min" for opset 16 as well, which the checker passes and onnxruntime runs.
    for source, target in ((18, 17), (18, 15), (18, 9), (16, 15), (16, 9)):
        made = one("ScatterElements", feeds, source, ranked=ranked, axis=axis, reduction=reduction)
        assert_same(made, feeds, target, expected)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_rows_scattered_to_one_place_are_combined(reduction: str) -> None:
    data, updates = np.arange(12).reshape(3, 2, 2), np.array([[5, -5], [-7, 7], [3, 3]])
    indices = np.array([[0, 1], [-1, 0], [0, 1]])
    expected = data.copy()
    for place, update in zip(indices, updates, strict=True):
        expected[tuple(place)] = REDUCTIONS[reduction](expected[tuple(place)], update)
    feeds = {"x": data, "i": indices, "u": updates}
    for target in (17, 15, 10):
        assert_same(one("ScatterND", feeds, 18, reduction=reduction), feeds, target, expected)


def test_nothing_that_is_scattered_changes_nothing() -> None:
    feeds = {"x": floats(3), "i": np.zeros(0, np.int64), "u": np.zeros(0, np.float32)}
    for ranked in ([], ["i", "u"]):
        made = one("ScatterElements", feeds, 18, ranked=ranked, reduction="max")
        assert_same(made, feeds, 13, feeds["x"])
