"""`reducelower check`."""

from __future__ import annotations

from typing import Any

import click

from reducelower.cli.options import (
    FOR_OPTION,
    IR_VERSION_OPTION,
    conversion_options,
    report_option,
    target_of,
    workers_options,
)
from reducelower.cli.value_types import FILE, OPERATOR, OPSET

__all__ = ["command"]


@click.command("check")
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option("--opset", type=OPSET, help="Opset version that the models should have.  [default: the model's own]")
@FOR_OPTION
@click.option("--without", type=OPERATOR, multiple=True, help="Operator that must not remain; can be given many times.")
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
@workers_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but problems; the exit status tells.")
@click.option("-v", "--verbose", is_flag=True, help="List every node that would be rewritten.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    models: tuple[str, ...],
    opset: int | None,
    runtime: Any,
    without: tuple[str, ...],
    **options: Any,
) -> int:
    """Say what a conversion would rewrite and what it would refuse; nothing is written.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'. The exit status is 0 when every model is legal
    as it is, 1 when one is not, 2 when one cannot be read.

    \b
    Examples:
      reducelower check models/ --opset 13 --format github
      reducelower check model.onnx --for openvino
    """
    if opset is None and runtime is None and not without:
        raise click.UsageError("say what to check for: --opset N, --for NAME, --without NAME or several of them", ctx)
    from reducelower.cli.check_run import check_all

    return check_all(models, target_of(runtime, opset, without, options["without_types"], ctx), options)
