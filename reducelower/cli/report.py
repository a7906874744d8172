"""What a conversion did, in words and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reducelower.batch.conversion import Outcome
from reducelower.cli.console import one_line
from reducelower.failures import DONE, REFUSED
from reducelower.plan import Plan, Site

__all__ = ["columns", "describe_plan", "full_report", "short_report", "site_lines", "summary"]


def full_report(outcome: Outcome, *, verbose: bool) -> str:
    """Everything about one converted model; with `verbose`, every site."""
    if outcome.kept:
        return short_report(outcome)
    plan = outcome.plan
    if plan is None:
        return ""
    lines = [f"{one_line(outcome.source)}: {describe_versions(plan)}"]
    count = len(plan.sites)
    lines.append(f"  rewritten     {nodes(count)}")
    if verbose:
        lines += [f"    {line}" for line in site_lines(plan.sites)]
    else:
        lines += [f"    {line}" for line in describe_plan(plan)]
    lines.append(f"  carried over  {nodes(plan.carried)}")
    for note in plan.notes:
        lines += _paragraph("note", note)
    if outcome.verification is not None:
        lines += _paragraph("verified", str(outcome.verification))
    if outcome.output:
        lines.append(f"  written       {one_line(outcome.output)}")
    if outcome.external:
        lines.append(f"  bring along   {', '.join(map(one_line, outcome.external))} (external data, not copied)")
    return "\n".join(lines)


def short_report(outcome: Outcome) -> str:
    """One line about one of many converted models."""
    if outcome.kept:
        return f"{one_line(outcome.source)} -> {one_line(outcome.output)}: kept, converted by an earlier run"
    plan = outcome.plan
    if plan is None or outcome.status != DONE:
        return ""
    rewritten = f"{nodes(len(plan.sites))} rewritten, {plan.carried} carried over"
    checked = outcome.verification
    verdict = "" if checked is None else ", equivalent" if checked.ran else ", not verified as a whole"
    return f"{one_line(outcome.source)} -> {one_line(outcome.output)}: {rewritten}{verdict}"


def summary(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """What came of many models, in numbers."""
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
        ("nodes carried over", sum(plan.carried for plan in converted)),
    ]
    return [(name, str(number)) for name, number in rows]


def describe_versions(plan: Plan) -> str:
    """The opset and IR versions before and after."""
    opset = _change("opset", plan.source_opset, plan.target.opset or plan.source_opset)
    return f"{opset}, {_change('IR version', *plan.ir_version)}"


def describe_plan(plan: Plan) -> list[str]:
    """What a conversion rewrites, a line per operator and rule, and why where a runtime is the reason."""
    lines = _counts(plan)
    runtime = plan.target.runtime
    lines += [f"why: on {runtime}, {reason} ({nodes(count)})" for reason, count in sorted(plan.reasons.items())]
    if plan.as_it_is is not None:
        for reason, count in sorted(plan.as_it_is.reasons.items()):
            lines.append(f"at its own opset {plan.source_opset}: on {runtime}, {reason} ({nodes(count)})")
        lines += [f"at its own opset {plan.source_opset}: {one_line(str(each))}" for each in plan.as_it_is.refusals]
    return lines


def site_lines(sites: Iterable[Site]) -> list[str]:
    """A line per rewritten node: where it is, what it is, how many nodes stand in its place, by which rule."""
    return columns(
        (
            f"{one_line(site.graph)}: {site.op_type} {one_line(site.node)!r}",
            f"-> {nodes(site.count)}" if not site.raised_from else f"<- {nodes(len(site.raised_from))}",
            f"by {site.rule}",
        )
        for site in sites
    )


def nodes(count: int) -> str:
    """A number of nodes, in words."""
    return f"{count} node{'s' * (count != 1)}"


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as aligned lines."""
    table = [tuple(row) for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)] if table else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _paragraph(name: str, text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        one_line(text),
        width=100,
        initial_indent=f"  {name:<14}",
        subsequent_indent=" " * 16,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _counts(plan: Plan) -> list[str]:
    return columns((str(count), operator, rule) for (operator, rule), count in sorted(plan.rewritten.items()))


def _change(name: str, before: int, after: int) -> str:
    return f"{name} {before}" if before == after else f"{name} {before} -> {after}"
