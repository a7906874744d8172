"""`reducelower probe`."""

from __future__ import annotations

from typing import Any

import click

from reducelower.cli.value_types import OPERATOR

__all__ = ["command"]


@click.command("probe")
@click.option("--runtime", metavar="NAME", help="A runtime that reducelower has an adapter for.")
@click.option(
    "--python",
    "function",
    metavar="MODULE:FUNCTION",
    help="A function from model bytes and {name: array} to a list of arrays.",
)
@click.option(
    "--command",
    "template",
    metavar="COMMAND",
    help="A command with the placeholders {model}, {inputs} and {outputs}; the last two are .npz files.",
)
@click.option("--interpreter", metavar="PYTHON", help="The Python that has the runtime; it needs numpy.")
@click.option("--name", help="Name of the target.  [default: that of the runtime, or of the output file]")
@click.option("--runtime-version", "version", help="Version of the runtime, where it cannot tell itself.")
@click.option("-o", "--output", required=True, metavar="FILE.toml", help="The target file to write.")
@click.option(
    "--report", "reports", multiple=True, metavar="FILE", help="Report to write: .html, .json or .txt; many times."
)
@click.option("--results", metavar="FILE.jsonl", help="Keep every result here, and go on from what is there already.")
@click.option("--op", "operators", type=OPERATOR, multiple=True, help="Operator to try; many times.  [default: all]")
@click.option(
    "--time-limit", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True, metavar="SECONDS",
    help="For one model; one that takes longer is a finding.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Workers side by side.")
@click.option("--force", is_flag=True, help="Replace an existing target file.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but what went wrong.")
def command(**options: Any) -> int:
    """Find out by measurement what is legal on a runtime, and write it as a target file.

    A conformance suite of small models runs on the runtime, each in a worker process: one that crashes or hangs is a
    finding, not the end.

    \b
    Examples:
      reducelower probe --runtime openvino -o openvino.toml --report openvino.html
      reducelower probe --runtime tvm --interpreter tvm/bin/python -o tvm.toml --results tvm.jsonl
      reducelower probe --python my_runtime:run -o mine.toml
      reducelower probe --command './runner {model} {inputs} {outputs}' -o phone.toml
    """
    from reducelower.cli.probe_run import run_probe

    return run_probe(options)
