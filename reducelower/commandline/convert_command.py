"""`reducelower convert`."""

from __future__ import annotations

from typing import Any

import click

from reducelower.commandline.options import (
    IR_VERSION_OPTION,
    OPERATOR,
    OPSET,
    conversion_options,
    output_options,
    report_option,
    verification_options,
)

__all__ = ["command"]


@click.command("convert")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--opset", type=OPSET, required=True, help="Opset version to convert to.")
@output_options
@click.option("--without", type=OPERATOR, multiple=True, help="Operator that must not remain; can be given many times.")
@conversion_options("spec")
@IR_VERSION_OPTION
@verification_options
@report_option
def command(models: tuple[str, ...], opset: int, without: tuple[str, ...], **options: Any) -> int:
    """Convert models to another opset version, up or down, and verify them.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'.

    \b
    Examples:
      reducelower convert model.onnx -o model13.onnx --opset 13
      reducelower convert models/ --output-dir converted/ --opset 17 --jobs 4
    """
    from reducelower.commandline.conversion_run import convert_all
    from reducelower.target import Target

    return convert_all(
        "convert", models, Target(opset, frozenset(without), frozenset(options["without_types"])), options
    )
