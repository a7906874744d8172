"""Converts one model file: read, check, legalize, verify, write, in this order, and the output comes last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reducelower.commandline.diagnosis import what_is_odd, what_is_wrong
from reducelower.commandline.failures import DONE, FAULT, REFUSED, describe, trace_lines, wants_trace
from reducelower.commandline.input_values import read_inputs
from reducelower.commandline.settings import Settings, Task
from reducelower.convert import Legalized, legalize
from reducelower.files import LoadedModel, read_model, resolve_destination, write_model
from reducelower.plan import Plan

if TYPE_CHECKING:
    from reducelower.verification import Verification

__all__ = ["Outcome", "convert_file"]


@dataclass(frozen=True)
class Outcome:
    """What came of one model.

    Attributes:
        source: the input as the user named it.
        status: exit status for this model alone.
        output: the file that was written; empty when there is none.
        plan: what was done; None when it did not come to that.
        verification: how the two models compare; None when they were not compared.
        external: names of files with external data that the output refers to but that were not brought along.
        problems: sentences that say why there is no output.
    """

    source: str
    status: int = DONE
    output: str = ""
    plan: Plan | None = None
    verification: Verification | None = None
    external: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def convert_file(task: Task, settings: Settings) -> Outcome:
    """Convert one model; whatever goes wrong is in the outcome, and then there is no output."""
    source = None
    try:
        source = read_model(task.source)
        return _convert(task, settings, source)
    except Exception as error:
        problems, status = describe(error, task.source)
        if status == FAULT and source is not None and (odd := what_is_odd(source.model)):
            return _refused(task, odd)
        if status == FAULT and wants_trace():
            problems += trace_lines()
        return Outcome(task.source, status, problems=problems)


def _convert(task: Task, settings: Settings, source: LoadedModel) -> Outcome:
    rights: dict[str, Any] = {
        "source": source,
        "overwrite": settings.overwrite,
        "in_place": settings.in_place,
        "make_folder": task.make_folder,
    }
    resolve_destination(task.output, **rights)
    inputs = read_inputs(settings.inputs, source.model) if settings.verify else {}
    external = bool(source.external)
    if wrong := what_is_wrong(source.model, external=external):
        return _refused(task, wrong)
    legalized = legalize(
        source.model,
        settings.target,
        rules=settings.rules,
        ir_version=settings.ir_version,
        freeze_defaults=settings.freeze_defaults,
        element_types=settings.element_types,
        ranks=settings.ranks,
        base_dir=source.folder,
    )
    if wrong := what_is_wrong(legalized.model, external=external, full=True):
        return _invalid_result(task, settings, source, wrong)
    verification = _verify(source, legalized, inputs, settings) if settings.verify else None
    if verification is not None and not verification.equivalent:
        problem = f"{task.source}: the converted model does not compute the same, so it was not written: {verification}"
        return Outcome(task.source, REFUSED, plan=legalized.plan, verification=verification, problems=(problem,))
    written = write_model(legalized.model, task.output, external_data=settings.external_data, **rights)
    left_behind = [file.location for file in source.external if not (written.parent / file.location).exists()]
    return Outcome(
        task.source,
        output=task.output,
        plan=legalized.plan,
        verification=verification,
        external=tuple(left_behind),
    )


def _refused(task: Task, reason: str) -> Outcome:
    return Outcome(task.source, REFUSED, problems=(f"{task.source}: {reason}",))


def _invalid_result(task: Task, settings: Settings, source: LoadedModel, wrong: str) -> Outcome:
    """Say whose fault an invalid result is: the input's, that of an option, or ours."""
    if already := what_is_wrong(source.model, external=bool(source.external), full=True):
        return _refused(task, already)
    if isinstance(settings.ir_version, int):
        return _refused(task, f"at IR version {settings.ir_version} the result is not valid: {wrong}")
    problem = f"{task.source}: reducelower itself failed: its result is not valid ({wrong}); please report this"
    return Outcome(task.source, FAULT, problems=(problem,))


def _verify(source: LoadedModel, legalized: Legalized, inputs: Mapping[str, Any], settings: Settings) -> Verification:
    from reducelower.verification import verify

    return verify(
        source.path if source.external else source.model,
        legalized.model,
        inputs=inputs,
        dims=settings.dims,
        budget=settings.budget,
        strict=settings.strict,
        plan=legalized.plan,
        base_dir=source.folder if source.external else None,
    )
