from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from reducelower.numerics.measure import measure, ulp_distance
from reducelower.numerics.tolerance import DEFAULT_TOLERANCES, EXACT, Tolerance

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbouring_floats_are_one_ulp_apart(dtype: type) -> None:
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    ones = np.ones(3, dtype)
    above = (ones.view(bits) + bits(1)).view(dtype)
    assert ulp_distance(ones, above).tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_ulp_distance_counts_across_zero(dtype: type) -> None:
    smallest = np.array([ml_dtypes.finfo(dtype).smallest_subnormal], dtype)
    assert ulp_distance(-smallest, smallest).tolist() == [2]


def test_both_zeros_are_one_value() -> None:
    assert not measure(np.array([0.0]), np.array([-0.0]), EXACT).mismatch


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_must_stand_at_the_same_positions(dtype: type, special: float) -> None:
    before = np.array([1.0, special], dtype)
    after = np.array([special, 1.0], dtype)
    assert not measure(before, before, EXACT).mismatch
    assert "different positions" in measure(before, after, EXACT).mismatch


def test_largest_double_and_infinity_are_told_apart() -> None:
    assert measure(np.array([np.finfo(np.float64).max]), np.array([np.inf]), Tolerance(64, 1.0)).mismatch


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_differ_in_their_last_digit_beyond_what_a_double_holds(dtype: type) -> None:
    largest = np.array([np.iinfo(dtype).max], dtype)
    found = measure(largest, largest - dtype(1), EXACT)
    assert found.mismatch
    assert found.max_absolute == 1


def test_a_large_element_does_not_excuse_another() -> None:
    before = np.array([-1e9, 1.0], np.float32)
    after = np.array([-1e9, 2.0], np.float32)
    assert measure(before, after, DEFAULT_TOLERANCES["float"]).mismatch


def test_across_runtimes_the_bound_is_that_of_the_tensor() -> None:
    before = np.array([1e3, 1e-5], np.float32)
    after = np.array([1e3, 2e-5], np.float32)
    assert not measure(before, after, DEFAULT_TOLERANCES["float"], by_tensor=True).mismatch


def test_an_allowance_belongs_to_its_element() -> None:
    before, after = np.array([1.0, 2.0], np.float32), np.array([1.5, 2.5], np.float32)
    assert not measure(before, after, EXACT, allowance=np.array([0.5, 0.5])).mismatch
    assert measure(before, after, EXACT, allowance=np.array([0.5, 0.1])).outside == 1


@pytest.mark.parametrize("lost", [np.inf, np.nan])
def test_what_was_finite_loses_range(lost: float) -> None:
    before = np.array([1.0, 3e38], np.float32)
    assert measure(before, np.array([1.0, lost], np.float32), EXACT).loses_range
    assert not measure(before, np.array([2.0, lost], np.float32), EXACT).loses_range
    assert not measure(np.array([1.0, lost], np.float32), before, EXACT).loses_range


def test_the_same_error_alone_does_not_pass() -> None:
    assert measure(np.array([1e-5], np.float32), np.array([2e-5], np.float32), DEFAULT_TOLERANCES["float"]).mismatch


def test_the_sentence_gives_count_place_and_values() -> None:
    before, after = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    after[1, 2] = 0.5
    text = measure(before, after, DEFAULT_TOLERANCES["float"]).mismatch
    assert "1 of 6 values" in text
    assert "[1, 2]" in text
    assert "0.5" in text


def test_distances_are_those_of_finite_pairs() -> None:
    before = np.array([1.0, 1.0, np.inf, np.nan], np.float32)
    after = np.array([1.0, np.nextafter(np.float32(1), np.float32(2)), np.inf, np.nan], np.float32)
    found = measure(before, after, DEFAULT_TOLERANCES["float"])
    assert found.max_ulp == 1
    assert found.max_absolute == pytest.approx(2.0**-23)


@pytest.mark.parametrize("kind", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn])
def test_narrow_floats_are_compared_exactly(kind: type) -> None:
    before, after = np.array([1.0, 2.0]).astype(kind), np.array([1.0, 3.0]).astype(kind)
    assert not measure(before, before, EXACT).mismatch
    assert measure(before, after, EXACT).mismatch


def test_strings_and_bytes_of_the_same_text_are_equal() -> None:
    before = np.array(["a", "ü"], dtype=object)
    assert not measure(before, np.array(["a", "ü".encode()], dtype=object), EXACT).mismatch
    assert "'ü' before" in measure(before, np.array(["a", "u"], dtype=object), EXACT).mismatch


def test_complex_numbers_are_compared_by_their_parts() -> None:
    before = np.array([1 + 2j], np.complex64)
    assert not measure(before, before, DEFAULT_TOLERANCES["complex64"]).mismatch
    assert measure(before, np.array([1 + 3j], np.complex64), DEFAULT_TOLERANCES["complex64"]).mismatch


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_rank_zero_and_empty_tensors_are_measured(dtype: type, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    assert not measure(array, array, EXACT).mismatch


def test_every_default_tolerance_has_a_reason() -> None:
    assert all(tolerance.reason for tolerance in DEFAULT_TOLERANCES.values())
