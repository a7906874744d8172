"""`reducelower expand`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from reducelower.cli.options import (
    REPAIR_OPTION,
    Command,
    conversion_options,
    output_options,
    report_option,
    settings_of,
    verification_options,
)
from reducelower.cli.types import FILE, OPERATOR

__all__ = ["command"]


@click.command("expand", cls=Command)
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option(
    "--op",
    "operators",
    type=OPERATOR,
    multiple=True,
    help="Operator to replace; repeatable.  [default: the composite Reduce operators]",
)
@output_options
@conversion_options("spec")
@REPAIR_OPTION
@verification_options
@report_option
def command(models: tuple[str, ...], operators: tuple[str, ...], **options: Any) -> int:
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
    from reducelower.cli.conversion import convert_all
    from reducelower.options import Target
    from reducelower.rulebook import load_book

    names = operators or load_book(options["rules"]).reductions
    target = Target(None, frozenset(names), frozenset(options["without_types"]))
    return convert_all("expand", models, replace(settings_of(target, options), ir_version="keep"), options)
