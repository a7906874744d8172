"""The report as one self-contained HTML page, without network or other files."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reducelower import __version__
from reducelower.errors import alike
from reducelower.lines import Tone
from reducelower.report.writing import Report
from reducelower.text import shown

__all__ = ["render"]

_MOST_SIDES = 240  # of all models together
_MOST_WARNINGS = 5


def render(report: Report) -> str:
    """The report as HTML text."""
    templates = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = ((files(__package__) / "templates" / name).read_text("utf-8") for name in ("page.css", "page.js"))
    tones = {model.tone for model in report.models}
    tone: Tone = "bad" if "bad" in tones else "warning" if "warning" in tones else "good"
    return templates.get_template("page.html").render(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'",
        style=Markup(style),
        script=Markup(script),
        version=__version__,
        report=report,
        models=sorted(report.models, key=lambda model: model.passed),
        most_sides=max(_MOST_SIDES // max(len(report.models), 1), 2),
        tone=tone,
        title=_title(report, tone),
        warnings=_warnings(report),
        alike=alike,
    )


def _finalize(value: object) -> object:
    """Remove control characters from text that comes from models or users."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hash(text: str) -> str:
    """The digest with which the page's policy allows only this script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(report: Report, tone: Tone) -> str:
    if report.command == "diff":
        return "The same" if report.passed else "Different"
    if report.command == "verify" and any(model.verdict == "different" for model in report.models):
        return "Outputs differ"
    if report.command == "check" and tone == "warning" and not report.passed:
        return "To convert"
    return {"bad": "Failed", "warning": "Passed, with warnings"}.get(tone, "Passed")


def _warnings(report: Report) -> list[str]:
    """The first lines below the headline: failed models, if there are several models, then remarks."""
    if len(report.models) == 1:
        lines = list(report.models[0].remarks)
    else:
        failed = [f"{model.source}: {model.verdict_in_words}" for model in report.models if not model.passed]
        lines = [*failed, *(f"{model.source}: {remark}" for model in report.models for remark in model.remarks)]
    more = [f"and {len(lines) - _MOST_WARNINGS} more"] if len(lines) > _MOST_WARNINGS else []
    return [*lines[:_MOST_WARNINGS], *more]
