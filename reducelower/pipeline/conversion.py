"""Convert one local model: read, check, legalize, verify, and write last; or only report what that would do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reducelower.api import legalized, planned
from reducelower.errors import ConversionError
from reducelower.files import LoadedModel, read_model, resolve_destination, write_model
from reducelower.legalization.defects import find_defect
from reducelower.legalization.whole.features import fitted
from reducelower.model.document import Document
from reducelower.model.skeleton import names_in
from reducelower.options import Settings, Target
from reducelower.outcome import Outcome, Verdict
from reducelower.pipeline.diagnosis import (
    cures,
    repaired,
    sound,
    what_is_wrong,
    what_is_wrong_with_source,
    what_would_help,
)
from reducelower.pipeline.task import Task, refused
from reducelower.plan import Plan
from reducelower.repairs import repair

if TYPE_CHECKING:
    from reducelower.verification import TestDataSet, Verification

__all__ = ["check_model", "convert"]


def convert(
    task: Task,
    settings: Settings,
    *,
    on_complete: Callable[[int, LoadedModel], object] | None = None,
) -> Outcome:
    """Convert one local model, regardless of records.

    `on_complete` gets the descriptor of the complete output before the file gets its name, and the source model.
    """
    source = read_model(task.source)
    write_options: dict[str, Any] = {"source": source, "overwrite": settings.overwrite, "in_place": settings.in_place}
    resolve_destination(task.output, **write_options)
    place = source.data_place
    source, notes = _prepared(source, settings)
    free = {name: size for name, size in settings.dims.items() if name not in settings.set_sizes}
    settings = replace(settings, set_sizes={}, dims=free)
    data_sets: Sequence[TestDataSet] = ()
    if settings.verify:
        from reducelower.pipeline.verifying import read_data_sets

        data_sets = read_data_sets(settings, source.model)
    defects: list[str] = []
    for candidate, mended in cures(source):
        defect = what_is_wrong_with_source(candidate.document, place=place, full=True)
        if defect:
            defects.append(defect + ("" if settings.repair else what_would_help(candidate)))
            continue
        converted, plan = legalized_and_raised(candidate, settings)
        # Without a target, the result may keep operators that runtimes run although the checker refuses them.
        check_result = what_is_wrong_with_source if settings.target == Target() else what_is_wrong
        defect = check_result(converted, place=place, full=True)
        if not defect:
            source, notes = candidate, (*notes, *mended)
            break
        defects.append(_about_result(settings, candidate, defect))
    else:
        return refused(task.source, defects[0])
    plan = replace(plan, notes=(*notes, *plan.notes))
    verification = None
    verdict: Verdict = "fits" if plan.changes_nothing and not notes else "converted"
    if settings.verify and (verdict != "fits" or _verifies_unchanged(settings)):
        from reducelower.pipeline.verifying import verify_models

        verification = verify_models(source, converted, settings, data_sets, plan=plan)
    # The steps of the proof hold models, which should be freed now.
    outcome = Outcome(task.source, verdict, plan=replace(plan, steps=()), verification=verification)
    outcome = _with_details(outcome, settings, source, converted)
    if verification is not None and _stops(verification, strict=settings.strict):
        return _not_written(outcome, verification)
    if verdict == "fits" and settings.in_place:
        return replace(outcome, output=task.output)
    written = write_model(
        converted, task.output, external_data=settings.external_data, on_complete=on_complete, **write_options
    )
    left_behind = [file.location for file in source.external if not (written.parent / file.location).exists()]
    return replace(outcome, output=task.output, external=tuple(left_behind))


def _prepared(source: LoadedModel, settings: Settings) -> tuple[LoadedModel, tuple[str, ...]]:
    """The model after repair and fitting, if requested, and notes about these."""
    notes: tuple[str, ...] = ()
    if settings.repair:
        source, notes = repaired(source, repair(source.model))
    fitting = fitted(source.document, settings.target.runtime, settings)
    if fitting.refusals:
        raise ConversionError(fitting.refusals)
    return replace(source, document=fitting.document), (*notes, *fitting.done)


def _verifies_unchanged(settings: Settings) -> bool:
    """Whether to verify even an unchanged model: in another runtime, with a provider, or on test data."""
    is_elsewhere = settings.target.runtime is not None or tuple(settings.runtimes) != ("onnxruntime",)
    return is_elsewhere or bool(settings.test_data or settings.provider)


_SUMMARIES = {
    "different": "does not compute the same",
    "not shown": "could not be verified",
    "equivalent": "computes the same, but not in a runtime that diverges from the specification",
}


def _stops(verification: Verification, *, strict: bool) -> bool:
    """Whether verification prevents writing: something differs or, if `strict`, not everything was shown."""
    departs = bool(verification.departing or verification.departs)
    return verification.verdict == "different" or (strict and (not verification.equivalent or departs))


def _not_written(outcome: Outcome, verification: Verification) -> Outcome:
    """The outcome if verification prevents writing."""
    summary = _SUMMARIES[verification.verdict]
    reason = verification.why if verification.verdict != "equivalent" else "; ".join(verification.warnings)
    problem = f"{outcome.source}: the converted model {summary}, so it was not written: {reason}"
    verdict: Verdict = "different" if verification.verdict == "different" else "not shown"
    return replace(outcome, verdict=verdict, problems=(problem,))


def _with_details(outcome: Outcome, settings: Settings, source: LoadedModel, made: Document) -> Outcome:
    """Add the parts of a report that need both models."""
    if not settings.details or outcome.plan is None:
        return outcome
    from reducelower.report.details import describe_conversion

    return replace(outcome, details=describe_conversion(source.model, made.message, outcome.plan, outcome.verification))


def _about_result(settings: Settings, source: LoadedModel, defect: str) -> str:
    """What is wrong if a result is invalid: usually a defect of the source that only shows at another opset version."""
    help_ = "" if settings.repair else what_would_help(source)
    if cause := what_is_wrong(source.document, place=source.data_place, full=True) or find_defect(source.model):
        return cause + help_
    hint = help_ or "; if the model and what is said of it (--type, --rank, --ir-version) are right, please report this"
    return f"the result is not valid: {defect}{hint}"


def check_model(path: str, settings: Settings) -> Outcome:
    """Report what a conversion of a local model would do."""
    source, notes, defect = sound(read_model(path))
    if defect:
        return refused(path, defect)
    plan = planned(source.document, replace(settings, base_dir=source.place))
    if plan.refusals and not (error := ConversionError(plan.refusals)).is_about_model:
        raise error
    plan = replace(plan, notes=(*notes, *plan.notes))
    verdict: Verdict = "refused" if plan.refusals else "fits" if plan.changes_nothing and not notes else "rewrite"
    return Outcome(path, verdict, plan=plan, refusals=plan.refusals)


def legalized_and_raised(source: LoadedModel, settings: Settings) -> tuple[Document, Plan]:
    """The model after conversion, raising, or both."""
    settings = replace(settings, base_dir=source.place)
    if settings.raised is None:
        return legalized(source.document, settings, report=True)
    if settings.target == Target():
        return _raised(source.document, settings, settings.raised or None)
    from reducelower.legalization.composed import composed

    converted, first = legalized(source.document, settings, report=True)
    raised, second = _raised_for(converted, settings, replace(settings.target, opset=first.target.opset))
    return raised, composed(first, second, source.document.message, converted.message, raised.message)


def _raised_for(document: Document, settings: Settings, target: Target) -> tuple[Document, Plan]:
    """A legal model, raised as far as it stays legal; notes name operators that the runtime would get wrong."""
    from reducelower.recompose import known_operators

    operators = set(settings.raised or known_operators()) - target.without
    settings = _of_values_in(document, settings)
    raised, plan = _raised(document, settings, sorted(operators))
    # Without an operator, parts of its form may match others; only operators of the first attempt are reported.
    notes, not_raised = list(plan.notes), dict[str, str]()
    while target.runtime is not None:
        check_plan = planned(raised, replace(_of_values_in(raised, settings), target=target))
        unfit = {site.op_type: f"on {target.runtime}: {site.because}" for site in check_plan.sites}
        unfit |= {refusal.operator: refusal.reason for refusal in check_plan.refusals}
        unfit = {site.op_type: unfit[site.op_type] for site in plan.sites if site.op_type in unfit}
        if not unfit:
            break
        not_raised |= unfit
        raised, plan = _raised(document, settings, sorted(operators - not_raised.keys()))
    notes += [f"{name} was not raised: {why}" for name, why in sorted(not_raised.items())]
    return raised, replace(plan, notes=tuple(notes))


def _of_values_in(document: Document, settings: Settings) -> Settings:
    """The settings, without declarations of values that legalizing or raising removed."""
    names = names_in(document.message) if settings.element_types or settings.ranks else ()
    types = {name: value for name, value in (settings.element_types or {}).items() if name in names}
    ranks = {name: value for name, value in (settings.ranks or {}).items() if name in names}
    return replace(settings, element_types=types, ranks=ranks)


def _raised(document: Document, settings: Settings, operators: Collection[str] | None) -> tuple[Document, Plan]:
    from reducelower.recompose import raise_with_plan

    outcome = raise_with_plan(document.message, settings, ops=operators)
    return Document(outcome.model), outcome.plan
