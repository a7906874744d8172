"""Dropout, Cast and Reshape where more than numbers is asked; `cases/shaping.toml` has the others."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker, helper

import reducelower
from tests.adapters.models import converted, floats, int64s, one, operators, run

X = floats(2, 3, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", [11, 9])
def test_dropout_in_training_keeps_a_share_and_makes_up_for_the_rest(target: int, dtype: type[np.generic]) -> None:
    data = np.full((50, 40), 3, dtype)
    constants = {"r": np.float32(0.25), "t": np.array(True)}
    made = one("Dropout", {"x": data}, 13, outputs=["y", "m"], constants=constants, seed=7)
    found, mask = run(converted(made, target), {"x": data})
    np.testing.assert_array_equal(found, np.where(mask, dtype(4), dtype(0)))
    assert abs(mask.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 2000)


def test_integers_that_no_constant_may_hold_below_9_are_cast_from_doubles() -> None:
    made = one("Reshape", {"x": X}, 14, constants={"s": int64s(4, 6)}, allowzero=1)
    del made.graph.initializer[:]
    made.graph.node.insert(0, helper.make_node("Constant", [], ["s"], value_ints=[4, 6]))
    made.ir_version = 3
    lowered = converted(made, 8)
    assert lowered.ir_version == 4  # an initializer holds them unless the IR version is kept
    kept = reducelower.convert_version(made, 8, ir_version="keep")
    checker.check_model(kept, full_check=True)
    assert operators(kept) == ["Constant", "Cast", "Reshape"]
    np.testing.assert_array_equal(run(kept, {"x": X})[0], X.reshape(4, 6))
