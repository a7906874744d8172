"""The forms in which `check` answers: text, JSON, GitHub workflow annotations, JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence

from reducelower.cli.console import one_line
from reducelower.cli.report import describe_plan, site_lines
from reducelower.report import ModelReport, Report, render

__all__ = ["answer"]


def answer(form: str, models: Sequence[ModelReport], *, verbose: bool) -> str:
    """What `check` says about models, in one of its forms.

    Args:
        form: ``text``, ``json``, ``github`` or ``junit``.
        models: what was found.
        verbose: in text, list every node that would be rewritten.
    """
    if form == "text":
        return _text(models, verbose)
    if form == "github":
        return _github(models)
    return render(Report("check", tuple(models)), {"json": ".json", "junit": ".xml"}[form]).rstrip("\n")


def _details(model: ModelReport) -> list[str]:
    """A line per refusal, or else per operator and rule."""
    if model.refusals:
        return [one_line(str(refusal)) for refusal in model.refusals]
    return describe_plan(model.plan) if model.plan is not None else []


def _text(models: Sequence[ModelReport], verbose: bool) -> str:
    lines: list[str] = []
    for model in models:
        if model.plan is None:
            continue
        lines.append(f"{one_line(model.path)}: {model.sentence}")
        sites = verbose and not model.refusals
        lines += [f"  {line}" for line in (site_lines(model.plan.sites) if sites else _details(model))]
    return "\n".join(lines)


def _github(models: Sequence[ModelReport]) -> str:
    """Workflow commands as documented: ``::error file=...,title=...::message``, special characters escaped."""
    lines = []
    for model in models:
        if model.passed:
            continue
        level = "warning" if model.verdict == "rewrite" else "error"
        place = _property(model.path)
        for text in ([] if level == "warning" else _details(model)) or [one_line(model.sentence)]:
            lines.append(f"::{level} file={place},title=reducelower::{_data(text)}")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
