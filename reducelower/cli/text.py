"""The results of conversions as text and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from reducelower.cli.console import shown, styled, width
from reducelower.errors import DONE, sentences
from reducelower.lines import Tone
from reducelower.plan import Site
from reducelower.text import counted

if TYPE_CHECKING:
    from reducelower.outcome import Outcome, Verdict
    from reducelower.verification import Verification

__all__ = ["columns", "full_text", "github_annotations", "paragraph", "short_text", "summary"]


def full_text(outcome: Outcome, *, verbose: bool) -> str:
    """The full text about one model; with `verbose`, also each rewritten node and each distinct rewrite."""
    lines = [_head(outcome)]
    for line in outcome.lines:
        if line.is_detail and not verbose:
            continue
        if line.label != "rewritten" or outcome.verdict != "rewrite":  # for a check, the headline has the number
            lines += paragraph(line.label, line.text, line.tone)
        if verbose and line.label in ("rewritten", "raised") and outcome.plan is not None:
            lines += [f"    {text}" for text in _site_lines(outcome.plan.sites)]
            if outcome.verification is not None:
                lines += [f"    {text}" for text in _findings(outcome.verification)]
    if not outcome.problems:  # they already say why a conversion stopped
        lines += [f"  {shown(text)}" for text in sentences(outcome.refusals)]
    return "\n".join(lines)


def _head(outcome: Outcome) -> str:
    """The headline: the model and its conversion, or its verdict."""
    plan, both = outcome.plan, shown(" -> ".join(filter(None, (outcome.source, outcome.output))))
    if outcome.difference is None and plan is None:
        return f"{both}: {outcome.verdict}"
    if plan is None or outcome.refusals or outcome.verdict in ("fits", "rewrite"):
        name = both if plan is None else shown(outcome.source)
        return f"{name}: {styled(shown(outcome.verdict_in_words), outcome.tone)}"
    return f"{shown(outcome.source)}: {shown(plan.journey)}"


def short_text(outcome: Outcome) -> str:
    """One line about one of many models."""
    names = " -> ".join(shown(name) for name in dict.fromkeys((outcome.source, outcome.output)) if name)
    text = outcome.sentence
    if outcome.verdict == "converted" and outcome.plan is not None:
        checked = outcome.verification
        verified = ", verified" if checked is not None and checked.equivalent else ""
        parts = [f"{counted(len(outcome.plan.sites), 'node')} rewritten{verified}", *outcome.warnings]
        text = "; ".join(parts)
    return f"{names}: {styled(shown(text), outcome.tone)}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line that sums up many models."""
    counts = Counter(_SUMMED.get(outcome.verdict, outcome.verdict) for outcome in outcomes)
    names = [name for name in dict.fromkeys((*_SUMMED.values(), *counts)) if counts[name]]
    parts = [f"{counts[name]:,} {'fits' if (name, counts[name]) == ('fit', 1) else name}" for name in names]
    plans = [outcome.plan for outcome in outcomes if outcome.plan is not None and outcome.passed]
    if counts["converted"]:
        parts[-1] += f"; {counted(sum(len(plan.sites) for plan in plans), 'node')} rewritten"
    worst = max((outcome.status for outcome in outcomes), default=DONE)
    only_to_do = all(outcome.passed or outcome.verdict == "rewrite" for outcome in outcomes)
    tone: Tone = "good" if worst == DONE else "warning" if only_to_do else "bad"
    return styled(f"{counted(len(outcomes), 'model')}: {', '.join(parts)}", tone)


_SUMMED: Mapping[Verdict, str] = {
    "converted": "converted",
    "fits": "fit",
    "kept": "kept",
    "rewrite": "to convert",
    "refused": "refused",
    "unreadable": "not read or written",
    "failed": "failed",
}
"""The words for verdicts in a summary."""


def _findings(verification: Verification) -> list[str]:
    """A line for each distinct rewrite: its status, number of nodes, and largest error."""
    return columns((site.said, f"{site.max_ulp:,} ULP", shown(site.place)) for site in verification.sites)


def _site_lines(sites: Iterable[Site]) -> list[str]:
    """A line for each rewritten node: its place, the number of nodes that replace it, and the rule."""
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


def paragraph(name: str, text: str, tone: Tone = "") -> list[str]:
    """A labelled text, wrapped at the width of the terminal."""
    import textwrap

    lines = textwrap.wrap(
        shown(text),
        width=width(),
        initial_indent=f"  {name:<11} ",
        subsequent_indent=" " * 14,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [styled(line, tone) for line in lines]


def github_annotations(models: Sequence[Outcome]) -> str:
    """Workflow commands as documented: ``::error file=...,title=...::message``, special characters escaped."""
    lines = []
    for model in models:
        place = _escaped(model.source).replace(":", "%3A").replace(",", "%2C")
        for warning in model.warnings:
            lines.append(f"::warning file={place},title=reducelower::{_escaped(warning)}")
        if model.passed:
            continue
        level = "warning" if model.verdict == "rewrite" else "error"
        for text in sentences(model.refusals) or [model.sentence]:
            lines.append(f"::{level} file={place},title=reducelower::{_escaped(text)}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return shown(text).replace("%", "%25")  # line ends are shown as text, as other control characters are
