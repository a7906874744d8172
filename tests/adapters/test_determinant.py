"""Determinants below opset 11."""

from __future__ import annotations

import numpy as np
import pytest

import reducelower
from tests.adapters.models import assert_same, converted, one, run

_RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_a_determinant_is_the_product_of_pivots(size: int, target: int) -> None:
    data = _RANDOM.normal(size=(4, 2, size, size)).astype(np.float32)
    data[0, 0] = data[0, 0, ::-1]
    made = one("Det", {"x": data}, 11)
    (found,) = run(converted(made, target), {"x": data})
    np.testing.assert_allclose(found, np.linalg.det(data.astype(np.float64)), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("target", [10, 9])
def test_determinants_that_are_known_exactly(target: int) -> None:
    """A leading zero, rows exchanged, a singular matrix, zeros, and one where the first row is a poor pivot."""
    matrices = [
        ([[0, 2, 0], [1, 0, 0], [0, 0, 4]], -8),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 1),
        ([[1, 2, 4], [2, 4, 8], [0, 1, 3]], 0),
        (np.zeros((3, 3)), 0),
        ([[2.0**-40, 1, 0], [1, 1, 0], [0, 0, 1]], -1),
    ]
    data = np.array([matrix for matrix, _ in matrices], np.float32)
    assert_same(
        one("Det", {"x": data}, 22), {"x": data}, target, np.array([value for _, value in matrices], np.float32)
    )


def test_matrices_of_unknown_size_are_refused() -> None:
    made = one("Det", {"x": np.eye(2, dtype=np.float32)}, 11, ranked=["x"])
    with pytest.raises(reducelower.ConversionError, match="the size of its matrices is not known"):
        reducelower.convert_version(made, 9)


def test_large_matrices_are_refused() -> None:
    made = one("Det", {"x": np.eye(300, dtype=np.float32)}, 11)
    with pytest.raises(reducelower.ConversionError, match="its matrices have 300 rows, of at most 256"):
        reducelower.convert_version(made, 9)
