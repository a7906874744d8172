"""Squeeze, Unsqueeze, Slice and Pad along axes that are computed at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.adapters.models import assert_same, floats, int64s, one

RANKED = [[], ["x"], ["x", "a"]]


@pytest.mark.parametrize("ranked", RANKED)
@pytest.mark.parametrize("axes", [[0], [-1], [2, -4]])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_dimensions_are_added_where_axes_say(shape: tuple[int, ...], axes: list[int], ranked: list[str]) -> None:
    feeds = {"x": floats(*shape), "a": int64s(*axes)}
    for target in (12, 9):
        made = one("Unsqueeze", feeds, 13, ranked=ranked)
        assert_same(made, feeds, target, np.expand_dims(feeds["x"], tuple(axes)))


@pytest.mark.parametrize("ranked", RANKED)
def test_a_single_axis_may_be_a_scalar(ranked: list[str]) -> None:
    """The checker takes it, and so does onnxruntime's Unsqueeze."""
    feeds = {"x": floats(2, 3), "a": np.array(1)}
    for target in (12, 9):
        made = one("Unsqueeze", feeds, 13, ranked=ranked)
        assert_same(made, feeds, target, np.expand_dims(feeds["x"], 1))


@pytest.mark.parametrize("ranked", RANKED)
@pytest.mark.parametrize("axes", [[0], [-2], [2, 0]])
@pytest.mark.parametrize("shape", [(1, 2, 1, 3), (1, 0, 1, 3)])
def test_dimensions_of_one_go_where_axes_say(shape: tuple[int, ...], axes: list[int], ranked: list[str]) -> None:
    feeds = {"x": floats(*shape), "a": int64s(*axes)}
    for target in (12, 9):
        made = one("Squeeze", feeds, 13, ranked=ranked)
        assert_same(made, feeds, target, np.squeeze(feeds["x"], tuple(axes)))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_slices_go_along_the_axes_that_come(dtype: Any) -> None:
    bounds = {"s": [1, -3], "e": [3, 2], "a": [-2, 2]}
    feeds = {"x": floats(2, 3, 4), **{name: np.array(value, dtype) for name, value in bounds.items()}}
    for target in (10, 9):
        assert_same(one("Slice", feeds, 13, ranked=["x"]), feeds, target, feeds["x"][:, 1:3, -3:2])


def test_pads_lie_at_the_axes_that_come() -> None:
    feeds = {"x": floats(2, 3, 4), "p": int64s(1, 0, 2, 3), "v": np.array(7, np.float32), "a": int64s(-1, 0)}
    expected = np.pad(feeds["x"], ((0, 3), (0, 0), (1, 2)), constant_values=7)
    for target in (17, 9):
        assert_same(one("Pad", feeds, 18, ranked=["x"]), feeds, target, expected)
