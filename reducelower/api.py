"""The public functions: convert a model, expand its composite reductions, check what would change.

Each takes a model in any form that callers have (`given`), and gives one of the same form.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from reducelower.arguments import check_arguments
from reducelower.errors import ConversionError
from reducelower.given import AnyModel, of_any_model, take
from reducelower.legalization.in_place import attempt_in_place
from reducelower.legalization.kernels import with_missing_kernels
from reducelower.legalization.refusals import explain_failures, fits, legal, name_oldest_fitting, refused
from reducelower.legalization.whole import Changed
from reducelower.legalization.whole.attempts import attempt
from reducelower.legalization.whole.features import fitted
from reducelower.model.document import Document
from reducelower.model.schemas import opset_of
from reducelower.options import Book, IrVersion, Settings, Target
from reducelower.plan import Plan
from reducelower.rulebook.rules import Rules

__all__ = [
    "Legalized",
    "check",
    "convert_bytes",
    "convert_version",
    "expand",
    "expand_bytes",
    "legalize",
    "legalized",
    "planned",
]


@dataclass(frozen=True)
class Legalized:
    """A model that fits its target, in the form of the one given, and the plan that says how it came to."""

    model: Any
    plan: Plan


def _settings(
    target: Target,
    rules: Book,
    ir_version: IrVersion,
    freeze_defaults: bool,
    element_types: Mapping[str, str] | None,
    ranks: Mapping[str, int] | None,
    base_dir: str | os.PathLike[str] | None,
    set_sizes: Mapping[str, int] | None,
    validate: bool = True,
) -> Settings:
    """The settings that a caller asks for, checked."""
    check_arguments(
        rules=rules, ir_version=ir_version, element_types=element_types, ranks=ranks, base_dir=base_dir,
        set_sizes=set_sizes,
    )  # fmt: skip
    return Settings(
        target, rules, ir_version, freeze_defaults, element_types, ranks, base_dir, validate=validate,
        set_sizes=set_sizes or {},
    )  # fmt: skip


def _version(
    target_version: int, without: Iterable[str], without_types: Iterable[str], assume_nonempty: bool
) -> Target:
    """The target of a conversion, its parts checked by the names that a caller has for them."""
    check_arguments(target_version=target_version, without=without, without_types=without_types)
    return Target(target_version, frozenset(without), frozenset(without_types), assume_nonempty=assume_nonempty)


def _expansion(ops: Iterable[str] | None, rules: Book, without_types: Iterable[str], assume_nonempty: bool) -> Target:
    """The target of an expansion, its parts checked."""
    check_arguments(ops=ops, rules=rules, without_types=without_types)
    names = Rules(rules).book.reductions if ops is None else ops
    return Target(None, frozenset(names), frozenset(without_types), assume_nonempty=assume_nonempty)


def legalize(
    model: AnyModel,
    target: Target,
    *,
    rules: Book = "stable",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    set_sizes: Mapping[str, int] | None = None,
    validate: bool = True,
    in_place: bool = False,
) -> Legalized:
    """Make a model legal for a target.

    Args:
        model: any ONNX model, as a message, bytes, a path, what torch exported or a model of onnx_ir. External data of
            a file stays where it is. It is trusted to be valid: run `onnx.checker.check_model` first on models that may
            not be.
        target: what is legal where the model is going.
        rules: the rule book that bodies come from; ``stable`` keeps finite what is finite.
        ir_version: ``auto`` follows the opset version where it changes, up to what that needs and down to what the
            contents need; ``keep`` leaves it, a number sets it.
        freeze_defaults: take initializers that are also graph inputs for constants, though a caller may override them.
        element_types: element types of values that the model does not state, by name, such as ``{"y": "float32"}``.
        ranks: ranks of values that the model does not state, by name.
        base_dir: folder that external data locations are relative to, or the model's file; without it external
            constants are not read.
        set_sizes: sizes that take the place of their names in the model, such as ``{"batch": 1}``; what computed with
            them becomes constant.
        validate: look at every distinct rewrite with onnx's checker and shape inference, and refuse what is not
            valid; it takes about a tenth of a millisecond for each.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The legal model and the plan of what was done. Its notes name operators that the installed onnxruntime has no
        kernel for at an opset version the model was raised to.

    Raises:
        ConversionError: something cannot be made legal; it holds every reason, and the model is unchanged.
        ValueError: the target or a setting makes no sense.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> made = reducelower.legalize(model, reducelower.Target(13, without={"ReduceL2"}))
        >>> made.plan
        Plan(opset 18 -> 13, IR version 8 -> 7: 1 node rewritten, 0 unchanged)
    """
    check_arguments(target=target)
    given = take(model, in_place=in_place)
    folder = given.folder if base_dir is None else base_dir
    settings = _settings(target, rules, ir_version, freeze_defaults, element_types, ranks, folder, set_sizes, validate)
    made, plan = _legalize(given.document, settings, in_place=in_place, report=True)
    return Legalized(given.back(made), with_missing_kernels(plan, made.message))


@of_any_model
def convert_version(
    model: Document,
    target_version: int,
    *,
    without: Iterable[str] = (),
    without_types: Iterable[str] = (),
    rules: Book = "stable",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    assume_nonempty: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    set_sizes: Mapping[str, int] | None = None,
    validate: bool = True,
    in_place: bool = False,
) -> Document:
    """Convert a model to another opset version of the default domain.

    Stands in for `onnx.version_converter.convert_version`: same first two arguments, a new model returned, the
    caller's untouched.

    Args:
        model: any valid ONNX model, in any form; see `legalize`.
        target_version: opset version to convert to, up or down.
        without: operators that must not remain; they are replaced by their bodies in the rule book.
        without_types: element types that nothing added may use.
        rules: the rule book that bodies come from; ``stable`` keeps finite what is finite.
        ir_version: see `legalize`, as all that follow.
        freeze_defaults: take initializers that are also graph inputs for constants.
        assume_nonempty: no dimension is zero when the model runs, so that nothing is written for emptiness.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to, or the model's file.
        set_sizes: sizes that take the place of their names in the model, such as ``{"batch": 1}``; what computed with
            them becomes constant.
        validate: see `legalize`.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The converted model, in the form of the one given (a ModelProto for a path); a new one, unless `in_place`.

    Raises:
        ConversionError: something cannot be expressed at that opset version; it holds every reason.
        ValueError: there is no such opset version.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> older = reducelower.convert_version(model, 13)
        >>> older.opset_import[0].version, older.ir_version
        (13, 7)
    """
    target = _version(target_version, without, without_types, assume_nonempty)
    settings = _settings(
        target, rules, ir_version, freeze_defaults, element_types, ranks, base_dir, set_sizes, validate
    )
    return _legalize(model, settings, in_place=in_place)[0]


@of_any_model
def expand(
    model: Document,
    *,
    ops: Iterable[str] | None = None,
    rules: Book = "spec",
    without_types: Iterable[str] = (),
    freeze_defaults: bool = False,
    assume_nonempty: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    set_sizes: Mapping[str, int] | None = None,
    validate: bool = True,
    in_place: bool = False,
) -> Document:
    """Replace composite Reduce operators by the bodies of the rule book, at the model's own opset version.

    Args:
        model: any valid ONNX model, in any form; see `legalize`.
        ops: operators to replace, such as ``["LayerNormalization"]``; None means the Reduce operators
            of a shipped rule book, and every operator that a book of your own has rules for.
        rules: ``spec`` (the specification's own bodies, which overflow where the operator does not), ``stable`` (what
            is finite stays finite), ``core``, a folder of rules, or a rule book.
        without_types: element types that nothing added may use.
        freeze_defaults: see `legalize`, as all that follow.
        assume_nonempty: no dimension is zero when the model runs, so that nothing is written for emptiness.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to, or the model's file.
        set_sizes: sizes that take the place of their names in the model, such as ``{"batch": 1}``; what computed with
            them becomes constant.
        validate: see `legalize`.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The model without these operators, in the form of the one given; a new one, unless `in_place`.

    Raises:
        ConversionError: a node cannot be replaced; it holds every reason.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> [node.op_type for node in reducelower.expand(model, rules="core").graph.node][:2]
        ['Abs', 'ReduceMax']
    """
    target = _expansion(ops, rules, without_types, assume_nonempty)
    settings = _settings(target, rules, "keep", freeze_defaults, element_types, ranks, base_dir, set_sizes, validate)
    return _legalize(model, settings, in_place=in_place)[0]


def convert_bytes(
    serialized: bytes,
    target_version: int,
    *,
    without: Iterable[str] = (),
    without_types: Iterable[str] = (),
    rules: Book = "stable",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    assume_nonempty: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    set_sizes: Mapping[str, int] | None = None,
    validate: bool = True,
) -> bytes:
    """Convert a serialized model to another opset version: `convert_version` from bytes to bytes.

    It gives the model that parsing, `convert_version` and serializing give, and is faster: nodes that no rule touches,
    and weights that make up most of a model, are neither parsed nor written again, so they stay the bytes they were.

    Args:
        serialized: a ModelProto as bytes, the content of an ONNX file; it is trusted to be valid.
        target_version: opset version to convert to, up or down.
        without, without_types, rules, ir_version: the same as for `convert_version`.
        freeze_defaults, assume_nonempty, element_types, ranks, base_dir, set_sizes, validate: the same as well.

    Returns:
        The converted model as bytes.

    Raises:
        ConversionError: something cannot be expressed at that opset version; it holds every reason.
        UnreadableModelError: the bytes are no model.
        ValueError: there is no such opset version.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> older = reducelower.convert_bytes(model.SerializeToString(), 13)
        >>> onnx.load_from_string(older).opset_import[0].version
        13
    """
    check_arguments(serialized=serialized)
    target = _version(target_version, without, without_types, assume_nonempty)
    settings = _settings(
        target, rules, ir_version, freeze_defaults, element_types, ranks, base_dir, set_sizes, validate
    )
    return legalized(Document.of_bytes(serialized), settings)[0].data


def expand_bytes(
    serialized: bytes,
    *,
    ops: Iterable[str] | None = None,
    rules: Book = "spec",
    without_types: Iterable[str] = (),
    freeze_defaults: bool = False,
    assume_nonempty: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    set_sizes: Mapping[str, int] | None = None,
    validate: bool = True,
) -> bytes:
    """Replace composite Reduce operators of a serialized model: `expand` from bytes to bytes, see `convert_bytes`.

    Args:
        serialized: a ModelProto as bytes.
        ops: operators to replace, such as ``["LayerNormalization"]``; None means the same as for `expand`.
        rules, without_types, freeze_defaults: the same as for `expand`.
        assume_nonempty, element_types, ranks, base_dir, set_sizes, validate: the same as well.

    Returns:
        The model without these operators, as bytes.

    Raises:
        ConversionError: a node cannot be replaced; it holds every reason.
        UnreadableModelError: the bytes are no model.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL1 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> made = reducelower.expand_bytes(model.SerializeToString(), rules="core")
        >>> [node.op_type for node in onnx.load_from_string(made).graph.node]
        ['Abs', 'ReduceSum']
    """
    check_arguments(serialized=serialized)
    target = _expansion(ops, rules, without_types, assume_nonempty)
    settings = _settings(target, rules, "keep", freeze_defaults, element_types, ranks, base_dir, set_sizes, validate)
    return legalized(Document.of_bytes(serialized), settings)[0].data


def check(
    model: AnyModel,
    target_version: int | None = None,
    *,
    target: Target | None = None,
    rules: Book = "stable",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    set_sizes: Mapping[str, int] | None = None,
) -> Plan:
    """Say what a conversion would rewrite and what it would refuse, without converting.

    Args:
        model: any valid ONNX model, in any form; it is not changed.
        target_version: opset version to convert to; or give a `target`.
        target: what is legal where the model is going.
        rules: the rule book that bodies come from; ``stable`` keeps finite what is finite.
        ir_version: see `legalize`, as all that follow.
        freeze_defaults: take initializers that are also graph inputs for constants.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to, or the model's file.
        set_sizes: sizes that take the place of their names in the model, such as ``{"batch": 1}``; what computed with
            them becomes constant.

    Returns:
        The plan; its `refusals` are filled where `convert_version` would raise.

    Raises:
        ConversionError: the model is not valid, and the engine stumbled over it.
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
        check_arguments(target_version=target_version)
    goal = target if target is not None else Target(target_version)
    check_arguments(target=goal)
    folder = given.folder if base_dir is None else base_dir
    settings = _settings(goal, rules, ir_version, freeze_defaults, element_types, ranks, folder, set_sizes)
    return planned(given.document, goal, settings)


_PlanAt = Callable[[int | None], Plan]
"""Gives the plan at an opset version."""


def _plans(trials: Document, target: Target, settings: Settings) -> _PlanAt:
    """The plans for a target, each made once: those that are tried to choose an opset version are looked at again."""
    return cache(lambda opset: attempt(trials, replace(target, opset=opset), settings, report=True)[1])


def _with_opset(source: Document, target: Target, settings: Settings, plan_at: _PlanAt | None = None) -> Target:
    """The target with the opset version that suits the runtime the model is for, if it is for one."""
    if target.runtime is None:
        return target
    from reducelower.runtimes.opsets import opset_for

    plans = plan_at or _plans(source.for_trials(), target, settings)
    return opset_for(target, opset_of(source.message), lambda goal: plans(goal.opset))


def planned(document: Document, goal: Target, settings: Settings) -> Plan:
    """The plan, where the model is at hand as a document; see `check`.

    Plans of one document for trials (`Document.for_trials`) share the types that inference finds.
    """
    with explain_failures(document):
        fit = fitted(document, goal.runtime, settings)
        source = fit.document.for_trials()
        plan_at = _plans(source, goal, settings)
        goal = _with_opset(source, goal, settings, plan_at)
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


def legalized(document: Document, settings: Settings, *, report: bool = False) -> tuple[Document, Plan]:
    """A legal model and the plan, where the model is at hand as a document; see `legalize`."""
    with explain_failures(document):
        fit = fitted(document, settings.target.runtime, settings)
        if fit.refusals:
            raise ConversionError(fit.refusals)
        target = _with_opset(fit.document, settings.target, settings)
    made, plan = legal(fit.document, target, settings, report=report)
    return made, _with_fit(plan, fit)


def _legalize(document: Document, settings: Settings, *, in_place: bool, report: bool = False) -> tuple[Document, Plan]:
    if not in_place:
        return legalized(document, settings, report=report)
    with explain_failures(document):
        fit = fitted(document, settings.target.runtime, settings)
        if fit.refusals:
            raise ConversionError(fit.refusals)
        target = _with_opset(fit.document, settings.target, settings)
        plan = attempt_in_place(fit.document.message, target, settings, report=report)
        if plan.refusals:
            raise refused(plan, document, target, settings)
        model = document.message
        if fit.done:
            model.CopyFrom(fit.document.message)
        return Document.of_message(model), _with_fit(plan, fit)
