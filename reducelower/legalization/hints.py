"""Hints of refusals: the oldest opset version at which a whole model fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reducelower.errors import Refusal, RuleError
from reducelower.legalization.whole.attempts import attempt
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.plan import Plan

__all__ = ["fits", "name_oldest_fitting", "oldest_fitting"]


def fits(source: Document, target: Target, settings: Settings) -> Callable[[int], bool]:
    """A function that says whether the model can be legalized at another opset version, for the same target."""
    bare = source.bare

    def fits_at(opset: int) -> bool:
        if target.runtime is not None and opset not in target.runtime.reads:
            return False
        try:
            return not attempt(bare, replace(target, opset=opset), settings, report=False).plan.refusals
        except RuleError:  # in a rule that the requested conversion did not need
            return False

    return fits_at


def oldest_fitting(source: int, goal: int, fits: Callable[[int], bool]) -> int | None:
    """The oldest opset version above a refused goal at which the model can be legalized; None if there is none.

    This is not monotone: an operator may be missing in a version in between. So every version up to the source's is
    tried.
    """
    return next((opset for opset in range(goal + 1, source + 1) if fits(opset)), None)


def name_oldest_fitting(plan: Plan, fits: Callable[[int], bool]) -> Plan:
    """If the plan refuses a downgrade, the plan with the oldest fitting opset version in every hint."""
    goal = plan.target.opset
    nodes_refused = any(refusal.operator for refusal in plan.refusals)
    if goal is None or goal >= plan.source_opset or not nodes_refused:
        return plan
    oldest = oldest_fitting(plan.source_opset, goal, fits)
    if oldest is None:
        return plan
    own = ", its own," if oldest == plan.source_opset else ""
    sentence = f"opset {oldest}{own} is the oldest at which the whole model fits"
    return replace(plan, refusals=tuple(_with_hint(refusal, oldest, sentence) for refusal in plan.refusals))


def _with_hint(refusal: Refusal, oldest: int, sentence: str) -> Refusal:
    if f"opset {oldest} is" in refusal.hint:
        sentence = "the whole model fits there"
    return replace(refusal, hint=f"{refusal.hint}; {sentence}" if refusal.hint else sentence)
