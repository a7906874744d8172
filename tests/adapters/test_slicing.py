"""Slice below opset 10: steps and computed bounds."""

from __future__ import annotations

import pytest

from tests.adapters.models import assert_same, floats, int64s, one, operators, refusal

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


def test_constant_bounds_of_steps_of_one_become_attributes() -> None:
    made = one("Slice", {"x": X}, 13, constants={"s": int64s(1), "e": int64s(3), "a": int64s(-1), "t": int64s(1)})
    result = assert_same(made, {"x": X}, 9, X[..., 1:3])
    assert operators(result) == ["Slice"]
    assert not result.graph.initializer


def test_steps_computed_at_run_time_are_refused_below_10() -> None:
    feeds = {"x": X, "s": int64s(1), "e": int64s(3), "a": int64s(0), "t": int64s(1)}
    assert "its steps are computed at run time" in refusal(one("Slice", feeds, 13), 9)
