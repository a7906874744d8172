"""Dropout in training; `cases/shaping.toml` has what is certain."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import converted, one, run


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", [11, 9])
def test_dropout_in_training_keeps_a_share_and_makes_up_for_the_rest(target: int, dtype: type[np.generic]) -> None:
    data = np.full((50, 40), 3, dtype)
    constants = {"r": np.float32(0.25), "t": np.array(True)}
    made = one("Dropout", {"x": data}, 13, outputs=["y", "m"], constants=constants, seed=7)
    found, mask = run(converted(made, target), {"x": data})
    np.testing.assert_array_equal(found, np.where(mask, dtype(4), dtype(0)))
    assert abs(mask.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 2000)
