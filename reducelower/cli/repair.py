"""`reducelower repair`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from reducelower.cli.options import (
    Command,
    model_options,
    output_options,
    report_option,
    settings_of,
    verification_options,
)
from reducelower.cli.types import FILE

__all__ = ["command"]


@click.command("repair", cls=Command)
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@output_options
@model_options
@verification_options
@report_option
def command(models: tuple[str, ...], **options: Any) -> int:
    """Mend models that runtimes run and the ONNX checker refuses, at the opset version they have.

    Nodes are put in order, missing opset imports added, the IR version made to fit, stated types that contradict what
    the nodes yield dropped; what was done is said. What is computed stays as it is.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx', or the URL of one where fsspec is installed.

    \b
    Examples:
      reducelower repair model.onnx -o mended.onnx
      reducelower repair models/ --output-dir mended/
    """
    from reducelower.cli.conversion import convert_all
    from reducelower.options import Target

    settings = replace(settings_of(Target(), options), ir_version="keep", repair=True)
    return convert_all("repair", models, settings, options)
