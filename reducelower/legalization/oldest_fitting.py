"""The oldest opset version at which a refused model would fit as a whole, said in every refusal of a downgrade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reducelower.errors import Refusal
from reducelower.plan import Plan

__all__ = ["name_oldest_fitting", "oldest_fitting"]


def oldest_fitting(source: int, goal: int, fits: Callable[[int], bool]) -> int | None:
    """The oldest opset version above a refused goal at which a model fits; None if that is none up to its own.

    Fitting is not monotone: an operator may change so that a version in between is the one that lacks something. So
    every version is tried, from the goal upward.

    Args:
        source: opset version of the model.
        goal: opset version that it was refused for.
        fits: whether the model can be made legal for an opset version.
    """
    return next((opset for opset in range(goal + 1, source + 1) if fits(opset)), None)


def name_oldest_fitting(plan: Plan, fits: Callable[[int], bool]) -> Plan:
    """The plan with the oldest fitting opset version in the hint of every refusal, if it refuses a downgrade.

    Args:
        plan: the result of a run.
        fits: whether the same model can be made legal for another opset version.
    """
    goal = plan.target.opset
    nodes_refused = any(refusal.operator for refusal in plan.refusals)
    if goal is None or goal >= plan.source_opset or not nodes_refused:
        return plan
    oldest = oldest_fitting(plan.source_opset, goal, fits)
    if oldest is None:
        return plan
    if oldest == plan.source_opset:
        said = f"opset {oldest}, its own, is the oldest at which the whole model fits"
    else:
        said = f"opset {oldest} is the oldest at which the whole model fits"
    return replace(plan, refusals=tuple(_with_hint(refusal, said) for refusal in plan.refusals))


def _with_hint(refusal: Refusal, said: str) -> Refusal:
    return replace(refusal, hint=f"{refusal.hint}; {said}" if refusal.hint else said)
