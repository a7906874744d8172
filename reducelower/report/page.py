"""The report as one self-contained HTML page, without network or other files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reducelower import __version__
from reducelower.errors import alike
from reducelower.lines import Tone
from reducelower.model.text import shown
from reducelower.outcome import Outcome
from reducelower.plan import Plan
from reducelower.report.details import Details, DistinctRewrite
from reducelower.report.writing import Report
from reducelower.verification import SiteVerification, Verification

__all__ = ["html", "render"]

_MOST_SIDES = 240
_OPEN = 3  # rewrites that are shown open
_MOST_OPERATORS = 30
_MOST_WARNINGS = 5
_MARKS: dict[Tone, str] = {"good": "✓", "warning": "!", "bad": "✗"}


@dataclass(frozen=True)
class _Section:
    """One model; each distinct rewrite, the worst first, with whether it is open and whether its nodes are shown."""

    number: int
    facts: Outcome
    details: Details
    rewrites: tuple[tuple[DistinctRewrite, bool, bool], ...]
    is_open: bool


def render(report: Report) -> str:
    """The report as HTML text."""
    tone = _tone(report)
    return _rendered(
        "page.html",
        style=_shipped("page.css"),
        script=_shipped("page.js"),
        report=report,
        sections=list(_sections(report)),
        marks=_MARKS,
        tone=tone,
        title=_title(report, tone),
        warnings=_warnings(report),
        alike=alike,
        called=_called,
        unchecked=partial(_unchecked, report),
        size=_size,
        most_operators=_MOST_OPERATORS,
    )


def _rendered(template: str, *, style: str, script: str = "", **values: Any) -> str:
    """A page, or a part of one, that loads nothing: its style and script are embedded."""
    allowed = f"style-src '{_hash(style)}'; " + (f"script-src '{_hash(script)}'; " if script else "")
    values |= {"style": Markup(style), "script": Markup(script), "version": __version__}
    return _templates().get_template(template).render(policy=f"default-src 'none'; {allowed}base-uri 'none'", **values)


@cache
def _templates() -> Environment:
    """The templates, each compiled once."""
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.finalize = _finalize
    return environment


def _shipped(name: str) -> str:
    """A file that comes with the templates."""
    return (files(__package__) / "templates" / name).read_text("utf-8")


def _finalize(value: object) -> object:
    """Remove control characters from text that comes from models or users."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hash(text: str) -> str:
    """The digest with which the page's policy allows only this script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _tone(report: Report) -> Tone:
    """The worst tone of all models."""
    tones = {model.tone for model in report.models}
    return "bad" if "bad" in tones else "warning" if "warning" in tones else "good"


def _title(report: Report, tone: Tone) -> str:
    if report.command == "diff":
        return "The same" if report.passed else "Different"
    if report.command == "verify" and any(model.verdict == "different" for model in report.models):
        return "Outputs differ"
    if report.command == "check" and tone == "warning" and not report.passed:
        return "To convert"
    return {"bad": "Failed", "warning": "Passed, with warnings"}.get(tone, "Passed")


def _called(model: Outcome) -> str:
    """The words for a verdict."""
    return "to convert" if model.verdict == "rewrite" else model.verdict


def _unchecked(report: Report, model: Outcome) -> str:
    """The word for a rewrite that was not run separately: the same by construction, or not verified at all."""
    if report.command in ("check", "diff") or not model.passed:
        return ""
    if model.verification is None:
        return "not verified"
    return "unchanged" if model.verification.equivalent else ""


def _warnings(report: Report) -> list[str]:
    """The first lines below the headline: failed models, if there are several models, then remarks."""
    if len(report.models) == 1:
        lines = list(report.models[0].remarks)
    else:
        failed = [f"{model.source}: {model.verdict_in_words}" for model in report.models if not model.passed]
        lines = [*failed, *(f"{model.source}: {remark}" for model in report.models for remark in model.remarks)]
    more = [f"and {len(lines) - _MOST_WARNINGS} more"] if len(lines) > _MOST_WARNINGS else []
    return [*lines[:_MOST_WARNINGS], *more]


def _sections(report: Report) -> Iterator[_Section]:
    count = max(len(report.models), 1)
    side_limit = max(_MOST_SIDES // count, 2)
    for number, model in enumerate(sorted(report.models, key=lambda model: model.passed), 1):
        details = model.details or Details(())
        rewrites = enumerate(sorted(details.rewrites, key=_severity))
        yield _Section(
            number,
            model,
            details,
            tuple((item, at < _OPEN or _is_wrong(item), at < side_limit) for at, item in rewrites),
            count == 1 or not model.passed,
        )


def _size(sizes: tuple[int, int]) -> str:
    """Bytes of the model before and after, without external data; empty if unknown."""
    before, after = sizes
    if not before:
        return ""
    return f"{before:,} bytes" if not after or after == before else f"{before:,} → {after:,} bytes"


def _severity(item: DistinctRewrite) -> int:
    """Sort key: wrong rewrites first, then those with a warning, then those not run, then right ones."""
    tone = item.finding.tone if item.finding is not None else ""
    return ("bad", "warning", "", "good").index(tone)


def _is_wrong(item: DistinctRewrite) -> bool:
    return item.finding is not None and item.finding.tone != "good"


def html(result: object) -> str:
    """A plan or a verification as HTML to embed in another page, light or dark."""
    return _rendered(
        "notebook.html", style=_shipped("notebook.css"), kind=_KINDS[type(result)], result=result, alike=alike
    )


_KINDS = {Plan: "plan", Verification: "verification", SiteVerification: "site"}
