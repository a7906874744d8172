"""Where below opset 9, and comparisons of 64-bit integers there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.adapters.models import converted, one, run

SHAPES = [((2, 3), (2, 3), (2, 3)), ((3,), (2, 1), ()), ((2, 0), (2, 1), (1,))]
EXTREMES = np.array([-(2**63), -(2**63) + 1, -1, 0, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1])


def _values(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    if dtype in (object, bool):
        return np.asarray(rng.choice(["a", "b"] if dtype is object else [True, False], shape), dtype)
    if np.dtype(dtype).kind == "f":
        return np.asarray(rng.choice([np.nan, np.inf, -np.inf, 1, np.finfo(dtype).max], shape), dtype)
    info = np.iinfo(dtype)
    return np.asarray(rng.choice(np.array([info.min, info.max, 1], dtype), shape), dtype)


@pytest.mark.parametrize("ranked", ["", "cab"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.int8, bool, object])
def test_values_are_chosen_below_9(dtype: Any, shapes: list[tuple[int, ...]], ranked: str) -> None:
    if ranked and dtype is object:
        pytest.skip("strings of unknown shapes are refused")
    rng = np.random.default_rng(9)
    condition = rng.integers(0, 2, shapes[0]).astype(bool)
    left, right = (_values(rng, dtype, shape) for shape in shapes[1:])
    feeds = {"c": condition, "a": left, "b": right}
    (result,) = run(converted(one("Where", feeds, 9, ranked=ranked), 7), feeds)
    np.testing.assert_array_equal(result, np.where(condition, left, right))


@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_that_no_float_holds_are_compared_below_9(dtype: Any, op_type: str) -> None:
    feeds = {"a": EXTREMES.astype(dtype), "b": EXTREMES.astype(dtype)[:, None]}
    (result,) = run(converted(one(op_type, feeds, 9), 7), feeds)
    compare = np.less if op_type == "Less" else np.greater
    np.testing.assert_array_equal(result, compare(feeds["a"], feeds["b"]))
