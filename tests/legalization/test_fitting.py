"""A refused downgrade names the oldest opset version at which the whole model fits."""

from __future__ import annotations

import pytest

import reducelower
from reducelower import ConversionError, Plan, Refusal, Target
from reducelower.legalization.engine import name_oldest_fitting
from tests.models import model

DILATED = "MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (x)"
IMAGE = "(float[n,4,h,w] x) => (float[a,b,c,d] y)"


def test_every_refusal_names_the_opset_that_suits_all_nodes() -> None:
    last = 'LpPool <kernel_shape = [2, 2], dilations = [2, 2], auto_pad = "SAME_UPPER"> (v)'
    plan = reducelower.check(model(f"{IMAGE} {{ v = {DILATED}  y = {last} }}"), 9)
    assert len(plan.refusals) == 2
    assert all("opset 18" in refusal.hint and "the whole model fits" in refusal.hint for refusal in plan.refusals)


def test_in_place_conversion_names_it_and_leaves_the_model_alone() -> None:
    given = model(f"{IMAGE} {{ y = {DILATED} }}")
    before = given.SerializeToString()
    with pytest.raises(ConversionError, match="opset 10 is the oldest that has it; the whole model fits there"):
        reducelower.convert_version(given, 9, in_place=True)
    assert given.SerializeToString() == before


def test_what_fits_need_not_fit_everywhere_above() -> None:
    plan = Plan(20, Target(9), refusals=(Refusal("graph", "node", "MaxPool", "reason"),))
    (refusal,) = name_oldest_fitting(plan, lambda opset: opset in (11, 20)).refusals
    assert refusal.hint == "opset 11 is the oldest at which the whole model fits"


def test_none_fits_where_an_operator_has_to_go_that_no_rule_replaces() -> None:
    with pytest.raises(ConversionError) as raised:
        reducelower.convert_version(model(f"{IMAGE} {{ v = {DILATED}  y = Sin (v) }}"), 9, without=["Sin"])
    assert not any("whole model" in refusal.hint for refusal in raised.value.refusals)
