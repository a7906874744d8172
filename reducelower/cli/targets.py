"""`reducelower targets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.types import RUNTIME

if TYPE_CHECKING:
    from reducelower.runtimes import Fact, Runtime

__all__ = ["command"]


@click.command("targets")
@click.argument("runtime", type=RUNTIME, required=False)
def command(runtime: Any) -> int:
    """List the runtimes that models can be made right for, or say what is known of one.

    \b
    Examples:
      reducelower targets
      reducelower targets openvino
    """
    from reducelower.cli.console import result
    from reducelower.cli.text import columns
    from reducelower.runtimes import load_runtime, shipped_names

    if runtime is None:
        for line in columns(_row(load_runtime(name)) for name in shipped_names()):
            result(line)
        return 0
    result(f"{runtime}: {runtime.about}")
    result(f"reads opsets {runtime.reads}, {runtime.prefer} rather than others")
    for fact in runtime.facts:
        result("")
        for line in _lines(fact):
            result(line)
    return 0


def _row(runtime: Runtime) -> tuple[str, ...]:
    measured = any(fact.evidence.measured for fact in runtime.facts)
    known = f"{len(runtime.facts)} facts, {'measured' if measured else 'documented'}" if runtime.facts else "no facts"
    return runtime.name, runtime.version, f"opsets {runtime.reads}", known, runtime.about


def _lines(fact: Fact) -> list[str]:
    form = ", ".join(fact.when.described())
    where = "every opset" if fact.opsets is None else f"opsets {fact.opsets}"
    return [
        f"{fact.outcome}: {fact.says}",
        f"  {', '.join(sorted(fact.operators))}; {where}{f'; {form}' if form else ''}",
        f"  {fact.evidence}",
    ]
