"""From a model to a legal one, or to every reason why there is none: what all public functions come down to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from google.protobuf.message import DecodeError
from onnx import ModelProto

from reducelower.errors import ConversionError, Refusal, UnreadableModelError
from reducelower.legalization.oldest_fitting import name_oldest_fitting
from reducelower.legalization.run import attempt, refusing
from reducelower.model.document import Document
from reducelower.model.inference import ContradictionError
from reducelower.model.validate import what_is_odd
from reducelower.options import Settings, Target
from reducelower.plan import Plan

__all__ = ["fits", "legal", "refused", "suspecting"]


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
        raise ConversionError([Refusal("graph", "", "", reason, "mend it first, with reducelower.repair")]) from error
    except Exception as error:
        reason = what_is_odd(_readable(source))
        if not reason:
            raise
        raise ConversionError([Refusal("graph", "", "", reason, "the model is not valid")]) from error


def _readable(source: Document) -> ModelProto:
    try:
        return source.message
    except DecodeError:
        raise UnreadableModelError("these bytes are no ONNX model, or are damaged; export the model again") from None


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
