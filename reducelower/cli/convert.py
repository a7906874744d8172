"""`reducelower convert`, `expand`, `raise` and `repair`: what each takes, and the one run that all have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import click

from reducelower.batch.inputs import find_models, plan_outputs
from reducelower.batch.many import converting, run_all, with_names_on_disk, workers
from reducelower.batch.task import FORKS, Task
from reducelower.cli import console
from reducelower.cli.console import STREAM, Staged, on_standard_output, staged
from reducelower.cli.options import (
    FOR_OPTION,
    IR_VERSION_OPTION,
    MODEL_OPTIONS,
    MODELS,
    OUTPUT_OPTIONS,
    REPAIR_OPTION,
    REPORT_OPTION,
    VERIFICATION_OPTIONS,
    WITHOUT_OPTION,
    Command,
    Option,
    conversion_options,
    settings_of,
    target_of,
    with_options,
)
from reducelower.cli.progress import progress, steps
from reducelower.cli.text import github_annotations, show, show_summary
from reducelower.cli.types import OPERATOR, OPSET, RULES
from reducelower.failures import SettingError
from reducelower.model.text import did_you_mean
from reducelower.options import Settings, Target
from reducelower.outcome import Outcome

__all__ = ["convert", "convert_all", "expand", "outcomes_of", "raise_", "repair"]


def _operators(text: str) -> Option:
    return click.option("--op", "operators", type=OPERATOR, multiple=True, help=text)


@click.command("convert", cls=Command)
@with_options(
    MODELS,
    click.option("--opset", type=OPSET, help="Opset version to convert to.  [default with --for: whichever suits it]"),
    FOR_OPTION,
    OUTPUT_OPTIONS,
    WITHOUT_OPTION,
    click.option(
        "--raise",
        "is_raised",
        is_flag=True,
        help="Then fold what spells out a normalization or a composite reduction into that operator, as raise does.",
    ),
    conversion_options("stable"),
    (IR_VERSION_OPTION, REPAIR_OPTION, *VERIFICATION_OPTIONS, REPORT_OPTION),
)
@click.pass_context
def convert(ctx: click.Context, /, models: tuple[str, ...], **options: Any) -> int:
    """Convert models to another opset version or for a runtime, and verify them.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx', or the URL of one where fsspec is installed.

    \b
    Examples:
      reducelower convert model.onnx -o model13.onnx --opset 13
      reducelower convert model.onnx -o for_openvino.onnx --for openvino
      reducelower convert model.onnx -o model17.onnx --opset 17 --raise
      reducelower convert models/ --output-dir converted/ --opset 17 --jobs 4 --resume
    """
    if options["opset"] is None and not options["for_runtimes"] and options["ir_version"] in ("auto", "keep"):
        raise click.UsageError(
            "say what to convert to: --opset N, --for NAME or both; --ir-version N alone changes nothing else", ctx
        )
    from reducelower.cli.convert import convert_all

    settings = settings_of(target_of(options, ctx), options)
    if options["is_raised"]:
        settings = replace(settings, raised=())
    return convert_all("convert", models, settings, options)


@click.command("expand", cls=Command)
@with_options(
    MODELS,
    _operators("Operator to replace; repeatable.  [default: the composite Reduce operators]"),
    OUTPUT_OPTIONS,
    conversion_options("spec"),
    (REPAIR_OPTION, *VERIFICATION_OPTIONS, REPORT_OPTION),
)
def expand(models: tuple[str, ...], operators: tuple[str, ...], **options: Any) -> int:
    """Replace composite Reduce operators by simpler ones, at the model's own opset version, and verify.

    Normalizations (LayerNormalization, RMSNormalization, Softmax ...), which are made of reductions as well, are
    replaced where --op names them.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx', or the URL of one where fsspec is installed.

    \b
    Examples:
      reducelower expand model.onnx -o expanded.onnx --rules stable
      reducelower expand model.onnx -o expanded.onnx --op ReduceLogSumExp
      reducelower expand model.onnx -o expanded.onnx --op LayerNormalization --rules stable --without-type float
    """
    from reducelower.cli.convert import convert_all
    from reducelower.rulebook import load_book

    names = operators or load_book(options["rules"]).reductions
    target = Target(None, frozenset(names), frozenset(options["without_types"]))
    return convert_all("expand", models, replace(settings_of(target, options), ir_version="keep"), options)


@click.command("raise", cls=Command)
@with_options(
    MODELS,
    _operators("Operator to raise to; repeatable.  [default: all that there are forms for]"),
    OUTPUT_OPTIONS,
    click.option(
        "--rules",
        type=RULES,
        default="core",
        metavar="DIR",
        help="Folder of rules whose bodies are looked for, besides those that come with reducelower.",
    ),
    (*MODEL_OPTIONS, REPAIR_OPTION, *VERIFICATION_OPTIONS, REPORT_OPTION),
)
def raise_(models: tuple[str, ...], operators: tuple[str, ...], **options: Any) -> int:
    """Fold primitive forms into the operators they spell out, and verify: the way back from expand.

    Composite Reduce operators, LayerNormalization, RMSNormalization, GroupNormalization, InstanceNormalization,
    LpNormalization, Softmax, LogSoftmax and Gelu, as far as the model's opset version has them. What only
    looks like one is left as it is, with the reason.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx', or the URL of one where fsspec is installed.

    \b
    Examples:
      reducelower raise expanded.onnx -o model.onnx
      reducelower raise expanded.onnx -o model.onnx --op LayerNormalization
    """
    from reducelower.cli.convert import convert_all
    from reducelower.recompose import known_operators

    known = known_operators((options["rules"],))
    for name in operators:
        if name not in known:
            raise click.UsageError(f"there is no form of {name} to look for{did_you_mean(name, known)}")
    settings = replace(settings_of(Target(), options), ir_version="keep", raised=operators)
    return convert_all("raise", models, settings, options)


@click.command("repair", cls=Command)
@with_options(MODELS, OUTPUT_OPTIONS, MODEL_OPTIONS, VERIFICATION_OPTIONS, REPORT_OPTION)
def repair(models: tuple[str, ...], **options: Any) -> int:
    """Repair models that runtimes accept and the ONNX checker rejects, at their own opset version.

    Puts nodes in order, adds missing opset imports, makes the IR version fit, and drops stated types that contradict
    what the nodes yield. It lists what it did. What the model computes stays the same.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx', or the URL of one where fsspec is installed.

    \b
    Examples:
      reducelower repair model.onnx -o repaired.onnx
      reducelower repair models/ --output-dir repaired/
    """
    from reducelower.cli.convert import convert_all

    settings = replace(settings_of(Target(), options), ir_version="keep", repair=True)
    return convert_all("repair", models, settings, options)


ConversionCommand: TypeAlias = Literal["convert", "expand", "raise", "repair"]


def convert_all(
    command: ConversionCommand, models: Sequence[str], settings: Settings, options: Mapping[str, Any]
) -> int:
    """Convert every model that the command line names, report, and return the exit status."""
    if settings.backup and not settings.in_place:
        raise SettingError("--backup keeps what --in-place replaces; give both")
    if STREAM in models and settings.in_place:
        raise SettingError("standard input cannot be replaced; give -o OUT")
    on_standard_output(options)
    with staged(models, options["output"]) as files:
        return _convert_all(command, files, replace(settings, details=bool(options["reports"])), options)


def _convert_all(command: ConversionCommand, files: Staged, settings: Settings, options: Mapping[str, Any]) -> int:
    quiet, verbose, as_json = options["quiet"], options["verbose"], options["as_json"]
    reports: Sequence[str] = options["reports"]
    tasks, settings = _planned(files, settings, options)
    if settings.verify and not options["scheduler"]:  # what a cluster has is its own affair
        from reducelower.batch.verifying import require_runtimes

        require_runtimes(settings)
    if reports:
        from reducelower.cli.reports import check_report_paths

        check_report_paths(reports, [path for task in tasks for path in (task.source, task.output)])
    as_text = options["form"] == "text"
    outcomes: list[Outcome] = []
    for outcome in map(files.named, with_names_on_disk(_outcomes(tasks, settings, options), tasks)):
        outcomes.append(outcome)
        if as_json:
            from reducelower.report.plain import json_line

            console.data_result(json_line(outcome))
        if as_text:
            for problem in outcome.problems:
                console.problem(problem)
            if quiet and outcome.output:
                for warning in outcome.warnings:
                    console.warning(f"{outcome.source}: {warning}")
            if not quiet and not as_json and (outcome.output or verbose):
                show(outcome, whole=verbose or len(tasks) == 1, verbose=verbose)
    if as_text and len(tasks) > 1 and not quiet and not as_json:
        show_summary(outcomes)
    if reports or not as_text:
        from reducelower.cli.reports import write_reports

        if options["form"] == "github" and (text := github_annotations(outcomes)):
            console.data_result(text)
        write_reports(command, outcomes, reports)
    return max(outcome.status for outcome in outcomes)


def _planned(files: Staged, settings: Settings, options: Mapping[str, Any]) -> tuple[Sequence[Task], Settings]:
    """What there is to do, in names that whoever does it understands."""
    models = files.models
    output_dir: str | None = options["output_dir"]
    scheduler: str | None = options["scheduler"]
    if scheduler:
        from reducelower.batch.cluster import anchored, anchored_settings

        models, settings = anchored(models), anchored_settings(settings)
        output_dir = output_dir and anchored([output_dir])[0]
    tasks = plan_outputs(
        find_models(models, skip=output_dir or "", exclude=options["exclude"]),
        output=files.output,
        output_dir=output_dir,
        in_place=settings.in_place,
        # A worker that was lost may have written its output: a record tells the next one that it is ours.
        resume=options["resume"] or bool(scheduler),
        external_data=settings.external_data,
    )
    return tasks, settings


def _outcomes(tasks: Sequence[Task], settings: Settings, options: Mapping[str, Any]) -> Iterator[Outcome]:
    """What came of each model, with a bar for many of them, or the steps of the only one."""
    how = converting(settings)
    if len(tasks) == 1 and not options["scheduler"]:
        with steps(quiet=options["quiet"]) as on_step:
            yield from run_all(jobs=tasks, processes=1, is_apart=FORKS and settings.verify, on_step=on_step, **how)
    else:
        yield from outcomes_of(tasks, options, **how)


def outcomes_of(jobs: Sequence[Any], options: Mapping[str, Any], **how: Any) -> Iterator[Outcome]:
    """What came of each job, done as `run_all` is told by whom the options name, with a bar.

    A single process, too, is one of its own, since the libraries may end it.
    """
    scheduler, processes, quiet = options["scheduler"], options["jobs"], options["quiet"]
    with workers(scheduler, processes) as executor, progress("models", len(jobs), quiet=quiet) as advance:
        outcomes = run_all(jobs=jobs, processes=processes, executor=executor, is_apart=len(jobs) > 1, **how)
        for done, outcome in enumerate(outcomes, 1):
            advance(done, len(jobs))
            yield outcome
