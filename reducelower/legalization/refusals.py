"""From a model to a legal one, or to every reason why there is none: what all public functions come down to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from google.protobuf.message import DecodeError
from onnx import ModelProto

from reducelower.errors import ConversionError, Refusal, UnreadableModelError
from reducelower.legalization.run import attempt, refusing
from reducelower.model.document import Document
from reducelower.model.inference import ContradictionError
from reducelower.model.validate import what_is_odd
from reducelower.options import Settings, Target
from reducelower.plan import Plan

__all__ = ["fits", "legal", "name_oldest_fitting", "oldest_fitting", "refused", "suspecting"]


def legal(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Document, Plan]:
    """A legal model, and the plan.

    Raises:
        ConversionError: something cannot be made legal; it holds every reason.
        UnreadableModelError: the bytes are no model.
        ValueError: the target makes no sense.
    """
    with suspecting(source):
        draft, plan = attempt(source, target, settings, report=report)
        if plan.refusals:
            raise refused(plan, source, target, settings)
        return draft.document(), plan


def refused(plan: Plan, source: Document, target: Target, settings: Settings) -> ConversionError:
    """The error that holds the refusals of a plan, with the opset version at which they would vanish."""
    return ConversionError(name_oldest_fitting(plan, fits(source, target, settings, plan.refusals)).refusals)


@contextmanager
def suspecting(source: Document) -> Iterator[None]:
    """Turn the errors that an invalid model causes into a refusal that says what is wrong with it."""
    try:
        yield
    except ConversionError:
        raise
    except ContradictionError as error:
        reason = f"the types it states contradict what its nodes yield: {error}"
        raise ConversionError([Refusal("graph", "", "", reason, "repair it first, with reducelower.repair")]) from error
    except Exception as error:
        reason = what_is_odd(_readable(source))
        if not reason:
            raise
        raise ConversionError([Refusal("graph", "", "", reason, "the model is not valid")]) from error


def _readable(source: Document) -> ModelProto:
    try:
        return source.message
    except DecodeError:
        raise UnreadableModelError(
            "these bytes are not an ONNX model, or are damaged; export the model again"
        ) from None


def fits(
    source: Document, target: Target, settings: Settings, refusals: Sequence[Refusal] = ()
) -> Callable[[int], bool]:
    """Whether a model can be made legal for the same target at another opset version.

    Args:
        source: the model.
        target: where it is going.
        settings: the other settings of the run.
        refusals: what was refused at the target's own opset version; as long as that is, nothing else is looked at.
    """
    trials = source.for_trials()
    refuses = refusing(trials, target, settings, refusals) if refusals else lambda opset: False

    def is_legal(opset: int) -> bool:
        return not (refuses(opset) or attempt(trials, replace(target, opset=opset), settings, report=False)[1].refusals)

    return is_legal


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
