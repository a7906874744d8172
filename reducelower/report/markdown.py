"""The report as Markdown, short enough for a pull request comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from reducelower.errors import alike
from reducelower.model.text import short, shown
from reducelower.outcome import Outcome
from reducelower.report.writing import Report

if TYPE_CHECKING:
    from reducelower.difference import Difference
    from reducelower.verification import OutputComparison, SiteVerification

__all__ = ["LONGEST", "render"]

LONGEST = 60_000
"""Characters; GitHub takes comments of at most 65,536."""

_MOST_ROWS = 40
_NAME = 80
_REASON = 300
_MARKUP = re.compile(r"[\\`*{}\[\]<#&!|~@$^]|:(?=\S)|(?<!\w)_|_(?!\w)")


def render(report: Report) -> str:
    """The report as Markdown text."""
    passed = sum(model.passed for model in report.models)
    total = len(report.models)
    mark = "✅" if report.passed else "❌"
    if total == 1:
        (only,) = report.models
        head = f"## {mark} {_code(only.source)}: {_text(only.sentence or only.verdict)}"
    else:
        head = f"## {mark} reducelower {report.command}: {passed} of {total} models pass"
    parts = [head]
    if total > 1:
        rows = [(_code(model.source), model.verdict, _text(model.sentence)) for model in _worst_first(report.models)]
        parts.append(_table(("model", "verdict", ""), rows))
    parts += [section for model in _worst_first(report.models) if (section := _section(model, alone=total == 1))]
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
    if model.refusals:
        rows = [
            (
                str(len(group)),
                f"{_code(f'{group[0].operator} {group[0].node}'.strip() or 'model')} in {_code(group[0].graph)}",
                _text(group[0].reason),
                _text(group[0].hint),
            )
            for group in alike(model.refusals)
        ]
        blocks.append(_table(("nodes", "the first", "refused because", "what helps"), rows))
    elif model.reasons and (model.verdict not in ("refused", "unreadable", "failed") or not alone):
        blocks.append("\n".join(f"- {_text(problem)}" for problem in model.reasons[:_MOST_ROWS]))
    if model.difference is not None:
        blocks += _differences(model.difference)
    told = [line for line in model.lines if not line.is_detail]
    if told and model.difference is None:
        labels = (f"**{line.label}** " if line.label else "" for line in told[:_MOST_ROWS])
        blocks.append("\n".join(f"- {label}{_text(line.text)}" for label, line in zip(labels, told, strict=False)))
    verification = model.verification
    if verification is not None and verification.sites:
        blocks.append(_findings(verification.sites))
    elif model.plan is not None and model.plan.sites:
        counts = [
            (_code(kind), _code(rule), str(count)) for (kind, rule), count in sorted(model.plan.rewritten.items())
        ]
        blocks.append(_table(("operator", "rule", "nodes"), counts))
    if verification is not None:
        if verification.outputs:
            blocks.append(_outputs(verification.outputs))
        if not verification.ran:
            blocks.append(f"The whole model was not run: {_text(verification.reason)}.")
    notes = verification.notes if verification else ()
    blocks += ["\n".join(f"> {_text(note)}" for note in notes[:_MOST_ROWS])] if notes else []
    if not blocks:
        return ""
    body = "\n\n".join(blocks)
    return body if alone else f"### {_code(model.source)}\n\n{body}"


def _differences(found: Difference) -> Iterator[str]:
    if found.facts:
        rows = [(fact.kind, _text(fact.what), _text(fact.before), _text(fact.after)) for fact in found.facts]
        yield _table(("", "what", "before", "after"), rows)
    if found.changes:
        changes = [
            (
                change.kind,
                str(len(change.nodes)),
                _code(": ".join(change.nodes[0])),
                "<br>".join(map(_text, change.before)),
                "<br>".join(map(_text, change.after)),
                _text("; ".join(change.details)),
            )
            for change in found.changes
        ]
        yield _table(("nodes", "places", "first at", "before", "after", "what changed"), changes)
    if found.operators:
        counts = [(_code(name), str(before), str(after)) for name, before, after in found.operators]
        yield _table(("operator", "before", "after"), counts)


def _findings(findings: Sequence[SiteVerification]) -> str:
    order = sorted(findings, key=lambda finding: (finding.ok, finding.status == "equal"))
    rows = [
        (
            _code(finding.signature),
            _code(finding.rule),
            str(len(finding.nodes)),
            finding.said,
            _distance(finding) if finding.cases else "",
            _text(finding.reason),
        )
        for finding in order
    ]
    return _table(("rewrite", "rule", "nodes", "verified", "max ULP", ""), rows)


def _distance(finding: SiteVerification) -> str:
    """The error of a rewrite, with its limit."""
    if not finding.max_ulp and finding.status == "equal":
        return "0 ULP"
    limit = f" (within {finding.limit})" if finding.limit and finding.status == "equal" else ""
    return f"{finding.max_ulp}{limit}"


def _outputs(outputs: Sequence[OutputComparison]) -> str:
    order = sorted(outputs, key=lambda output: output.verdict == "equal")
    rows = [
        (
            _code(output.name),
            f"{output.element_type} {list(output.shape_before)}",
            output.verdict,
            str(output.max_ulp),
            f"{output.max_relative:.3g}",
            output.limit,
            _text(output.reason),
        )
        for output in order
    ]
    return _table(("output", "type", "verdict", "max ULP", "max relative error", "equal within", ""), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines.append([f"… {len(rows) - _MOST_ROWS} more", *[""] * (len(header) - 1)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _code(text: str) -> str:
    """A name, literally: inside ``code`` GitHub sees no mention or issue number, and entities are no markup."""
    return f"<code>{_escaped(short(text, _NAME))}</code>"


def _text(text: str) -> str:
    """A sentence, literally."""
    text = shown(text)
    text = _escaped(text if len(text) <= _REASON else f"{text[: _REASON - 1]}…")
    # An entity is no markup, but GitHub looks for people and issues in what it stands for.
    return text.replace("&#64;", "&#64;&#8203;").replace("&#35;", "&#35;&#8203;")


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", text)
