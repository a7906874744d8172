"""What opsets 8 and 9 brought, where the target has it not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.numpy_helper import from_array

from tests.adapters.models import assert_same, floats, one

TARGETS = (8, 7)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [[2, 3], [4], [0, 2], []])
@pytest.mark.parametrize("value", [np.array([1.5], np.float32), np.array([7]), np.array([True])])
def test_constant_of_shape(value: np.ndarray, sizes: list[int], target: int) -> None:
    feeds = {"x": np.array(sizes, np.int64)}
    assert_same(one("ConstantOfShape", feeds, 9, value=from_array(value)), feeds, target, np.full(sizes, value[0]))


@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("sizes", [[2, 3], [1], [4, 2, 1], [0, 1, 3], [2, 1, 1]])
def test_expand_below_8(sizes: list[int], ranked: list[str]) -> None:
    for data in (floats(2, 1), np.arange(3).reshape(1, 3), np.array([[True]])):
        feeds = {"x": data, "s": np.array(sizes, np.int64)}
        try:
            expected = data * np.ones(sizes, data.dtype)
        except ValueError:
            continue
        assert_same(one("Expand", feeds, 13, ranked=ranked), feeds, 7, expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 1, 4), (0, 3), (3, 0)])
def test_non_zero(shape: tuple[int, ...], target: int) -> None:
    data = np.random.default_rng(1).integers(-1, 2, shape)
    for given in (data, data.astype(np.float32), data > 0):
        feeds = {"x": given}
        assert_same(one("NonZero", feeds, 13, ranked=["x"]), feeds, target, np.stack(np.nonzero(given)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(axis: int | None, target: int) -> None:
    data, condition = floats(3, 4), np.array([False, True, True])
    feeds = {"x": data, "c": condition}
    given = {} if axis is None else {"axis": axis}
    assert_same(one("Compress", feeds, 11, **given), feeds, target, np.compress(condition, data, axis))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int, target: int) -> None:
    indices, values = np.array([[0, -1, 5], [2, 1, -4]]), np.array([-np.inf, 3.0], np.float32)
    feeds = {"i": indices, "d": np.array([4]), "v": values}
    expected = np.moveaxis(
        values[(indices[..., None] % 4 == np.arange(4)) & (np.abs(indices[..., None]) < 5) * 1], -1, axis
    )
    assert_same(one("OneHot", feeds, 11, axis=axis), feeds, target, expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_is_nan(kind: type, target: int) -> None:
    data = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, 1.0, -3.0], kind)
    feeds = {"x": data}
    assert_same(one("IsNaN", feeds, 13), feeds, target, np.isnan(data))


@pytest.mark.parametrize("target", TARGETS)
def test_range(target: int) -> None:
    for start, limit, delta in ((0, 5, 1), (7, -3, -2), (3, 3, 1), (5, 0, 1)):
        feeds = {"a": np.array(start), "b": np.array(limit), "c": np.array(delta)}
        assert_same(one("Range", feeds, 11), feeds, target, np.arange(start, limit, delta))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("first", [0, 1, -2, 9])
@pytest.mark.parametrize(("given", "stated"), [(np.float32, None), (np.float32, np.int64), (np.int32, np.bool_)])
def test_eye_like(given: type, stated: type | None, first: int, ranked: list[str], target: int) -> None:
    dtype = {} if stated is None else {"dtype": helper.np_dtype_to_tensor_dtype(np.dtype(stated))}
    for shape in ((3, 4), (4, 2), (0, 2)):
        feeds = {"x": np.zeros(shape, given)}
        expected = np.eye(*shape, k=first, dtype=stated or given)
        assert_same(one("EyeLike", feeds, 9, ranked=ranked, k=first, **dtype), feeds, target, expected)
