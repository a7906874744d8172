"""Updates of a cache where the target has no TensorScatter, against the pseudocode of its page."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import converted, floats, one, run

pytestmark = pytest.mark.opset(24)


def _expected(cache: np.ndarray, update: np.ndarray, start: np.ndarray, axis: int, *, circular: bool) -> np.ndarray:
    present = cache.copy()
    for prefix in np.ndindex(cache.shape[:axis]):
        for place in range(update.shape[axis]):
            where = start[prefix[0]] + place
            present[(*prefix, where % cache.shape[axis] if circular else where)] = update[(*prefix, place)]
    return present


@pytest.mark.parametrize("target", [23, 17, 13])
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(("cache", "update", "axis"), [((2, 3, 5, 4), (2, 3, 2, 4), -2), ((2, 4, 3), (2, 3, 3), 1)])
def test_the_update_takes_its_places(
    cache: tuple[int, ...], update: tuple[int, ...], axis: int, mode: str, target: int
) -> None:
    start = np.array([1, 0 if mode == "linear" else 3], np.int64)
    feeds = {"cache": floats(*cache), "update": floats(*update, seed=1), "start": start}
    (result,) = run(converted(one("TensorScatter", feeds, 24, mode=mode, axis=axis), target), feeds)
    expected = _expected(*feeds.values(), axis % len(cache), circular=mode == "circular")
    np.testing.assert_array_equal(result, expected)


def test_without_indices_the_update_comes_first() -> None:
    feeds = {"cache": floats(2, 4, 3), "update": floats(2, 2, 3, seed=1)}
    (result,) = run(converted(one("TensorScatter", feeds, 24), 18), feeds)
    expected = _expected(*feeds.values(), np.zeros(2, np.int64), 1, circular=False)
    np.testing.assert_array_equal(result, expected)
