"""`reducelower raise`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from reducelower.cli.options import (
    REPAIR_OPTION,
    Command,
    model_options,
    output_options,
    report_option,
    settings_of,
    verification_options,
)
from reducelower.cli.types import FILE, OPERATOR, RULES

__all__ = ["command"]


@click.command("raise", cls=Command)
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option(
    "--op",
    "operators",
    type=OPERATOR,
    multiple=True,
    help="Operator to raise to; repeatable.  [default: all that there are forms for]",
)
@output_options
@click.option(
    "--rules",
    type=RULES,
    default="core",
    metavar="DIR",
    help="Folder of rules whose bodies are looked for, besides those that come with reducelower.",
)
@model_options
@REPAIR_OPTION
@verification_options
@report_option
def command(models: tuple[str, ...], operators: tuple[str, ...], **options: Any) -> int:
    """Fold primitive forms into the operators they spell out, and verify: the way back from expand.

    Composite Reduce operators, LayerNormalization, RMSNormalization, GroupNormalization, InstanceNormalization,
    LpNormalization, Softmax, LogSoftmax and Gelu, as far as the model's opset version has them. What only looks like
    one is left, and the reason said.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx', or the URL of one where fsspec is installed.

    \b
    Examples:
      reducelower raise expanded.onnx -o model.onnx
      reducelower raise expanded.onnx -o model.onnx --op LayerNormalization
    """
    from reducelower.cli.conversion import convert_all
    from reducelower.model.suggestions import did_you_mean
    from reducelower.options import Target
    from reducelower.recompose import known_operators

    known = known_operators((options["rules"],))
    for name in operators:
        if name not in known:
            raise click.UsageError(f"there is no form of {name} to look for{did_you_mean(name, known)}")
    settings = replace(settings_of(Target(), options), ir_version="keep", raised=operators)
    return convert_all("raise", models, settings, options)
