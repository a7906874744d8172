"""The report as Markdown, short enough for a pull request comment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from reducelower.errors import sentences
from reducelower.outcome import Outcome
from reducelower.report.writing import Report
from reducelower.text import short, shown

__all__ = ["LONGEST", "render"]

LONGEST = 60_000
"""Characters; GitHub takes comments of at most 65,536."""

_MOST_ROWS = 40
_NAME = 80
_REASON = 300
_MARKUP = re.compile(r"[\\`*{}\[\]<#&!|~@$^]|:(?=\S)|(?<!\w)_|_(?!\w)|^[-+](?= )")


def render(report: Report) -> str:
    """The report as Markdown text."""
    mark, is_single = "✅" if report.passed else "❌", len(report.models) == 1
    subject = _code(report.models[0].source) if is_single else f"reducelower {report.command}"
    parts = [f"## {mark} {subject}: {_text(report.headline)}"]
    if not is_single:
        rows = [(_code(model.source), model.verdict, _text(model.sentence)) for model in _worst_first(report.models)]
        parts.append(_table(("model", "verdict", ""), rows))
    parts += [section for model in _worst_first(report.models) if (section := _section(model, alone=is_single))]
    return _cut(parts)


def _cut(parts: Sequence[str]) -> str:
    text = ""
    for at, part in enumerate(parts):
        if len(text) + len(part) > LONGEST:
            return f"{text}… {len(parts) - at} more sections do not fit here; the HTML report has them.\n"
        text += part + "\n\n"
    return text.rstrip("\n") + "\n"


def _worst_first(models: Iterable[Outcome]) -> list[Outcome]:
    return sorted(models, key=lambda model: model.passed)


def _section(model: Outcome, *, alone: bool) -> str:
    blocks = []
    items = [
        _text(text) for text in sentences(model.refusals) or model.reasons if not (alone and text in model.sentence)
    ]
    lines = (line for line in model.lines if not line.is_detail)
    items += [f"{f'**{line.label}** ' if line.label else ''}{_text(line.text)}" for line in lines]
    if items:
        blocks.append("\n".join(f"- {item}" for item in items[:_MOST_ROWS]))
    if model.details is not None and model.details.changes:
        changes: Counter[tuple[str, str, str, str]] = Counter()
        for change in model.details.worst_first:
            changes[_code(change.title), _text(change.how), change.verified, _text(change.remark)] += change.count
        rows = [(title, how, f"{places:,}", *rest) for (title, how, *rest), places in changes.items()]
        blocks.append(_table(("nodes", "changed", "places", "verified", ""), rows))
    elif model.plan is not None and model.plan.sites:
        counts = [
            (_code(kind), _code(rule), str(count)) for (kind, rule), count in sorted(model.plan.rewritten.items())
        ]
        blocks.append(_table(("operator", "rule", "nodes"), counts))
    if not blocks:
        return ""
    body = "\n\n".join(blocks)
    return body if alone else f"### {_code(model.source)}\n\n{body}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines.append([f"… {len(rows) - _MOST_ROWS} more", *[""] * (len(header) - 1)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _code(text: str) -> str:
    """A name as literal text: inside ``code``, GitHub sees no mention or issue number, and entities are no markup."""
    return f"<code>{_escaped(short(text, _NAME))}</code>"


def _text(text: str) -> str:
    """A sentence as literal text."""
    text = shown(text)
    text = _escaped(text if len(text) <= _REASON else f"{text[: _REASON - 1]}…")
    # An entity is no markup, but GitHub still finds mentions and issue numbers in the decoded text.
    return text.replace("&#64;", "&#64;&#8203;").replace("&#35;", "&#35;&#8203;")


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", text)
