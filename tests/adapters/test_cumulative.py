"""CumSum and CumProd where the target has none: empty data, and axes known at run time only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.adapters.models import assert_same, converted, one, run

OPERATORS = {"CumSum": (14, 10, np.cumsum), "CumProd": (26, 25, np.cumprod)}
Accumulate = Callable[..., np.ndarray]


def _expected(data: np.ndarray, axis: int, accumulate: Accumulate, *, exclusive: int, reverse: int) -> np.ndarray:
    turned = np.flip(data, axis) if reverse else data
    result = accumulate(turned, axis)
    if exclusive:
        first = np.full_like(np.take(data, [0], axis), 0 if accumulate is np.cumsum else 1)
        result = np.concatenate([first, np.delete(result, -1, axis)], axis)
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_what_has_no_elements_stays_so(shape: tuple[int, ...], ranked: list[str]) -> None:
    nothing = np.zeros(shape, np.float32)
    made = one("CumSum", {"x": nothing}, 14, constants={"axis": np.int64(0)}, ranked=ranked)
    assert_same(made, {"x": nothing}, 10, nothing)


@pytest.mark.parametrize("shape", [(4, 3, 1, 0), (0, 2)])
def test_what_has_no_elements_stays_so_along_an_axis_known_at_run_time_only(shape: tuple[int, ...]) -> None:
    feeds = {"x": np.zeros(shape), "axis": np.array(1, np.int32)}
    lowered = assert_same(one("CumSum", feeds, 17), feeds, 10, np.cumsum(feeds["x"], 1))
    assert [node.op_type for node in lowered.graph.node] == ["Identity"]


def test_what_may_be_empty_along_another_axis_is_not_scanned() -> None:
    """Onnxruntime dies of a Scan over elements of no size, however many there are."""
    made = one("CumSum", {"x": np.ones((2, 3), np.float32)}, 14, constants={"axis": np.int64(0)})
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "n"
    (result,) = run(converted(made, 10), {"x": np.zeros((2, 0), np.float32)})
    assert result.shape == (2, 0)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_axes_computed_at_run_time(axis: int, reverse: int, exclusive: int) -> None:
    data = np.arange(1, 25, dtype=np.float64).reshape(2, 3, 4)
    feeds = {"x": data, "axis": np.array(axis, np.int64)}
    made = one("CumSum", feeds, 14, reverse=reverse, exclusive=exclusive)
    expected = _expected(data, axis, np.cumsum, exclusive=exclusive, reverse=reverse)
    assert_same(made, feeds, 10, expected)


@pytest.mark.opset(26)
def test_products_along_axes_computed_at_run_time() -> None:
    data = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for axis in (0, 1):
        feeds = {"x": data, "axis": np.array(axis, np.int64)}
        (result,) = run(converted(one("CumProd", feeds, 26, ranked=[]), 25), feeds)
        np.testing.assert_array_equal(result, np.cumprod(data, axis))


def test_a_vector_has_one_axis_to_go_along() -> None:
    feeds = {"x": np.float32([1, 2, 4]), "axis": np.array(-1, np.int64)}
    lowered = converted(one("CumSum", feeds, 14), 10)
    assert "If" not in [node.op_type for node in lowered.graph.node]
    (result,) = run(lowered, feeds)
    np.testing.assert_array_equal(result, [1, 3, 7])
