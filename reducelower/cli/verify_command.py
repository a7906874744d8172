"""`reducelower verify`."""

from __future__ import annotations

from typing import Any

import click

from reducelower.cli.options import report_option, verification_options
from reducelower.cli.value_types import FILE

__all__ = ["command"]


@click.command("verify")
@click.argument("before", type=FILE, metavar="MODEL")
@click.argument("after", type=FILE, metavar="[AFTER]", required=False)
@verification_options
@report_option
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed for the values of the inputs."
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing; the exit status tells.")
def command(before: str, after: str | None, **options: Any) -> int:
    """Run two models on the same inputs and compare every output; or one model in several runtimes.

    With one model, each --runtime is compared with a trusted one, and the first operator whose output departs is
    named.

    \b
    Examples:
      reducelower verify model.onnx model13.onnx --dim batch=4
      reducelower verify model.onnx --runtime openvino
    """
    if after is None and not options["runtimes"]:
        raise click.UsageError("give a second model to compare with, or --runtime NAME to compare runtimes")
    from reducelower.cli.verify_run import verify_files

    return verify_files(before, after, options)
