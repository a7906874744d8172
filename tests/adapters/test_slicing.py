"""Slice below opset 10: steps and computed bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import reducelower
from tests.adapters.models import assert_same, floats, int64s, one, operators, refusal, run

X = floats(5, 6, 7)
FAR = 2**63 - 1


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [4], [0], None),
        ([1, -3], [FAR, -1], [1, 2], [1, 1]),
        ([0], [FAR], [1], [2]),
        ([-1], [-FAR], [2], [-1]),
        ([5, 1], [0, 6], [2, 0], [-2, 3]),
        ([-100], [100], [-1], [1]),
        ([4], [1], [0], [1]),
    ],
)
@pytest.mark.parametrize("given", ["constants", "dynamic shape", "computed"])
def test_slices_of_numpy(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int] | None, given: str
) -> None:
    expected = X
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(axes), strict=True):
        places = [slice(None)] * 3
        places[axis] = slice(start, None if end in (FAR, -FAR) else end, step)
        expected = expected[tuple(places)]
    bounds = {"starts": int64s(*starts), "ends": int64s(*ends)}
    fixed = {"axes": int64s(*axes), **({} if steps is None else {"steps": int64s(*steps)})}
    feeds = {"x": X, **(bounds if given == "computed" else {})}
    constants = fixed if given == "computed" else {**bounds, **fixed}
    ranked = [] if given == "constants" else ["x"]
    made = one("Slice", feeds, 13, constants=constants, ranked=ranked)
    assert_same(made, feeds, 9, expected)


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    # The specification clamps a start to the first element and the last; numpy takes nothing from before the first.
    [(-9, -FAR, -1, [0]), (-9, FAR, -1, []), (9, 0, -2, [4, 2]), (-9, 9, 3, [0, 3]), (9, FAR, 1, []), (0, -9, -1, [0])],
)
@pytest.mark.parametrize("ranked", [[], ["x"]])
def test_bounds_beyond_the_ends_are_clamped(start: int, end: int, step: int, expected: list[int], ranked: Any) -> None:
    data = np.arange(5, dtype=np.float32)
    constants = {"s": int64s(start), "e": int64s(end), "a": int64s(0), "t": int64s(step)}
    assert_same(one("Slice", {"x": data}, 13, constants=constants, ranked=ranked), {"x": data}, 9, data[expected])


def test_axes_that_a_backward_slice_yields_are_what_runtimes_take() -> None:
    made = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4] x) => (float[a, b] y)
        <int64[3] t = {1, 2, 0}, int64[1] s = {-9}, int64[1] e = {-99}, int64[1] z = {0}, int64[1] k = {-1}>
        { axes = Slice (t, s, e, z, k) y = ReduceSum <keepdims = 0> (x, axes) }
        """
    )
    data = floats(2, 3, 4)
    (result,) = run(reducelower.convert_version(made, 11), {"x": data})
    np.testing.assert_allclose(result, data.sum(axis=1), rtol=1e-6)


def test_constant_bounds_of_steps_of_one_become_attributes() -> None:
    made = one("Slice", {"x": X}, 13, constants={"s": int64s(1), "e": int64s(3), "a": int64s(-1), "t": int64s(1)})
    result = assert_same(made, {"x": X}, 9, X[..., 1:3])
    assert operators(result) == ["Slice"]
    assert not result.graph.initializer


def test_steps_computed_at_run_time_are_refused_below_10() -> None:
    feeds = {"x": X, "s": int64s(1), "e": int64s(3), "a": int64s(0), "t": int64s(1)}
    assert "its steps are computed at run time" in refusal(one("Slice", feeds, 13), 9)
