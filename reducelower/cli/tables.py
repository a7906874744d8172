"""Tables for a terminal; imported only where there is one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reducelower.cli.console import shown
from reducelower.failures import DONE, REFUSED
from reducelower.outcome import Outcome
from reducelower.verification import Verification

__all__ = ["findings", "models"]

_MOST_ROWS = 40
_COLOURS = {"equal": "green", "improved": "green", "overflow": "yellow", "not run": "yellow", "different": "red"}


def findings(verification: Verification) -> None:
    """A row per distinct rewrite: what it is, how many nodes share it, what verifying it gave."""
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


def models(outcomes: Sequence[Outcome], totals: Sequence[tuple[str, str]]) -> None:
    """What came of many models: those that went wrong by name, all of them in numbers."""
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
