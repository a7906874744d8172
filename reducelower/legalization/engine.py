"""The engine's entry: legalize a model, or raise every reason why it cannot be; all public functions end up here.

A model is tried as it is, and then with the changes to the whole model that may help. For a runtime, the result is
legalized again until nothing changes: a fact about a runtime may apply to a node only after the nodes around it were
rewritten, because only then its rank or its constant is known. Nearly always the second pass changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from google.protobuf.message import DecodeError
from onnx import ModelProto

from reducelower.errors import ConversionError, Refusal, RuleError, UnreadableModelError
from reducelower.files.inline import WORTH_LIFTING, InlineWeights, lift, splice
from reducelower.legalization.composed import Origins, composed, in_terms_of_source
from reducelower.legalization.defects import find_defect
from reducelower.legalization.functions import functions_refused
from reducelower.legalization.run import run, told
from reducelower.legalization.whole import Attempt, Changed
from reducelower.legalization.whole.dead_branches import without_dead_branches
from reducelower.legalization.whole.features import inlined
from reducelower.legalization.whole.sequences import MAKERS, without_sequences
from reducelower.legalization.whole.stale_sizes import without_stale_sizes
from reducelower.legalization.whole.stated_shapes import (
    LOOPS,
    without_shapes_in_loops,
    without_sizes_below_zero,
    without_sizes_that_change,
)
from reducelower.legalization.whole.stored_values import without_constants, without_narrow_integers
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.plan import Plan

__all__ = ["attempt", "explain_failures", "fits", "legal", "name_oldest_fitting"]

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


# Attempts


class _Change(NamedTuple):
    """A change that may help.

    Attributes:
        make: from the last attempt to a changed source; None if that would not help.
        operators: a model without any of these needs no such change; empty if it is about something else.
        is_for_refusals: whether it is made only if something is refused.
    """

    make: Callable[[Attempt, Settings], Changed | None]
    operators: frozenset[str] = frozenset()
    is_for_refusals: bool = False


_CHANGES: Sequence[_Change] = (
    _Change(without_dead_branches, frozenset({"If"})),
    _Change(without_constants, frozenset({"Constant"}), is_for_refusals=True),
    _Change(without_narrow_integers, is_for_refusals=True),
    _Change(without_sequences, MAKERS, is_for_refusals=True),
    _Change(without_sizes_that_change, frozenset({"Loop"})),
    _Change(without_stale_sizes),
    _Change(without_shapes_in_loops, LOOPS),  # this and the next look at a result, so they come last
    _Change(without_sizes_below_zero),
)


def attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> Attempt:
    """Legalize a copy of a model as it is, or else with the changes that may help; the plan's notes name all changes.

    Local functions are inlined, since what their nodes become depends on the calls, unless no node has to be changed.
    The plan is in terms of the model without functions.

    Raises:
        ValueError: the target is invalid.
    """
    if not source.message.functions or functions_refused(source.message):
        return _attempt(source, target, settings, report=report)
    without = inlined(source)
    tried = _attempt(without.document, target, settings, report=report)
    plan = tried.plan
    moves = plan.source_opset != plan.target.opset
    if not (plan.refusals or moves) and tried.made.message.graph == without.document.message.graph:
        with_functions = _attempt(source, target, settings, report=report)
        if not with_functions.plan.refusals:  # they may be of a domain of which nothing may remain
            return with_functions
    plan = replace(plan, notes=(*without.done, *plan.notes))
    return tried._replace(plan=replace(plan, refusals=without.refusals) if without.refusals else plan)


def _attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> Attempt:
    tried = _run(source, target, settings, report=report)
    done: list[str] = []
    inner: set[str] = set()
    operators = source.columns.operators
    for change in _CHANGES:
        if change.operators and operators.isdisjoint(change.operators):
            continue
        if change.is_for_refusals and not tried.plan.refusals:
            continue
        if changed := change.make(tried, settings):
            tried = _run(changed.document, target, settings, report=report)
            done += changed.done
            inner |= changed.inner
    if tried.source is source:
        return tried
    plan = in_terms_of_source(tried.plan, source.message, tried.source.message, inner)
    return Attempt(source, tried.made, replace(plan, fitted=(*done, *plan.fitted), notes=(*done, *plan.notes)))


def _run(source: Document, target: Target, settings: Settings, *, report: bool) -> Attempt:
    model = source.copy()
    plan = run(model, source, target, settings, report=report)
    return Attempt(source, Document(model), plan)


# Failures


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
