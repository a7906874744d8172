"""The engine's entry: legalize a model, or raise every reason why it cannot be; all public functions end up here.

For a runtime, the result is legalized again until nothing changes: a fact about a runtime may apply to a node only
after the nodes around it were rewritten, because only then its rank or its constant is known. Nearly always the second
pass changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from google.protobuf.message import DecodeError
from onnx import ModelProto

from reducelower.errors import ConversionError, Refusal, UnreadableModelError
from reducelower.files.inline import WORTH_LIFTING, InlineWeights, lift, splice
from reducelower.legalization.composed import Origins, composed
from reducelower.legalization.defects import find_defect
from reducelower.legalization.hints import fits, name_oldest_fitting
from reducelower.legalization.run import told
from reducelower.legalization.whole.attempts import attempt
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.plan import Plan

__all__ = ["explain_failures", "legal"]

_MOST_PASSES = 3


def legal(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Document, Plan]:
    """The legal model and the plan.

    Raises:
        ConversionError: something cannot be legalized; it has every reason.
        UnreadableModelError: the bytes are not a model.
        ValueError: the target is invalid.
    """
    data = source.bytes_at_hand
    if data is not None and len(data) >= WORTH_LIFTING and (light := _without_weights(data, target, settings, report)):
        return light
    legalized = attempt if target.runtime is None else _until_settled
    *_, made, plan = legalized(source, target, settings, report=report)
    if plan.refusals:
        raise ConversionError(name_oldest_fitting(plan, fits(source, target, settings)).refusals)
    return made, plan


def _without_weights(data: bytes, target: Target, settings: Settings, report: bool) -> tuple[Document, Plan] | None:
    """The same, made without parsing and writing the large weights of bytes; None if there are none, or if it fails."""
    weights = InlineWeights(data)
    light = lift(weights)
    if light is None:
        return None
    try:
        made, plan = legal(Document(data=light), target, settings, report=report)
    except ConversionError:  # a change of the whole model may need the weights
        return None
    return Document(data=weights.joined(splice(made.data, weights))), plan


def _until_settled(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Document, Plan]:
    """As `attempt`, and then again on the result, which must not be used if the plan has refusals.

    If a further pass refuses a node, the refusal names the source node that it replaced.

    Raises:
        ValueError: the target is invalid.
    """
    _, made, plan = attempt(source, target, settings, report=report)
    if plan.refusals:
        return made, plan
    for _ in range(_MOST_PASSES):
        _, result, further = attempt(Document(made.message), plan.target, settings, report=report)
        if further.refusals and not report:
            return _until_settled(source, target, settings, report=True)  # sites say which node it replaced
        if further.refusals:
            origins = Origins(source.message, made.message, plan.sites)
            return made, replace(plan, sites=(), refusals=tuple(dict.fromkeys(map(origins.refusal, further.refusals))))
        if result.message == made.message:
            break
        plan = composed(plan, further, source.message, made.message, result.message)
        # What stayed in the first pass may have a form now.
        outdated, unmended = told(plan.unmended), tuple(dict.fromkeys((*plan.caveats, *further.unmended)))
        notes = [note for note in plan.notes if note not in outdated]
        notes += [note for note in told(unmended) if note not in notes]
        plan = replace(plan, notes=tuple(notes), unmended=unmended, caveats=(*plan.caveats, *further.caveats))
        made = result
    return made, plan


@contextmanager
def explain_failures(source: Document) -> Iterator[None]:
    """Turn errors that an invalid model causes into a refusal that says what is wrong with it."""
    try:
        yield
    except ConversionError:
        raise
    except Exception as error:
        reason = find_defect(_readable(source)) or source.objection
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
