"""`reducelower rules` and `targets`: show rule books and the facts about runtimes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.console import result
from reducelower.cli.options import option, takes
from reducelower.cli.text import columns
from reducelower.cli.types import OPERATOR, RULES, RUNTIME
from reducelower.text import did_you_mean

if TYPE_CHECKING:
    from reducelower.runtimes import Fact, Runtime

__all__ = ["rules", "targets"]


@click.command(
    "rules",
    params=takes(
        click.Argument(["operator"], type=OPERATOR, required=False),
        option("--rules book_name", "The rule book.", type=RULES, default="spec"),
    ),
)
def rules(operator: str | None, book_name: str) -> int:
    """List the rules of a rule book, or show those for one operator, and those for its version boundaries.

    What is shown can be copied and changed. A folder of your own is checked.

    \b
    Examples:
      reducelower rules --rules stable
      reducelower rules ReduceLogSumExp
      reducelower rules --rules my_rules/
    """
    from reducelower.rulebook import load_book
    from reducelower.rulebook.boundaries import shipped
    from reducelower.rulebook.reading import texts

    book = load_book(book_name)
    at_boundaries = shipped().rules(operator) if operator else ()
    shown_rules = [rule for name in book.operators if operator in (None, name) for rule in book.rules(name)]
    if operator and not shown_rules and (book_name != "spec" or not at_boundaries):
        hint = did_you_mean(operator, book.operators)
        raise click.UsageError(f"the rule book {book.name!r} has no rule for {operator}{hint}")
    if operator is None:
        result(*columns((rule.name, rule.element_types, rule.identity) for rule in shown_rules))
    else:
        result(*(f"{text}\n" for text in texts([*shown_rules, *at_boundaries])))
    return 0


@click.command("targets", params=takes(click.Argument(["runtime"], type=RUNTIME, required=False)))
def targets(runtime: Any) -> int:
    """List the runtimes that models can be made right for, or say what is known of one.

    A name may be followed by @ and any version: one that is listed, the beginning of one, or one between two, which
    gets the facts of both.

    \b
    Examples:
      reducelower targets
      reducelower targets openvino
      reducelower targets onnxruntime@1.16
    """
    from reducelower.runtimes import load_runtime, shipped_names, shipped_versions

    if runtime is None:
        result(*columns(_row(load_runtime(name)) for name in shipped_names()))
        return 0
    result(f"{runtime}: {runtime.about}", f"reads opsets {runtime.reads}; prefers {runtime.prefer}")
    result(*filter(None, [runtime.note]))
    if runtime.name in shipped_names():
        versions = [load_runtime(f"{runtime.name}@{each}") for each in filter(None, shipped_versions(runtime.name))]
        result(*columns((f"  {each}", f"opsets {each.reads}", _fact_counts(each)) for each in versions))
    for fact in runtime.facts:
        result("", *_lines(fact))
    return 0


def _row(runtime: Runtime) -> tuple[str, ...]:
    from reducelower.runtimes import shipped_versions

    versions = shipped_versions(runtime.name)
    span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
    return runtime.name, span, f"opsets {runtime.reads}", _fact_counts(runtime), runtime.about


def _fact_counts(runtime: Runtime) -> str:
    """The number of facts, how they were found, and the date of the newest."""
    if not runtime.facts:
        return "no facts"
    counts = Counter("measured" if fact.evidence.measured else "documented" for fact in runtime.facts)
    last = max((fact.evidence.on for fact in runtime.facts if fact.evidence.on), default=None)
    text = " and ".join(f"{counts[how]} {how}" for how in ("measured", "documented") if counts[how])
    return f"{text}, {last}" if last else text


def _lines(fact: Fact) -> list[str]:
    form = ", ".join(fact.when.described())
    where = "every opset" if fact.opsets is None else f"opsets {fact.opsets}"
    return [
        f"{fact.outcome}: {fact.says}",
        f"  {', '.join(sorted(fact.operators or fact.model))}; {where}{f'; {form}' if form else ''}",
        f"  {fact.evidence}",
    ]
