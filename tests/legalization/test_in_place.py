"""A model changed in place, and one that is only looked at: both come to what a new model comes to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx import ModelProto, parser

import reducelower
from tests.model.weighty import beside, four_bits, looked_up


def stale_type() -> ModelProto:
    """A stated shape that is not what the node yields."""
    return parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[2,1] y) <float[2,5] t, int64[1] one = {1}>
        { t = Relu (x)  y = ReduceMax (t, one) }"""
    )


@pytest.mark.parametrize(
    ("case", "target"),
    [(looked_up, 11), (four_bits, 17), (stale_type, 13), (beside, 13), (beside, 9), (beside, 21)],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_all_three_come_to_the_same(case: Callable[[], ModelProto], target: int) -> None:
    model = case()
    made = reducelower.legalize(model, reducelower.Target(target), rules="stable")
    plan = made.plan
    looked_at = reducelower.check(model, target, rules="stable")
    assert (looked_at.sites, looked_at.ir_version, looked_at.notes) == (plan.sites, plan.ir_version, plan.notes)
    assert model == case()
    assert reducelower.convert_version(model, target, rules="stable", in_place=True) is model
    assert model == made.model
