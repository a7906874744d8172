"""`reducelower convert`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from reducelower.cli.options import (
    FOR_OPTION,
    IR_VERSION_OPTION,
    REPAIR_OPTION,
    Command,
    conversion_options,
    output_options,
    report_option,
    settings_of,
    target_of,
    verification_options,
)
from reducelower.cli.types import FILE, OPERATOR, OPSET

__all__ = ["command"]


@click.command("convert", cls=Command)
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option("--opset", type=OPSET, help="Opset version to convert to.  [default with --for: whichever suits it]")
@FOR_OPTION
@output_options
@click.option("--without", type=OPERATOR, multiple=True, help="Operator that must not remain; repeatable.")
@click.option(
    "--raise",
    "is_raised",
    is_flag=True,
    help="Then fold what spells out a normalization or a composite reduction into that operator, as raise does.",
)
@conversion_options("stable")
@IR_VERSION_OPTION
@REPAIR_OPTION
@verification_options
@report_option
@click.pass_context
def command(ctx: click.Context, /, models: tuple[str, ...], **options: Any) -> int:
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
    from reducelower.cli.conversion import convert_all

    settings = settings_of(target_of(options, ctx), options)
    if options["is_raised"]:
        settings = replace(settings, raised=())
    return convert_all("convert", models, settings, options)
