"""`reducelower check`: a plan per model, and one report about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.options import (
    EXCLUDE_OPTION,
    FOR_OPTION,
    IR_VERSION_OPTION,
    Command,
    conversion_options,
    report_option,
    settings_of,
    target_of,
    workers_options,
)
from reducelower.cli.types import FILE, OPERATOR, OPSET

if TYPE_CHECKING:
    from reducelower.options import Settings
    from reducelower.report import ModelReport

__all__ = ["command"]


@click.command("check", cls=Command)
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option("--opset", type=OPSET, help="Opset version that the models should have.  [default: the model's own]")
@FOR_OPTION
@click.option("--without", type=OPERATOR, multiple=True, help="Operator that must not remain; repeatable.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "junit"]),
    default="text",
    show_default=True,
    help="Report for people, for programs, as GitHub annotations, as JUnit XML.",
)
@conversion_options("stable")
@IR_VERSION_OPTION
@report_option
@EXCLUDE_OPTION
@workers_options
@click.option(
    "--require-target",
    is_flag=True,
    help="Fail where nothing says what to check for, as for hooks, instead of inspecting.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print errors only; the exit status tells.")
@click.option("-v", "--verbose", is_flag=True, help="List every node that would be rewritten.")
@click.pass_context
def command(ctx: click.Context, /, models: tuple[str, ...], **options: Any) -> int:
    """Say what a conversion would rewrite and what it would refuse; nothing is written.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'. The exit status is 0 when every model is legal
    as it is, 1 when one is not, 2 when one cannot be read. Without anything to check for, say where each model can go;
    with --require-target, with a report and in the forms for CI that is bad usage (status 2).

    \b
    Examples:
      reducelower check models/ --opset 13 --format github
      reducelower check model.onnx --for openvino
    """
    if not any(options[name] for name in ("opset", "for_runtimes", "without")) and options["ir_version"] in (
        "auto",
        "keep",
    ):
        if options["require_target"] or options["reports"] or options["form"] in ("github", "junit"):
            raise click.UsageError("say what to check for: --opset N, --for NAME, --without OPERATOR or several", ctx)
        from reducelower.cli.inspect import inspect_all

        return inspect_all(models, as_json=options["form"] == "json", short=True)
    settings = settings_of(target_of(options, ctx), options)
    return _check_all(models, replace(settings, details=bool(options["reports"])), options)


def _check_all(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> int:
    """Check every model that the command line names, report, and return the exit status."""
    from reducelower.batch.checking import check_file
    from reducelower.batch.inputs import find_models
    from reducelower.batch.many import check_crashed
    from reducelower.batch.running import run_all, workers
    from reducelower.cli import console
    from reducelower.cli.progress import progress
    from reducelower.cli.reports import check_report_paths, of_check, write_reports

    scheduler: str | None = options["scheduler"]
    if scheduler:
        from reducelower.batch.cluster import anchored, anchored_settings

        models, settings = anchored(models), anchored_settings(settings)
    paths = [model.path for model in find_models(models, exclude=options["exclude"])]
    check_report_paths(options["reports"], paths)
    checked = []
    work, jobs = partial(check_file, settings=settings), options["jobs"]
    with workers(scheduler, jobs) as executor, progress("models", len(paths), quiet=options["quiet"]) as advance:
        for found in run_all(work, paths, jobs, check_crashed, executor=executor):
            checked.append(found)
            advance(len(checked), len(paths))
    if options["form"] == "text":
        for problem in (problem for found in checked for problem in found.problems):
            console.problem(problem)
    facts = [of_check(found) for found in checked]
    if not options["quiet"]:
        text = _answer(options["form"], facts, verbose=options["verbose"])
        if text:
            (console.result if options["form"] == "text" else console.data_result)(text)
    write_reports("check", facts, options["reports"])
    return max(found.status for found in checked)


def _answer(form: str, models: Sequence[ModelReport], *, verbose: bool) -> str:
    """What `check` says about models, in one of its forms."""
    from reducelower.cli.text import check_text, github_annotations
    from reducelower.report import Report, render

    if form == "text":
        return check_text(models, verbose=verbose)
    if form == "github":
        return github_annotations(models)
    return render(Report("check", tuple(models)), {"json": ".json", "junit": ".xml"}[form]).rstrip("\n")
