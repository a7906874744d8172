"""GatherElements, GatherND and ScatterElements where the target has none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.models import assert_same, floats, one, operators

X = floats(3, 4, 5)


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
