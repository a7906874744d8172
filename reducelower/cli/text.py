"""The results of conversions as text and columns."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from reducelower.cli.console import result, shown, width
from reducelower.failures import DONE, REFUSED
from reducelower.model.text import counted
from reducelower.plan import Plan, Site

if TYPE_CHECKING:
    from reducelower.outcome import Outcome
    from reducelower.verification import Verification

__all__ = ["check_text", "columns", "github_annotations", "paragraph", "show", "show_summary"]


_MOST_ROWS = 40
_COLOURS = {"equal": "green", "improved": "green", "overflow": "yellow", "not run": "yellow", "different": "red"}


def full_report(outcome: Outcome, *, verbose: bool) -> str:
    """Everything about one converted model; with `verbose`, every site."""
    if outcome.kept:
        return short_report(outcome)
    plan = outcome.plan
    if plan is None:
        return ""
    # Warnings are in the first line, so that nobody misses them.
    warned = f"; WARNING: {shown('; '.join(outcome.warnings))}" if outcome.warnings else ""
    lines = [f"{shown(outcome.source)}: {plan.versions}{warned}"]
    count = len(plan.sites)
    lines.append(f"  rewritten     {counted(count, 'node')}")
    lines += [f"    {line}" for line in (_site_lines(plan.sites) if verbose else _plan_lines(plan))]
    lines.append(f"  unchanged     {counted(plan.carried, 'node')}")
    for note in plan.notes:
        lines += paragraph("note", note)
    if outcome.verification is not None:
        lines += paragraph("verified", str(outcome.verification))
    if outcome.output:
        lines.append(f"  written       {shown(outcome.output)}")
    if outcome.external:
        lines.append(f"  also needed   {', '.join(map(shown, outcome.external))} (external data, not copied)")
    return "\n".join(lines)


def short_report(outcome: Outcome) -> str:
    """One line about one of many converted models."""
    if outcome.kept:
        return f"{shown(outcome.source)} -> {shown(outcome.output)}: kept, converted by an earlier run"
    plan = outcome.plan
    if plan is None or outcome.status != DONE:
        return ""
    rewritten = f"{counted(len(plan.sites), 'node')} rewritten, {plan.carried:,} unchanged"
    checked = outcome.verification
    loses = ", not verified, loses range" if plan.losses else ""
    verdict = loses if checked is None else f", {checked.label}"
    return f"{shown(outcome.source)} -> {shown(outcome.output)}: {rewritten}{verdict}"


def _totals(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """The outcomes of many models, in numbers."""
    numbers = Counter(outcome.status for outcome in outcomes)
    converted = [outcome.plan for outcome in outcomes if outcome.status == DONE and outcome.plan is not None]
    kept = sum(outcome.kept for outcome in outcomes)
    rows = [
        ("models", len(outcomes)),
        ("converted", numbers[DONE] - kept),
        *([("kept", kept)] if kept else []),
        ("refused", numbers[REFUSED]),
        ("failed", len(outcomes) - numbers[DONE] - numbers[REFUSED]),
        ("nodes rewritten", sum(len(plan.sites) for plan in converted)),
        ("nodes unchanged", sum(plan.carried for plan in converted)),
    ]
    return [(name, str(number)) for name, number in rows]


def _plan_lines(plan: Plan) -> list[str]:
    """What a conversion rewrites, a line per operator and rule, and why where a runtime is the reason."""
    lines = columns((str(count), operator, rule) for (operator, rule), count in sorted(plan.rewritten.items()))
    runtime = plan.target.runtime
    lines += [
        f"why: on {runtime}: {reason} ({counted(count, 'node')})" for reason, count in sorted(plan.reasons.items())
    ]
    if plan.as_it_is is not None:
        for reason, count in sorted(plan.as_it_is.reasons.items()):
            lines.append(f"at its own opset {plan.source_opset}: on {runtime}: {reason} ({counted(count, 'node')})")
        lines += [f"at its own opset {plan.source_opset}: {shown(str(each))}" for each in plan.as_it_is.refusals]
    return lines


def _site_lines(sites: Iterable[Site]) -> list[str]:
    """A line per rewritten node: where it is, what it is, how many nodes stand in its place, by which rule."""
    return columns(
        (
            f"{shown(site.graph)}: {site.op_type} {shown(site.node)!r}",
            f"-> {counted(site.count, 'node')}"
            if not site.raised_from
            else f"<- {counted(len(site.raised_from), 'node')}",
            f"by {site.rule}",
        )
        for site in sites
    )


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as aligned lines."""
    table = [tuple(row) for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)] if table else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def paragraph(name: str, text: str) -> list[str]:
    """A name and what there is to say of it, wrapped at the width of the terminal."""
    import textwrap

    return textwrap.wrap(
        shown(text),
        width=width(),
        initial_indent=f"  {name:<14}",
        subsequent_indent=" " * 16,
        break_long_words=False,
        break_on_hyphens=False,
    )


def check_text(models: Sequence[Outcome], *, verbose: bool) -> str:
    """What a check found, for people; with `verbose`, every node that would be rewritten."""
    lines: list[str] = []
    for model in models:
        if model.plan is None:
            continue
        lines.append(f"{shown(model.source)}: {model.sentence}")
        sites = verbose and not model.refusals
        lines += [f"  {line}" for line in (_site_lines(model.plan.sites) if sites else _details(model))]
    return "\n".join(lines)


def github_annotations(models: Sequence[Outcome]) -> str:
    """Workflow commands as documented: ``::error file=...,title=...::message``, special characters escaped."""
    lines = []
    for model in models:
        # Of characters that control something, those that end lines have a spelling.
        visible = "".join(letter if letter in "\r\n" else shown(letter) for letter in model.source)
        place = _escaped(visible).replace(":", "%3A").replace(",", "%2C")
        for warning in model.warnings:
            lines.append(f"::warning file={place},title=reducelower::{_escaped(shown(warning))}")
        if model.passed:
            continue
        level = "warning" if model.verdict == "rewrite" else "error"
        for text in ([] if level == "warning" else _details(model)) or [shown(model.sentence)]:
            lines.append(f"::{level} file={place},title=reducelower::{_escaped(text)}")
    return "\n".join(lines)


def _details(model: Outcome) -> list[str]:
    """A line per refusal, or else per operator and rule."""
    if model.refusals:
        return [shown(str(refusal)) for refusal in model.refusals]
    return _plan_lines(model.plan) if model.plan is not None else []


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def show(outcome: Outcome, *, whole: bool, verbose: bool) -> None:
    """Say what was done with one model."""
    text = full_report(outcome, verbose=verbose) if whole else short_report(outcome)
    if text:
        result(text)
    if whole and sys.stdout.isatty() and outcome.verification is not None and outcome.verification.sites:
        _findings(outcome.verification)


def show_summary(outcomes: Sequence[Outcome]) -> None:
    """Print a summary of many models."""
    if sys.stdout.isatty():
        _models(outcomes, _totals(outcomes))
    else:
        result("\n".join(columns(_totals(outcomes))))


# Tables for a terminal


def _findings(verification: Verification) -> None:
    """A row per distinct rewrite: what it is, how many nodes share it, and the result of verification."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Rewrites", title_justify="left")
    table.add_column("Rewrite", overflow="fold")
    table.add_column("Rule", overflow="fold")
    table.add_column("Nodes", justify="right")
    table.add_column("Verified")
    table.add_column("Max ULP", justify="right")
    for site in verification.sites[:_MOST_ROWS]:
        # Text, so that brackets in names are no markup.
        status = Text(site.status, _COLOURS.get(site.status, ""))
        table.add_row(
            Text(shown(site.signature)), Text(shown(site.rule)), str(len(site.nodes)), status, str(site.max_ulp)
        )
    if len(verification.sites) > _MOST_ROWS:
        table.add_row(f"… {len(verification.sites) - _MOST_ROWS} more")
    Console().print(table)


def _models(outcomes: Sequence[Outcome], totals: Sequence[tuple[str, str]]) -> None:
    """The outcomes of many models: those that failed by name, all of them in numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    wrong = [outcome for outcome in outcomes if outcome.status != DONE]
    if wrong:
        table = Table(title="Not converted", title_justify="left")
        table.add_column("Model", overflow="fold")
        table.add_column("What")
        table.add_column("Why", overflow="fold")
        for outcome in wrong[:_MOST_ROWS]:
            what = Text("refused", "yellow") if outcome.status == REFUSED else Text("failed", "red")
            why = shown(outcome.problems[0]) if outcome.problems else ""
            table.add_row(Text(shown(outcome.source)), what, Text(why.removeprefix(f"{outcome.source}: ")))
        if len(wrong) > _MOST_ROWS:
            table.add_row(f"… {len(wrong) - _MOST_ROWS} more")
        console.print(table)
    table = Table(title="Summary", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, number in totals:
        table.add_row(name, number)
    console.print(table)
