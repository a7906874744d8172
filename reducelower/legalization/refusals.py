"""From a model to a legal one, or to every reason why there is none: what all public functions come down to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from onnx import ModelProto

from reducelower.errors import ConversionError, Refusal, UnreadableModelError
from reducelower.legalization.attempts import attempt
from reducelower.legalization.draft import Draft
from reducelower.legalization.driver import Legalizer
from reducelower.legalization.memo import Memo, Memory
from reducelower.legalization.run import ground_of
from reducelower.model.document import Document
from reducelower.model.graph import subgraphs
from reducelower.model.inference import ContradictionError
from reducelower.model.schemas import opset_of, since_version
from reducelower.model.validate import what_is_not_imported, what_is_odd
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.rulebook.rules import Rules

if TYPE_CHECKING:
    from reducelower.runtimes import Runtime

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
        reason = what_is_not_imported(source.bare) or f"the types it states contradict what its nodes yield: {error}"
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

    As long as what was refused at the target's own opset version is, nothing else is looked at.
    """
    trials = source.for_trials()
    refuses = _refusing(trials, target, settings, refusals) if refusals else lambda opset: False

    def is_legal(opset: int) -> bool:
        return not (refuses(opset) or attempt(trials, replace(target, opset=opset), settings, report=False)[1].refusals)

    return is_legal


def _refusing(
    source: Document, target: Target, settings: Settings, refusals: Sequence[Refusal]
) -> Callable[[int], bool]:
    """Whether nodes that were refused, one for each operator, are so at other opset versions; answers in a moment."""
    wanted = {refusal.operator: refusal.node for refusal in refusals if refusal.graph == "graph" and refusal.operator}
    numbered = enumerate(source.bare.graph.node)
    positions = [
        index for index, node in numbered if wanted.get(node.op_type) in (node.name, f"{node.op_type}#{index}")
    ]
    positions = [index for index in positions if not any(True for _ in subgraphs(source.bare.graph.node[index]))]
    draft, opset, rules = Draft.of_document(source), opset_of(source.bare), Rules(settings.rules)
    first = ground_of(draft.model, source, replace(target, opset=opset), settings, searchable=draft.searchable())
    refused_at: list[tuple[int, frozenset[str]]] = []

    def refuses(goal: int) -> bool:
        if any(_are_alike(goal, other, met, target.runtime) for other, met in refused_at):
            return True
        at_goal = replace(target, opset=goal)
        ground = copy(first)
        ground.opset = goal
        legalizer = Legalizer(draft, at_goal, ground, rules, Memo(Memory()))
        try:
            found = legalizer.refuses(opset, positions)
        except ContradictionError:  # a whole attempt gets around it
            return False
        finally:
            ground.let_go()
        if found and target.runtime is not None:
            refused_at.append((goal, legalizer.operators_met))
        return found

    return refuses


def _are_alike(opset: int, other: int, operators: Iterable[str], runtime: Runtime | None) -> bool:
    """Whether all that was looked at in vain at one opset version is the same at another one."""
    return runtime is not None and all(
        since_version(name, opset) == since_version(name, other)
        and runtime.facts_about(name, opset) == runtime.facts_about(name, other)
        for name in operators
    )


def oldest_fitting(source: int, goal: int, fits: Callable[[int], bool]) -> int | None:
    """The oldest opset version above a refused goal at which a model fits; None if that is none up to its own.

    Fitting is not monotone: an operator may change so that a version in between is the one that lacks something. So
    every version is tried, from the goal upward.
    """
    return next((opset for opset in range(goal + 1, source + 1) if fits(opset)), None)


def name_oldest_fitting(plan: Plan, fits: Callable[[int], bool]) -> Plan:
    """The plan with the oldest fitting opset version in the hint of every refusal, if it refuses a downgrade."""
    goal = plan.target.opset
    nodes_refused = any(refusal.operator for refusal in plan.refusals)
    if goal is None or goal >= plan.source_opset or not nodes_refused:
        return plan
    oldest = oldest_fitting(plan.source_opset, goal, fits)
    if oldest is None:
        return plan
    own = ", its own," if oldest == plan.source_opset else ""
    said = f"opset {oldest}{own} is the oldest at which the whole model fits"
    return replace(plan, refusals=tuple(_with_hint(refusal, oldest, said) for refusal in plan.refusals))


def _with_hint(refusal: Refusal, oldest: int, said: str) -> Refusal:
    if f"opset {oldest} is" in refusal.hint:
        said = "the whole model fits there"
    return replace(refusal, hint=f"{refusal.hint}; {said}" if refusal.hint else said)
