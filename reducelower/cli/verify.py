"""`reducelower verify`: two models compared, or one model in several runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.options import JSON_OPTION, Command, report_option, settings_of, verification_options
from reducelower.cli.types import FILE
from reducelower.failures import DONE, REFUSED

if TYPE_CHECKING:
    from reducelower.files import LoadedModel
    from reducelower.options import Settings
    from reducelower.report.facts import Verdict
    from reducelower.verification import RuntimeComparison, Verification

__all__ = ["command"]


@click.command("verify", cls=Command)
@click.argument("before", type=FILE, metavar="MODEL")
@click.argument("after", type=FILE, metavar="[AFTER]", required=False)
@verification_options
@report_option
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed for the values of the inputs."
)
@JSON_OPTION
@click.option("--allow-not-shown", is_flag=True, help="Status 0 too where nothing differs but not all could be seen.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only; the exit status tells.")
def command(before: str, after: str | None, **options: Any) -> int:
    """Run what differs between two models by itself, then both, and compare; or one model in several runtimes.

    Status 0 means equivalent, 1 different or not shown.

    With one model, each --runtime is compared with a trusted one, and the first operator whose output departs is
    named.

    \b
    Examples:
      reducelower verify model.onnx model13.onnx --dim batch=4
      reducelower verify model.onnx --runtime openvino
    """
    if after is None and not options["runtimes"]:
        raise click.UsageError("give a second model to compare with, or --runtime NAME to compare runtimes")
    from reducelower.cli.streams import at_hand, on_standard_output

    on_standard_output(options)
    with at_hand([name for name in (before, after) if name is not None]) as (names, paths):
        return _verify(names, paths, options)


def _verify(names: Sequence[str], paths: Sequence[str], options: dict[str, Any]) -> int:
    """Compare models of this machine, which the user knows by other names, report, and return the exit status."""
    from reducelower.batch.input_values import read_data_sets
    from reducelower.batch.verifying import require_runtimes, verify_models
    from reducelower.cli import console
    from reducelower.cli.progress import steps
    from reducelower.files import read_model
    from reducelower.options import Target

    after = names[1] if len(names) > 1 else ""
    reports = options["reports"]
    if reports:
        from reducelower.cli.reports import check_report_paths

        check_report_paths(reports, names)
    settings = settings_of(Target(), options)
    require_runtimes(settings)
    source = read_model(paths[0])
    found: Verification | None = None
    comparisons: list[RuntimeComparison] = []
    if not after:
        comparisons = _in_runtimes(source, settings, options["seed"])
        same, complete = all(item.agrees for item in comparisons), all(item.ran for item in comparisons)
        complete = complete or not settings.strict
    else:
        data_sets = read_data_sets(settings, source.model)
        with steps(quiet=options["quiet"]) as on_step:
            on_step("read", 0, 0)
            result = read_model(paths[1])
            on_step("verify", 0, 0)
            counted = partial(on_step, "verify")
            found = verify_models(source, result, settings, data_sets, seed=options["seed"], on_progress=counted)
        same, complete = found.verdict != "different", found.equivalent
        if settings.strict:
            complete = complete and not (found.departing or found.departs)
    if not options["quiet"] and not options["as_json"]:
        for item in [found] if found is not None else comparisons:
            console.result(console.shown(str(item)))
    if reports or options["as_json"]:
        from reducelower.cli.reports import write_reports
        from reducelower.report import ModelReport
        from reducelower.report.plain import json_line

        unproven: Verdict = "not verified" if options["allow_not_shown"] else "not shown"
        verdict: Verdict = "different" if not same else "equivalent" if complete else unproven
        model = ModelReport(names[0], verdict, after, verification=found, comparisons=tuple(comparisons))
        if options["as_json"]:
            console.data_result(json_line(model))
        write_reports("verify", [model], reports)
    return DONE if same and (complete or options["allow_not_shown"]) else REFUSED


def _in_runtimes(source: LoadedModel, settings: Settings, seed: int) -> list[RuntimeComparison]:
    """One comparison per runtime and set of inputs."""
    from reducelower.batch.input_values import read_data_sets
    from reducelower.verification import compare_runtimes
    from reducelower.verification.providers import on_provider

    with on_provider(settings.provider):
        return [
            compare_runtimes(
                source.path if source.is_partial else source.model,
                runtime,
                inputs=data.inputs,
                seed=seed,
                dims=settings.dims,
                tolerances=settings.tolerances or None,
                budget=settings.budget,
            )
            for data in read_data_sets(settings, source.model)
            for runtime in dict.fromkeys(settings.runtimes)
        ]
