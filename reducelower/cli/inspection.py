"""`reducelower inspect`: the contents of a model, reachable opset versions and runtimes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from reducelower.cli import console
from reducelower.cli.console import shown
from reducelower.cli.options import option, takes
from reducelower.cli.text import columns, paragraph
from reducelower.cli.types import RUNTIME
from reducelower.errors import DONE, REFUSED, describe

if TYPE_CHECKING:
    from reducelower.pipeline.inspection import Inspected
    from reducelower.pipeline.where import OnRuntime
    from reducelower.runtimes import Runtime

__all__ = ["inspect"]

_KINDS = {
    "wrong": "wrong",
    "refused": "refused",
    "absent": "missing",
    "misshapen": "of another shape",
    "overflows": "wrong for large values",
    "elsewhere": "on the CPU",
}
"""The words for each outcome."""


@click.command(
    "inspect",
    params=takes(
        "models",
        option(
            "--for runtimes",
            "Runtime to look at, such as opencv@4.12, in place of the newest of each; repeatable.",
            type=RUNTIME,
            multiple=True,
        ),
        "--json",
    ),
)
def inspect(models: tuple[str, ...], runtimes: tuple[Runtime, ...], as_json: bool) -> int:
    """Say what is in a model, which opset versions it can reach, and on which runtimes it runs.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'. The exit status is 0, or 1 for a model that is
    not valid, or 2 for one that cannot be read.

    \b
    Examples:
      reducelower inspect model.onnx
      reducelower inspect model.onnx --for opencv@4.12 --for openvino
    """
    import json

    from reducelower.batch.inputs import find_models
    from reducelower.pipeline.inspection import inspect_file

    status = DONE
    for model in find_models(models):
        try:
            inspected = inspect_file(model.path, runtimes=runtimes or None)
        except Exception as error:  # a bad model must not stop the others
            problems, worst = describe(error, model.path)
            for problem in problems:
                console.problem(problem)
            status = max(status, worst)
            continue
        if as_json:
            console.result(json.dumps(asdict(inspected), allow_nan=False))  # `$defs/inspected` of the schema
        else:
            console.result(full_text(inspected))
        status = max(status, REFUSED if inspected.problem else DONE)
    return status


def full_text(inspected: Inspected) -> str:
    """Everything about a model."""
    rows = {
        "opset": [f"{domain} {version}" for domain, version in inspected.opsets.items()],
        "IR version": [str(inspected.ir_version)],
        "written by": [inspected.producer or "not stated"],
        "size": [_bytes(inspected.size)],
        "external": [f"{location} ({_bytes(size)})" for location, size in inspected.external.items()],
        "inputs": map(str, inspected.inputs),
        "outputs": map(str, inspected.outputs),
        "weights": [f"{count:,} {name}" for name, count in inspected.weights.items()],
        "operators": [f"{name} {count}" for name, count in inspected.operators.items()],
    }
    lines = [shown(inspected.path)]
    for name, texts in rows.items():
        lines += paragraph(name, ", ".join(texts) or "none")
    return "\n".join([*lines, *_where(inspected)])


def _where(inspected: Inspected) -> list[str]:
    from reducelower.runtimes import Ranges

    if inspected.problem:
        return paragraph("not valid", inspected.problem)
    lines = paragraph("reaches", f"opsets {Ranges.of(inspected.reaches)}" if inspected.reaches else "no other opset")
    for opset, reason in (inspected.blocked or {}).items():
        lines += paragraph("", f"not {opset}: {reason}")
    if not inspected.runtimes:
        return lines
    lines.append("  runs on")
    lines += [f"    {line}" for line in columns(_row(each) for each in inspected.runtimes)]
    flawed = next((each for each in inspected.runtimes if each.faults), inspected.runtimes[0])
    runtime = f"{flawed.name}@{flawed.version}".removesuffix("@")
    return [*lines, f"  {'details':<11} reducelower check {shown(inspected.path)} --for {runtime}"]


def _row(each: OnRuntime) -> tuple[str, ...]:
    detail = ", ".join(map(_KINDS.__getitem__, each.faults))
    between = " but " if each.word in ("runs", "nothing known against it") else ": "
    documented = " (documented)" if each.is_documented else ""
    return each.name, each.version, f"{each.word}{between if detail else ''}{detail}{documented}"


def _bytes(size: int) -> str:
    """A size in a readable unit."""
    power = min((size.bit_length() - 1) // 10, 3)
    return f"{size / 1024**power:.1f} {('KiB', 'MiB', 'GiB')[power - 1]}" if power > 0 else f"{size} bytes"
