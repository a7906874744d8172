"""`reducelower check` and `inspect`: what a conversion would do to models, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli import console
from reducelower.cli.console import shown
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
from reducelower.cli.text import check_text, github_annotations, paragraph, summary
from reducelower.cli.types import OPSET
from reducelower.failures import DONE, FAULT, REFUSED, describe, trace_lines, wants_trace
from reducelower.model.text import counted

if TYPE_CHECKING:
    from reducelower.options import Settings
    from reducelower.outcome import Outcome
    from reducelower.pipeline.inspection import Inspected

__all__ = ["check", "inspect"]


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
        as_json, quiet = options["form"] == "json" or options["as_json"], options["quiet"]
        return inspect_all(models, as_json=as_json, short=True, exclude=options["exclude"], quiet=quiet)
    settings = settings_of(target_of(options, ctx), options)
    return _check_all(models, replace(settings, details=bool(options["reports"])), options)


def _check_all(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> int:
    """Check every model that the command line names, report, and return the exit status."""
    from reducelower.batch.inputs import find_models
    from reducelower.batch.many import check_file, crashed
    from reducelower.cli.conversion import outcomes_of
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


_MOST_OPERATORS = 40
_MOST_FAULTS = 3


@click.command("inspect")
@with_options(MODELS, JSON_OPTION)
def inspect(models: tuple[str, ...], as_json: bool) -> int:
    """Say what is in a model, which opset versions it can reach, and which runtimes would get it wrong.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx', or the URL of one where fsspec is installed; - is
    standard input. The exit status is 0, or 1 for a model that is not valid, or 2 for one that cannot be read.

    \b
    Examples:
      reducelower inspect model.onnx
      reducelower inspect models/ --json
    """
    return inspect_all(models, as_json=as_json)


def inspect_all(
    models: Sequence[str], *, as_json: bool, short: bool = False, exclude: Sequence[str] = (), quiet: bool = False
) -> int:
    """Inspect every model that the command line names, and return the exit status.

    In short it leaves out what a model holds, and says where it can go.
    """
    import json

    from reducelower.batch.inputs import find_models
    from reducelower.batch.staging import at_hand
    from reducelower.cli.streams import staged
    from reducelower.pipeline.inspection import inspect_file

    status = DONE
    with staged(models, None) as files:
        for model in find_models(files.models, exclude=exclude):
            named = files.names.get(model.path, model.path)
            try:
                with at_hand(model.path) as local:
                    found = replace(inspect_file(local), path=named)
            except Exception as error:  # whatever is wrong with one model, the others are inspected
                problems, worst = describe(error, model.path)
                for problem in (*problems, *(trace_lines() if worst == FAULT and wants_trace() else ())):
                    console.problem(problem.replace(model.path, named))
                status = max(status, worst)
                continue
            if as_json and not quiet:
                console.data_result(json.dumps(asdict(found), allow_nan=False))  # `$defs/inspected` of the schema
            elif not quiet:
                console.result(short_text(found) if short else full_text(found))
            status = max(status, REFUSED if found.problem else DONE)
    return status


def full_text(found: Inspected) -> str:
    """Everything about a model."""
    names = list(found.operators)
    operators = [f"{name} {found.operators[name]}" for name in names[:_MOST_OPERATORS]]
    if len(names) > _MOST_OPERATORS:
        operators.append(f"and {len(names) - _MOST_OPERATORS} more")
    external = [f"{location} ({_bytes(size)})" for location, size in found.external.items()]
    rows = [
        ("opset", ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())),
        ("IR version", str(found.ir_version)),
        ("written by", found.producer or "not stated"),
        ("size", _bytes(found.size)),
        ("external data", ", ".join(external) or "none"),
        ("inputs", ", ".join(map(str, found.inputs)) or "none"),
        ("outputs", ", ".join(map(str, found.outputs)) or "none"),
        ("weights", ", ".join(f"{count:,} {name}" for name, count in found.weights.items()) or "none"),
        ("operators", ", ".join(operators) or "none"),
    ]
    lines = [shown(found.path)]
    for name, text in rows:
        lines += paragraph(name, text)
    return "\n".join([*lines, *_where(found)])


def short_text(found: Inspected) -> str:
    """Where a model can go."""
    opset = found.opsets.get("ai.onnx", 0)
    count = sum(found.operators.values())
    line = f"{shown(found.path)}: opset {opset}, IR version {found.ir_version}, {counted(count, 'node')}"
    return "\n".join([line, *_where(found, most=1)])


def _where(found: Inspected, most: int = _MOST_FAULTS) -> list[str]:
    from reducelower.runtimes import Ranges

    if found.problem:
        return paragraph("not valid", found.problem)
    lines = paragraph("reaches", f"opsets {Ranges.of(found.reaches)}" if found.reaches else "no other opset")
    for opset, reason in (found.blocked or {}).items():
        lines += paragraph("", f"not {opset}: {reason}")
    right = [item.runtime for item in found.runtimes if item.is_right]
    lines += paragraph("right on", ", ".join(right) or "no runtime that is known")
    for item in found.runtimes:
        if item.is_right:
            continue
        faults = list(item.wrong[:most])
        if len(item.wrong) > most:
            faults.append(f"and {len(item.wrong) - most} more")
        lines += paragraph("wrong on" if item.reads else "not read by", f"{item.runtime}: {'; '.join(faults)}")
    return lines


def _bytes(size: int) -> str:
    """A size as people read it."""
    power = min((size.bit_length() - 1) // 10, 3)
    return f"{size / 1024**power:.1f} {('KiB', 'MiB', 'GiB')[power - 1]}" if power > 0 else f"{size} bytes"
