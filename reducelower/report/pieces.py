"""Results as pieces of the page, for notebooks: a paragraph, its numbers, and what it rests on, folded."""

from __future__ import annotations

from reducelower.plan import Plan
from reducelower.report import plot
from reducelower.report.page import rendered, shipped
from reducelower.verification import SiteVerification, Verification

__all__ = ["html"]


def html(result: object) -> str:
    """A plan or what a verification found as HTML that stands in another page, light or dark."""
    return rendered(
        "notebook.html", style=shipped("notebook.css"), kind=_KINDS[type(result)], result=result, plot_of=plot.of_site
    )


_KINDS = {Plan: "plan", Verification: "verification", SiteVerification: "site"}
