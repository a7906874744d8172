"""Shows what came of conversions: tables on a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from reducelower.batch.conversion import Outcome
from reducelower.cli import console
from reducelower.cli.report import columns, full_report, short_report, summary

__all__ = ["show", "show_summary"]


def show(outcome: Outcome, *, whole: bool, verbose: bool) -> None:
    """Say what was done with one model.

    Args:
        outcome: what came of it.
        whole: everything, and not just a line.
        verbose: every rewritten node.
    """
    text = full_report(outcome, verbose=verbose) if whole else short_report(outcome)
    if text:
        console.result(text)
    if whole and sys.stdout.isatty() and outcome.verification is not None and outcome.verification.sites:
        from reducelower.cli.tables import findings

        findings(outcome.verification)


def show_summary(outcomes: Sequence[Outcome]) -> None:
    """Say what came of many models."""
    if sys.stdout.isatty():
        from reducelower.cli.tables import models

        models(outcomes, summary(outcomes))
    else:
        console.result("\n".join(columns(summary(outcomes))))
