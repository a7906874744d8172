"""`reducelower check`: what a conversion would do to models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.options import (
    EXCLUDE_OPTION,
    FOR_OPTION,
    FORMAT_OPTION,
    IR_VERSION_OPTION,
    JSON_OPTION,
    MODELS,
    QUIET_OPTION,
    REPORT_OPTION,
    WITHOUT_OPTION,
    WORKERS_OPTIONS,
    conversion_options,
    option,
    settings_of,
    target_of,
    with_options,
)
from reducelower.cli.telling import tell
from reducelower.cli.text import full_text
from reducelower.cli.types import OPSET

if TYPE_CHECKING:
    from reducelower.options import Settings
    from reducelower.outcome import Outcome

__all__ = ["check"]


@click.command("check")
@with_options(
    MODELS,
    option("--opset", "Opset version that the models should have.  [default: the model's own]", type=OPSET),
    FOR_OPTION,
    WITHOUT_OPTION,
    FORMAT_OPTION,
    conversion_options("stable"),
    (IR_VERSION_OPTION, REPORT_OPTION, EXCLUDE_OPTION, *WORKERS_OPTIONS),
    JSON_OPTION,
    QUIET_OPTION,
    option("-v --verbose", "List every node that would be rewritten."),
)
@click.pass_context
def check(ctx: click.Context, /, models: tuple[str, ...], **options: Any) -> int:
    """Say what a conversion would rewrite and what it would refuse; nothing is written.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'. The exit status is 0 if every model fits
    as it is, 1 if one is not, 2 if one cannot be read. Where a model can go says inspect.

    \b
    Examples:
      reducelower check models/ --opset 13 --format github
      reducelower check model.onnx --for openvino
    """
    asks_nothing = not any(options[name] for name in ("opset", "for_runtimes", "without", "domains"))
    if asks_nothing and options["ir_version"] in ("auto", "keep"):
        raise click.UsageError(
            "say what to check for: --opset N, --for NAME, --without OPERATOR or several; "
            "inspect says where models can go",
            ctx,
        )
    settings = settings_of(target_of(options, ctx), options)
    return _check_all(models, settings, options)


def _check_all(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> int:
    """Check the models, report, and return the exit status."""
    from reducelower.batch.inputs import find_models
    from reducelower.batch.many import check_file, crashed
    from reducelower.cli.conversion import outcomes_of
    from reducelower.cli.reports import check_report_paths

    if options["scheduler"]:
        from reducelower.batch.cluster import anchored, anchored_settings

        models, settings = anchored(models), anchored_settings(settings)
    paths = [model.path for model in find_models(models, exclude=options["exclude"])]
    check_report_paths(options["reports"], paths)

    def text(outcome: Outcome) -> str:
        is_shown = options["verbose"] or len(paths) == 1 or outcome.verdict != "fits"
        return full_text(outcome, verbose=options["verbose"]) if is_shown and outcome.plan is not None else ""

    work = partial(check_file, settings=settings)
    with closing(outcomes_of(paths, options, work=work, crashed=crashed)) as outcomes:
        return tell("check", outcomes, len(paths), options, text)
