"""The report as one self-contained HTML page, without network or other files."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reducelower import __version__
from reducelower.model.text import shown
from reducelower.outcome import Outcome
from reducelower.plan import Plan
from reducelower.report import picture, plot
from reducelower.report.details import Details, DistinctRewrite, Fate
from reducelower.report.writing import Report
from reducelower.verification import SiteVerification, Verification

__all__ = ["html", "render", "rendered", "shipped"]

_MOST_ROWS = 12_000
_MOST_PICTURES = 240
_OPEN = 3  # rewrites that are shown open
_FATES: tuple[Fate, ...] = ("rewritten", "refused", "kept", "not converted")
_MOST_OPERATORS = 30
_MOST_WARNINGS = 5
_MARKS = {True: "✓", False: "✗"}
_GOOD = ("equal", "improved")


@dataclass(frozen=True)
class _Section:
    """One model to show; each distinct rewrite, the worst first, with whether it is open and has pictures."""

    number: int
    facts: Outcome
    details: Details
    rewrites: tuple[tuple[DistinctRewrite, bool, bool], ...]
    totals: tuple[tuple[Fate, int], ...]
    is_open: bool


def render(report: Report) -> str:
    """The report as HTML text."""
    return rendered(
        "page.html",
        style=shipped("page.css"),
        script=shipped("page.js"),
        report=report,
        sections=list(_sections(report)),
        marks=_MARKS,
        headline=_headline(report),
        title=_title(report),
        warnings=_warnings(report),
        good=_GOOD,
        size=_size,
        most_operators=_MOST_OPERATORS,
        draw=picture.draw,
        plot=plot.of_site,
    )


def rendered(template: str, *, style: str, script: str = "", **values: Any) -> str:
    """A page, or a part of one, that loads nothing: its style and script are embedded."""
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.finalize = _finalize
    allowed = f"style-src '{_hash(style)}'; " + (f"script-src '{_hash(script)}'; " if script else "")
    values |= {"style": Markup(style), "script": Markup(script), "version": __version__}
    return environment.get_template(template).render(policy=f"default-src 'none'; {allowed}base-uri 'none'", **values)


def shipped(name: str) -> str:
    """A file that comes with the templates."""
    return (files(__package__) / "templates" / name).read_text("utf-8")


def _finalize(value: object) -> object:
    """Remove control characters from text that comes from models or users."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hash(text: str) -> str:
    """The digest with which the page's policy allows only this script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(report: Report) -> str:
    if report.command == "diff":
        return "The same" if report.passed else "Different"
    return "Not passed" if not report.passed else "Passed, with warnings" if _warnings(report) else "Passed"


def _headline(report: Report) -> str:
    if len(report.models) == 1:
        return report.models[0].sentence or report.models[0].verdict
    passed = sum(model.passed for model in report.models)
    return f"{passed} of {len(report.models)} models pass"


def _warnings(report: Report) -> list[str]:
    """The remarks below the headline, as many as fit, the worst of many models first."""
    alone = len(report.models) == 1
    found = [warning if alone else f"{model.source}: {warning}" for model in report.models for warning in model.remarks]
    more = [f"and {len(found) - _MOST_WARNINGS} more"] if len(found) > _MOST_WARNINGS else []
    return [*found[:_MOST_WARNINGS], *more]


def _sections(report: Report) -> Iterator[_Section]:
    count = max(len(report.models), 1)
    row_limit, picture_limit = max(_MOST_ROWS // count, 20), max(_MOST_PICTURES // count, 2)
    for number, model in enumerate(sorted(report.models, key=lambda model: model.passed), 1):
        details = _within(model.details or Details((), (), {}, {}), row_limit)
        rewrites = enumerate(sorted(details.rewrites, key=_severity))
        yield _Section(
            number,
            model,
            details,
            tuple((item, at < _OPEN or _is_wrong(item), at < picture_limit) for at, item in rewrites),
            tuple((fate, details.totals[fate]) for fate in _FATES if details.totals.get(fate)),
            count == 1 or not model.passed,
        )


def _size(sizes: tuple[int, int]) -> str:
    """Bytes of the model before and after, without external data; empty if unknown."""
    before, after = sizes
    if not before:
        return ""
    return f"{before:,} bytes" if not after or after == before else f"{before:,} → {after:,} bytes"


def _severity(item: DistinctRewrite) -> int:
    """Sort key: wrong first, then not verified, then right."""
    order = ("different", "overflow", "not run", "improved", "equal")
    status = item.finding.status if item.finding is not None else "not run"
    return order.index(status) if status in order else 0


def _is_wrong(item: DistinctRewrite) -> bool:
    return item.finding is not None and item.finding.status not in _GOOD


def _within(details: Details, limit: int) -> Details:
    """The details with as many rows as fit on the page; the least informative rows are dropped first."""
    spare = max(len(details.rows) - limit, 0)
    left_out = Counter(details.left_out)
    dropped: set[int] = set()
    for fate in reversed(_FATES):
        for at in reversed(range(len(details.rows))):
            row = details.rows[at]
            if len(dropped) < spare and row.fate == fate:
                dropped.add(at)
                left_out[row.op_type, fate] += 1
    rows = tuple(row for at, row in enumerate(details.rows) if at not in dropped)
    return replace(details, rows=rows, left_out=dict(left_out.most_common()))


def html(result: object) -> str:
    """A plan or a verification as HTML to embed in another page, light or dark."""
    return rendered(
        "notebook.html", style=shipped("notebook.css"), kind=_KINDS[type(result)], result=result, plot_of=plot.of_site
    )


_KINDS = {Plan: "plan", Verification: "verification", SiteVerification: "site"}
