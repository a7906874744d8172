"""Hints of refusals: the oldest opset version at which a whole model fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reducelower.errors import Refusal, RuleError
from reducelower.legalization.whole.attempts import attempt
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.plan import Plan

__all__ = ["fits", "name_oldest_fitting"]


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


def name_oldest_fitting(plan: Plan, fits: Callable[[int], bool]) -> Plan:
    """If the plan refuses a downgrade, the plan with the oldest fitting opset version in every hint.

    Every version up to the source's is tried, since an operator may be missing in a version in between.
    """
    own, goal = plan.source_opset, plan.target.opset or plan.source_opset
    is_about_nodes = any(refusal.operator for refusal in plan.refusals)
    oldest = next(filter(fits, range(goal + 1, own + 1)), None) if is_about_nodes else None
    if oldest is None:
        return plan
    sentence = f"opset {oldest}{', its own,' if oldest == own else ''} is the oldest at which the whole model fits"
    return replace(plan, refusals=tuple(_with_hint(refusal, oldest, sentence) for refusal in plan.refusals))


def _with_hint(refusal: Refusal, oldest: int, sentence: str) -> Refusal:
    if f"opset {oldest} is" in refusal.hint:
        sentence = "the whole model fits there"
    return replace(refusal, hint=f"{refusal.hint}; {sentence}" if refusal.hint else sentence)
