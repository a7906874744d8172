"""The public functions: convert a model, expand its composite reductions, check what would change.

Each function takes a model in any form that callers have (`given`), and returns a model of the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Unpack

from reducelower.arguments import check_book, check_options, check_version, name_set, value_text
from reducelower.errors import ConversionError
from reducelower.given import AnyModel, of_any_model, take
from reducelower.legalization.engine import attempt, explain_failures, fits, legal, name_oldest_fitting
from reducelower.legalization.whole import Changed
from reducelower.legalization.whole.features import fitted
from reducelower.model.document import Document
from reducelower.model.schemas import latest_opset, opset_of
from reducelower.options import Book, Options, Settings, Target, check_names
from reducelower.plan import Plan
from reducelower.rulebook import load_book

__all__ = [
    "Legalized",
    "check",
    "convert_version",
    "expand",
    "legalize",
    "legalized",
    "planned",
]


@dataclass(frozen=True)
class Legalized:
    """A model that fits its target, in the form of the one given, and the plan that says what was changed for that."""

    model: Any
    plan: Plan


def _settings(target: Target, rules: Book, options: Mapping[str, Any]) -> Settings:
    """Check the settings that a caller asks for, and return them."""
    check_names(options)
    check_book(rules)
    check_options(options)
    return Settings(target, rules, **options)


def _check_target(target: Any) -> None:
    if not isinstance(target, Target):
        raise TypeError(f"target must be a reducelower.Target such as Target(13), not {value_text(target)}")


def legalize(
    model: AnyModel,
    target: Target,
    *,
    rules: Book = "stable",
    in_place: bool = False,
    **options: Unpack[Options],
) -> Legalized:
    """Make a model legal for a target.

    Args:
        model: any ONNX model: a ModelProto, bytes, a path, what torch exported, or a model of onnx_ir. The external
            data of a file stays where it is. The function trusts that the model is valid. If it may not be, run
            `onnx.checker.check_model` first.
        target: what is legal where the model is going.
        rules: the rule book that bodies come from; ``stable`` keeps finite values finite.
        in_place: change and return the model itself, not a copy; only for a ModelProto.
        options: see `Options`.

    Returns:
        The legal model and the plan of what was done.

    Raises:
        ConversionError: something cannot be made legal. The error holds every reason, and the model is unchanged.
        ValueError: the target or an option makes no sense.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> made = reducelower.legalize(model, reducelower.Target(13, without={"ReduceL2"}))
        >>> made.plan
        Plan(opset 18 -> 13, IR version 8 -> 7: 1 node rewritten, 0 unchanged)
    """
    _check_target(target)
    given = take(model, in_place=in_place)
    settings = _settings(target, rules, given.options(options))
    made, plan = legalized(given.document, settings, in_place=in_place, report=True)
    return Legalized(given.back(made), plan)


@of_any_model
def convert_version(
    model: Document,
    target_version: int,
    *,
    without: Iterable[str] = (),
    without_types: Iterable[str] = (),
    rules: Book = "stable",
    assume_nonempty: bool = False,
    in_place: bool = False,
    **options: Unpack[Options],
) -> Document:
    """Convert a model to another opset version of the default domain.

    A drop-in replacement for `onnx.version_converter.convert_version`: the first two arguments are the same, it returns
    a new model, and the caller's model is unchanged. Large weights of a model of at
    least 16 MiB in bytes are neither parsed nor written again.

    Args:
        model: any valid ONNX model, in any form; see `legalize`.
        target_version: opset version to convert to, up or down.
        without, without_types, assume_nonempty: see `Target`.
        rules, in_place, options: see `legalize`.

    Returns:
        The converted model, in the form of the one given (a ModelProto for a path). It is a new one, unless `in_place`.

    Raises:
        ConversionError: something cannot be expressed at that opset version. The error holds every reason.
        UnreadableModelError: a file is missing, or the file or the bytes are not a model.
        ValueError: there is no such opset version.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> older = reducelower.convert_version(model, 13)
        >>> older.opset_import[0].version, older.ir_version
        (13, 7)
    """
    check_version("target_version", target_version)
    target = Target(target_version, without, without_types, assume_nonempty=assume_nonempty)
    return legalized(model, _settings(target, rules, options), in_place=in_place)[0]


@of_any_model
def expand(
    model: Document,
    *,
    ops: Iterable[str] | None = None,
    rules: Book = "spec",
    without_types: Iterable[str] = (),
    assume_nonempty: bool = False,
    in_place: bool = False,
    **options: Unpack[Options],
) -> Document:
    """Replace composite Reduce operators by the bodies of the rule book, at the model's own opset version.

    Args:
        model: any valid ONNX model, in any form; see `legalize`.
        ops: operators to replace, such as ``["LayerNormalization"]``. None means the Reduce operators for a rule book
            that comes with reducelower, and every operator with rules for your own rule book.
        rules: ``spec`` (the specification's own bodies, which overflow where the operator does not), ``stable`` (keeps
            finite values finite), ``core``, a folder of rules, or a rule book.
        without_types, assume_nonempty: see `Target`.
        in_place, options: see `legalize`.

    Returns:
        The model without these operators, in the form of the one given. It is a new one, unless `in_place`.

    Raises:
        ConversionError: a node cannot be replaced. The error holds every reason.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> [node.op_type for node in reducelower.expand(model, rules="core").graph.node][:2]
        ['Abs', 'ReduceMax']
    """
    settings = _settings(Target(), rules, {"ir_version": "keep", **options})
    names = load_book(rules).reductions if ops is None else name_set("ops", ops)
    target = Target(None, names, without_types, assume_nonempty=assume_nonempty)
    return legalized(model, replace(settings, target=target), in_place=in_place)[0]


def check(
    model: AnyModel,
    target_version: int | None = None,
    *,
    target: Target | None = None,
    rules: Book = "stable",
    **options: Unpack[Options],
) -> Plan:
    """Say what a conversion would rewrite and what it would refuse, without converting.

    Args:
        model: any valid ONNX model, in any form. It is not changed.
        target_version: opset version to convert to; or give a `target`.
        target: what is legal where the model is going.
        rules, options: see `legalize`.

    Returns:
        The plan. It has `refusals` if `convert_version` would raise an error.

    Raises:
        ConversionError: the model is not valid, so the engine failed on it.
        ValueError: the target makes no sense.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> reducelower.check(model, target=reducelower.Target(13, without={"ReduceL2"}))
        Plan(opset 18 -> 13, IR version 8 -> 7: 1 node rewritten, 0 unchanged)
        >>> [refusal.reason for refusal in reducelower.check(model, 13).refusals]
        []
    """
    given = take(model)
    if target_version is not None:
        check_version("target_version", target_version)
    goal = target if target is not None else Target(target_version)
    _check_target(goal)
    return planned(given.document, _settings(goal, rules, given.options(options)))


_PlanAt = Callable[[int | None], Plan]
"""Returns the plan at an opset version."""


def _plans(source: Document, target: Target, settings: Settings) -> _PlanAt:
    """The plans for a target, each made once: plans that were tried to choose an opset version are needed again."""
    return cache(lambda opset: attempt(source.bare, replace(target, opset=opset), settings, report=True).plan)


def _with_opset(source: Document, target: Target, plan_at: _PlanAt) -> Target:
    """The target with the opset version at which the model needs the fewest rewrites for a runtime, if it is for one.

    That is the one that the runtime prefers or the one nearest to the model's own that it reads. If both need as many,
    it is the model's own, or else the preferred one.
    """
    runtime = target.runtime
    if runtime is None:
        return target
    if target.opset is not None:
        if target.opset not in runtime.reads:
            raise ValueError(f"{runtime} reads opsets {runtime.reads}, not {target.opset}")
        return target
    own, costs = opset_of(source.message), []
    prefer, nearest = min(runtime.prefer, latest_opset()), runtime.reads.nearest(own)
    candidates = (own, prefer) if nearest == own else (prefer, nearest)
    for at, opset in enumerate(dict.fromkeys(candidates)):
        plan = plan_at(opset)
        costs.append((len(plan.refusals), len(plan.unmended), len(plan.sites), at, opset))
        if not any(costs[-1][:3]):
            break  # none can be better
    return replace(target, opset=min(costs)[-1])


def planned(document: Document, settings: Settings) -> Plan:
    """The plan for a model that is a document already; see `check`."""
    goal = settings.target
    with explain_failures(document):
        fit = fitted(document, goal.runtime, settings)
        source = fit.document.bare
        plan_at = _plans(fit.document, goal, settings)
        goal = _with_opset(source, goal, plan_at)
        plan = plan_at(goal.opset)
        plan = replace(_with_fit(plan, fit), refusals=(*fit.refusals, *plan.refusals))
        own = plan.source_opset
        if goal.runtime is not None and goal.opset != own and own in goal.runtime.reads:
            plan = replace(plan, as_it_is=plan_at(own))
        plan = replace(plan, steps=())  # nobody looks at them
        return name_oldest_fitting(plan, fits(source, goal, settings)) if plan.refusals else plan


def _with_fit(plan: Plan, fit: Changed) -> Plan:
    """The plan with what was done to the model as a whole."""
    return replace(plan, fitted=(*fit.done, *plan.fitted), notes=(*fit.done, *plan.notes))


def legalized(
    document: Document, settings: Settings, *, report: bool = False, in_place: bool = False
) -> tuple[Document, Plan]:
    """A legal model and the plan, for a model that is a document already; see `legalize`."""
    with explain_failures(document):
        is_plain = settings.target.runtime is None and not settings.set_sizes
        fit = Changed(document) if is_plain else fitted(document, settings.target.runtime, settings)
        if fit.refusals:
            raise ConversionError(fit.refusals)
        target = _with_opset(fit.document, settings.target, _plans(fit.document, settings.target, settings))
        made, plan = legal(fit.document, target, settings, report=report)
    if in_place:
        document.message.CopyFrom(made.message)
        made = Document(document.message)
    return made, _with_fit(plan, fit)
