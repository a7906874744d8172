"""The public functions: convert a model, expand its composite reductions, check what would change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from onnx import ModelProto

from reducelower.bodies import Rules
from reducelower.census import Census
from reducelower.errors import ConversionError, Refusal
from reducelower.fitting import name_oldest_fitting
from reducelower.inference import Inference, skeleton, weight_bytes
from reducelower.ir_version import ir_version_of_opset, needed_ir_version
from reducelower.legalize import Legalizer
from reducelower.names import Names
from reducelower.plan import Plan
from reducelower.schemas import DEFAULT_DOMAINS, latest_opset, parse_element_type, versions
from reducelower.scope import Ground
from reducelower.target import Target

if TYPE_CHECKING:
    from reducelower.rulebook import RuleBook

__all__ = ["Legalized", "check", "convert_version", "expand", "legalize"]


@dataclass(frozen=True)
class Legalized:
    """A legal model and the plan that says how it became so."""

    model: ModelProto
    plan: Plan


Book: TypeAlias = "str | os.PathLike[str] | RuleBook"
"""A rule book: ``spec``, ``stable``, ``core``, a folder, or one made in Python."""

IrVersion: TypeAlias = 'Literal["auto", "keep"] | int'

# With weights up to this size a model is copied by way of its bytes, which then also answer which names are free.
_SEARCHABLE = 64 << 20


@dataclass(frozen=True)
class _Settings:
    """What a run is told besides the target."""

    rules: Book = "spec"
    ir_version: IrVersion = "auto"
    freeze_defaults: bool = False
    element_types: Mapping[str, str] | None = None
    ranks: Mapping[str, int] | None = None
    base_dir: str | os.PathLike[str] | None = None


def legalize(
    model: ModelProto,
    target: Target,
    *,
    rules: Book = "spec",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> Legalized:
    """Make a model legal for a target.

    Args:
        model: any ONNX model. It is trusted to be valid: run `onnx.checker.check_model` first on models that may
            not be.
        target: what is legal where the model is going.
        rules: the rule book that bodies come from.
        ir_version: ``auto`` raises it where the target's opset version needs that and lowers it where nothing needs
            more, ``keep`` leaves it, a number sets it.
        freeze_defaults: take initializers that are also graph inputs for constants, though a caller may override them.
        element_types: element types of values that the model does not state, by name, such as ``{"y": "float32"}``.
        ranks: ranks of values that the model does not state, by name.
        base_dir: folder that external data locations are relative to; without it external constants are not read.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The legal model and the plan of what was done.

    Raises:
        ConversionError: something cannot be made legal; it holds every reason, and the model is unchanged.
        ValueError: the target or a setting makes no sense.
    """
    settings = _Settings(rules, ir_version, freeze_defaults, element_types, ranks, base_dir)
    return _legalize(model, target, settings, in_place=in_place, report=True)


def convert_version(
    model: ModelProto,
    target_version: int,
    *,
    without: Iterable[str] = (),
    without_types: Iterable[str] = (),
    rules: Book = "spec",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> ModelProto:
    """Convert a model to another opset version of the default domain.

    Stands in for `onnx.version_converter.convert_version`: same first two arguments, a new model returned, the
    caller's untouched.

    Args:
        model: any valid ONNX model.
        target_version: opset version to convert to, up or down.
        without: operators that must not remain; they are replaced by their bodies in the rule book.
        without_types: element types that nothing added may use.
        rules: the rule book that bodies come from.
        ir_version: see `legalize`, as all that follow.
        freeze_defaults: take initializers that are also graph inputs for constants.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to.
        in_place: change and return the model itself rather than a copy.

    Raises:
        ConversionError: something cannot be expressed at that opset version; it holds every reason.
        ValueError: there is no such opset version.
    """
    target = Target(target_version, frozenset(without), frozenset(without_types))
    settings = _Settings(rules, ir_version, freeze_defaults, element_types, ranks, base_dir)
    return _legalize(model, target, settings, in_place=in_place, report=False).model


def expand(
    model: ModelProto,
    *,
    ops: Iterable[str] | None = None,
    rules: Book = "spec",
    without_types: Iterable[str] = (),
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> ModelProto:
    """Replace composite Reduce operators by the bodies of the rule book, at the model's own opset version.

    Args:
        model: any valid ONNX model.
        ops: operators to replace; None means every operator the rule book has a rule for.
        rules: ``spec``, ``stable``, ``core``, a folder of rules, or a rule book.
        without_types: element types that nothing added may use.
        freeze_defaults: see `legalize`, as all that follow.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to.
        in_place: change and return the model itself rather than a copy.

    Raises:
        ConversionError: a node cannot be replaced; it holds every reason.
    """
    names = Rules(rules).book.operators if ops is None else ops
    target = Target(None, frozenset(names), frozenset(without_types))
    settings = _Settings(rules, "keep", freeze_defaults, element_types, ranks, base_dir)
    return _legalize(model, target, settings, in_place=in_place, report=False).model


def check(
    model: ModelProto,
    target_version: int | None = None,
    *,
    target: Target | None = None,
    rules: Book = "spec",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
) -> Plan:
    """Say what a conversion would rewrite and what it would refuse, without converting.

    Args:
        model: any valid ONNX model; it is not changed.
        target_version: opset version to convert to; or give a `target`.
        target: what is legal where the model is going.
        rules: the rule book that bodies come from.
        ir_version: see `legalize`, as all that follow.
        freeze_defaults: take initializers that are also graph inputs for constants.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to.

    Returns:
        The plan; its `refusals` are filled where `convert_version` would raise.

    Raises:
        ValueError: the target makes no sense.
    """
    settings = _Settings(rules, ir_version, freeze_defaults, element_types, ranks, base_dir)
    goal = target if target is not None else Target(target_version)
    bare = skeleton(model)
    plan = _run(skeleton(bare), bare, None, goal, settings)
    return name_oldest_fitting(plan, _fits(bare, goal, settings)) if plan.refusals else plan


def _fits(bare: ModelProto, target: Target, settings: _Settings) -> Callable[[int], bool]:
    """Whether a model without weights can be made legal for the same target at another opset version."""
    return lambda opset: not _run(skeleton(bare), bare, None, replace(target, opset=opset), settings).refusals


def _legalize(model: ModelProto, target: Target, settings: _Settings, *, in_place: bool, report: bool) -> Legalized:
    if in_place:
        # A refusal must leave the model as it was, so it is found on a copy that carries no weights.
        source = skeleton(model)
        rehearsal = _run(skeleton(source), source, None, target, settings)
        if rehearsal.refusals:
            raise ConversionError(name_oldest_fitting(rehearsal, _fits(source, target, settings)).refusals)
        return Legalized(model, _run(model, source, None, target, settings, report=report))
    copy, serialized = _copy(model)
    plan = _run(copy, model, serialized, target, settings, report=report)
    if plan.refusals:
        raise ConversionError(name_oldest_fitting(plan, _fits(skeleton(model), target, settings)).refusals)
    return Legalized(copy, plan)


def _copy(model: ModelProto) -> tuple[ModelProto, bytes | None]:
    if weight_bytes(model) <= _SEARCHABLE:
        serialized = model.SerializeToString()
        return ModelProto.FromString(serialized), serialized
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy, None


def _run(
    model: ModelProto,
    source: ModelProto,
    serialized: bytes | None,
    target: Target,
    settings: _Settings,
    *,
    report: bool = True,
) -> Plan:
    """Make `model` legal where it stands; `source` is the same model, which stays as it is.

    The plan lists sites only where a report is wanted: on a large model listing them takes longer than the rest.
    """
    imports = [entry for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    opset, problem = _source_opset([entry.version for entry in imports])
    goal = _goal(target, opset)
    old_ir = model.ir_version
    if problem:
        return Plan(opset, goal, refusals=(problem,), ir_version=(old_ir, old_ir))
    assert goal.opset is not None
    ground = Ground(
        Names(model, serialized),
        Inference(source),
        opset=goal.opset,
        element_types={name: parse_element_type(given) for name, given in (settings.element_types or {}).items()},
        ranks=settings.ranks or {},
        base_dir=None if settings.base_dir is None else Path(settings.base_dir),
        freeze_defaults=settings.freeze_defaults,
        overridable=old_ir >= 4,
        initializers_stand_alone=_new_ir_at_most(settings.ir_version, old_ir) >= 4,
    )
    census = None if serialized is None else Census(serialized)
    legalizer = Legalizer(model, goal, ground, Rules(settings.rules), census)
    legalizer.run(opset)
    refusals = tuple(legalizer.refusals)
    notes = tuple(
        f"{name!r} is a default that callers may override; it was taken for constant" for name in ground.frozen
    )
    if refusals:
        return Plan(opset, goal, refusals=refusals, ir_version=(old_ir, old_ir), notes=notes)
    sites = legalizer.splice(report=report)
    for entry in imports:
        entry.version = goal.opset
    model.ir_version = _new_ir(model, census, settings.ir_version, opset, goal.opset)
    return Plan(opset, goal, tuple(sites), (), legalizer.nodes - len(sites), (old_ir, model.ir_version), notes)


def _source_opset(imported: list[int]) -> tuple[int, Refusal | None]:
    """The opset version of the default domain, and what is wrong with it if anything."""
    if not imported:
        reason = "it imports no opset of the default domain, so it cannot be told what its operators mean"
        return 0, Refusal("graph", "", "", reason, "set opset_import")
    opset = imported[0]
    if len(set(imported)) > 1:
        reason = f"it imports the default domain more than once, at opsets {' and '.join(map(str, imported))}"
        return opset, Refusal("graph", "", "", reason, "keep the one its nodes are written for")
    if not 1 <= opset <= latest_opset():
        reason = f"it imports opset {opset}, and the onnx installed knows opsets 1 to {latest_opset()}"
        return opset, Refusal("graph", "", "", reason, "install a newer onnx" if opset > 0 else "mend opset_import")
    return opset, None


def _goal(target: Target, source_opset: int) -> Target:
    """The target with its opset version filled in.

    Raises:
        ValueError: there is no such opset version, operator or element type.
    """
    opset = source_opset if target.opset is None else target.opset
    if target.opset is not None and not 1 <= opset <= latest_opset():
        raise ValueError(f"there is no opset {opset}; the onnx installed knows opsets 1 to {latest_opset()}")
    for name in target.without:
        if not versions(name):
            raise ValueError(f"there is no operator {name!r} in the default domain")
    for name in target.without_types:
        parse_element_type(name)
    return replace(target, opset=opset)


def _new_ir_at_most(asked: IrVersion, old: int) -> int:
    """The newest IR version the model may come out with."""
    if asked == "keep":
        return old
    return max(old, 4) if asked == "auto" else int(asked)


def _new_ir(model: ModelProto, census: Census | None, asked: IrVersion, source_opset: int, goal_opset: int) -> int:
    old = model.ir_version
    if asked == "keep":
        return old
    if asked != "auto":
        return int(asked)
    usual = ir_version_of_opset(goal_opset)
    if usual > old:
        return usual
    if goal_opset < source_opset and usual < old:
        return max(usual, needed_ir_version(model, old, census))
    if old < 4:
        return max(old, needed_ir_version(model, 4, census))
    return old
