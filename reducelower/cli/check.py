"""`reducelower check`: what a conversion would do to models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli import console
from reducelower.cli.options import (
    EXCLUDE_OPTION,
    FOR_OPTION,
    IR_VERSION_OPTION,
    JSON_OPTION,
    MODELS,
    QUIET_OPTION,
    REPORT_OPTION,
    WITHOUT_OPTION,
    WORKERS_OPTIONS,
    Command,
    conversion_options,
    option,
    settings_of,
    target_of,
    with_options,
)
from reducelower.cli.text import check_text, github_annotations, summary
from reducelower.cli.types import OPSET

if TYPE_CHECKING:
    from reducelower.options import Settings
    from reducelower.outcome import Outcome

__all__ = ["check"]


@click.command("check", cls=Command)
@with_options(
    MODELS,
    option("--opset", "Opset version that the models should have.  [default: the model's own]", type=OPSET),
    FOR_OPTION,
    WITHOUT_OPTION,
    option(
        "--format form",
        "Report for people, as GitHub annotations, as JUnit XML.",
        type=click.Choice(["text", "json", "github", "junit"]),
        default="text",
    ),
    conversion_options("stable"),
    (IR_VERSION_OPTION, REPORT_OPTION, EXCLUDE_OPTION, *WORKERS_OPTIONS),
    option("--require-target", "Fail rather than inspect where no option says what to check for; for hooks."),
    JSON_OPTION,
    QUIET_OPTION,
    option("-v --verbose", "List every node that would be rewritten."),
)
@click.pass_context
def check(ctx: click.Context, /, models: tuple[str, ...], **options: Any) -> int:
    """Say what a conversion would rewrite and what it would refuse; nothing is written.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'. The exit status is 0 if every model fits
    as it is, 1 if one is not, 2 if one cannot be read. If no option says what to check for, it says where each model
    can go; with --require-target, a report or a format for CI, that is an error (status 2).

    \b
    Examples:
      reducelower check models/ --opset 13 --format github
      reducelower check model.onnx --for openvino
    """
    if options["form"] == "json":
        console.warning("--format json will go; --json prints one object per model, a line each")
    asks_nothing = not any(options[name] for name in ("opset", "for_runtimes", "without"))
    if asks_nothing and options["ir_version"] in ("auto", "keep"):
        if options["require_target"] or options["reports"] or options["form"] in ("github", "junit"):
            raise click.UsageError("say what to check for: --opset N, --for NAME, --without OPERATOR or several", ctx)
        from reducelower.cli.inspection import inspect_all

        as_json, quiet = options["form"] == "json" or options["as_json"], options["quiet"]
        return inspect_all(models, as_json=as_json, short=True, exclude=options["exclude"], quiet=quiet)
    settings = settings_of(target_of(options, ctx), options)
    return _check_all(models, replace(settings, details=bool(options["reports"])), options)


def _check_all(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> int:
    """Check every model that the command line names, report, and return the exit status."""
    from reducelower.batch.inputs import find_models
    from reducelower.batch.many import check_file, crashed
    from reducelower.cli.conversion import outcomes_of, warn_of_names
    from reducelower.cli.reports import check_report_paths, write_reports
    from reducelower.cli.streams import on_standard_output, staged

    if options["scheduler"]:
        from reducelower.batch.cluster import anchored, anchored_settings

        models, settings = anchored(models), anchored_settings(settings)
    on_standard_output(options)
    with staged(models, None) as files:
        paths = [model.path for model in find_models(files.models, exclude=options["exclude"])]
        check_report_paths(options["reports"], paths)
        work = partial(check_file, settings=settings)
        checked = list(map(files.named, outcomes_of(paths, options, work=work, crashed=crashed)))
    if options["as_json"]:
        from reducelower.report.plain import json_line

        for found in checked:
            console.data_result(json_line(found))
    if options["as_json"] or options["form"] == "json":
        warn_of_names(checked)
    if options["form"] == "text":
        for problem in (problem for found in checked for problem in found.problems):
            console.problem(problem)
    if not options["quiet"] and not options["as_json"]:
        text = _answer(options["form"], checked, verbose=options["verbose"])
        if text:
            (console.result if options["form"] == "text" else console.data_result)(text)
    write_reports("check", checked, options["reports"])
    return max(found.status for found in checked)


def _answer(form: str, models: Sequence[Outcome], *, verbose: bool) -> str:
    """What `check` says about models, in one of its forms."""
    from reducelower.report import Report, render

    if form == "text":
        alone = len(models) == 1
        told = [model for model in models if verbose or alone or model.verdict != "fits"]
        texts = [text for model in told if (text := check_text(model, verbose=verbose))]
        return "\n".join(texts if alone else [*texts, summary(models)])
    if form == "github":
        return github_annotations(models)
    return render(Report("check", tuple(models)), {"json": ".json", "junit": ".xml"}[form]).rstrip("\n")
