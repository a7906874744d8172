"""Add, Div, Pow, Mod, Gemm, Round, IsInf and CumSum where older versions take or have less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reducelower
from reducelower.verification.running.evaluator import Evaluator
from tests.adapters.models import assert_same, floats, int64s, one, operators, refusal, run

SMALL = (np.int8, np.uint8, np.int16, np.uint16)


@pytest.mark.parametrize("target", [13, 9])
@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul"])
def test_small_integers_wrap_as_they_do_in_numpy(op_type: str, dtype: Any, target: int) -> None:
    limits = np.iinfo(dtype)
    feeds = {
        "a": np.array([limits.max, limits.min, limits.max, 7, limits.min], dtype),
        "b": np.array([limits.max, limits.max, 1, 3, 1], dtype),
    }
    compute = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op_type]
    assert_same(one(op_type, feeds, 14), feeds, target, compute(feeds["a"], feeds["b"]))


@pytest.mark.parametrize("dtype", SMALL)
def test_small_integers_divide_toward_zero(dtype: Any) -> None:
    feeds = {"a": np.array([7, 100, np.iinfo(dtype).min], dtype), "b": np.array([2, 3, 5], dtype)}
    expected = np.trunc(feeds["a"].astype(np.float64) / feeds["b"]).astype(dtype)
    assert_same(one("Div", feeds, 14), feeds, 9, expected)


@pytest.mark.parametrize("exponent", [np.int64(2), np.int32(3), np.float64(2), np.array([2], np.int64)])
def test_pow_of_a_constant_of_another_type(exponent: Any) -> None:
    data = floats(5)
    made = one("Pow", {"x": data}, 13, constants={"e": np.asarray(exponent)})
    assert operators(assert_same(made, {"x": data}, 11, data ** float(np.asarray(exponent).reshape(-1)[0]))) == ["Pow"]


def test_pow_of_computed_exponents_of_another_type() -> None:
    feeds = {"x": np.abs(floats(5)), "e": np.array([1, 2, 3, 4, 5], np.int32)}
    assert_same(one("Pow", feeds, 13), feeds, 11, feeds["x"] ** feeds["e"].astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_small_powers_of_integers_are_products(dtype: Any) -> None:
    data = np.array([-3, 0, 2, 11], dtype)
    made = one("Pow", {"x": data}, 13, constants={"e": np.array(3, dtype)})
    assert operators(assert_same(made, {"x": data}, 9, data**3)) == ["Mul", "Mul"]


def test_powers_of_64_bit_integers_computed_at_run_time_are_refused() -> None:
    feeds = {"x": int64s(2, 3), "e": int64s(3, 4)}
    assert "64-bit integers" in refusal(one("Pow", feeds, 13), 11)


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_below_10(fmod: int) -> None:
    feeds = {"a": int64s(-7, 7, -7, 7, 6, -6, 0), "b": int64s(3, -3, -3, 3, 3, 3, -2)}
    expected = (np.fmod if fmod else np.mod)(feeds["a"], feeds["b"])
    assert_same(one("Mod", feeds, 13, fmod=fmod), feeds, 9, expected)


def test_gemm_without_c_below_11() -> None:
    feeds = {"a": floats(2, 3), "b": floats(3, 4, seed=1)}
    assert_same(one("Gemm", feeds, 13), feeds, 9, feeds["a"] @ feeds["b"])


def test_round_below_11() -> None:
    data = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.3, -0.7, 1e10, np.inf, -np.inf, np.nan, 8388609.0], np.float32)
    assert_same(one("Round", {"x": data}, 11), {"x": data}, 9, np.round(data))


@pytest.mark.parametrize(("positive", "negative"), [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_is_inf_below_10(positive: int, negative: int) -> None:
    data = np.array([np.inf, -np.inf, np.nan, 3e38, 0], np.float32)
    made = one("IsInf", {"x": data}, 10, detect_positive=positive, detect_negative=negative)
    expected = (np.isposinf(data) & bool(positive)) | (np.isneginf(data) & bool(negative))
    assert_same(made, {"x": data}, 9, expected)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_cum_sum_below_11(exclusive: int, reverse: int, axis: int) -> None:
    data = np.array([[1, 2, 3, 4], [np.inf, 1, 2, 3]], np.float32)
    made = one("CumSum", {"x": data}, 14, constants={"a": np.array(axis)}, exclusive=exclusive, reverse=reverse)
    turned = np.flip(data, axis) if reverse else data
    summed = np.cumsum(turned, axis)
    if exclusive:
        summed = np.roll(summed, 1, axis)
        np.moveaxis(summed, axis, 0)[0] = 0
    assert_same(made, {"x": data}, 9, np.flip(summed, axis) if reverse else summed)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64])
@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 5, 1), (5, -4, -3), (2, 2, 1), (5, 1, 1), (1, 8, 3)])
def test_range_below_11(start: int, limit: int, delta: int, dtype: Any) -> None:
    feeds = {name: np.array(value, dtype) for name, value in (("s", start), ("l", limit), ("d", delta))}
    assert_same(one("Range", feeds, 11), feeds, 9, np.arange(start, limit, delta, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("target", [13, 11, 9])
@pytest.mark.parametrize(("upper", "k"), [(1, None), (0, None), (1, 1), (0, -1), (1, -2), (0, 9)])
def test_trilu_below_14(upper: int, k: int | None, target: int, dtype: Any) -> None:
    data = (floats(2, 3, 4) * 9).astype(dtype)
    constants = {} if k is None else {"k": np.array(k, np.int64)}
    made = one("Trilu", {"x": data}, 14, constants=constants, upper=upper)
    assert_same(made, {"x": data}, target, (np.triu if upper else np.tril)(data, k or 0))


@pytest.mark.parametrize("op_type", ["Round", "CumSum"])
def test_zero_keeps_its_sign(op_type: str) -> None:
    data = np.array([-0.0, -0.3, 0.0, 0.3] if op_type == "Round" else [-0.0, -0.0], np.float32)
    made = one(op_type, {"x": data}, 11, constants={} if op_type == "Round" else {"axis": np.array(0, np.int64)})
    older = reducelower.convert_version(made, 9)
    expected = np.round(data) if op_type == "Round" else data
    for (found,) in (Evaluator(older).run(None, {"x": data}), run(older, {"x": data})):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
