"""Add, Div, Pow, Mod, Gemm, Round, IsInf and CumSum where older versions take or have less."""

from __future__ import annotations

import numpy as np
import pytest

import reducelower
from reducelower.verification.running.evaluator import Evaluator
from tests.adapters.models import one, run


@pytest.mark.parametrize("op_type", ["Round", "CumSum"])
def test_zero_keeps_its_sign(op_type: str) -> None:
    data = np.array([-0.0, -0.3, 0.0, 0.3] if op_type == "Round" else [-0.0, -0.0], np.float32)
    made = one(op_type, {"x": data}, 11, constants={} if op_type == "Round" else {"axis": np.array(0, np.int64)})
    older = reducelower.convert_version(made, 9)
    expected = np.round(data) if op_type == "Round" else data
    for (found,) in (Evaluator(older).run(None, {"x": data}), run(older, {"x": data})):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
