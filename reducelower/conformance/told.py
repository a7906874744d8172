"""The report of a probe as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from reducelower.conformance.distilling import Distilled
from reducelower.conformance.from_models import FromModels
from reducelower.conformance.judging import Word
from reducelower.conformance.running import Probed
from reducelower.model.text import counted, shown

__all__ = ["as_text", "models_text"]

_WORDS: tuple[Word, ...] = ("right", "wrong", "refused")

_FEW = 10

_LONGEST = 200
"""The maximum length of the reason for a failing model on the terminal; the report has all of it."""


def as_text(probed: Probed, distilled: Distilled) -> str:
    """The results of the suite: the number of right cases, then the facts."""
    runtime = distilled.runtime
    counts = Counter(result.word for result in probed.results)
    words = ", ".join(f"{counts[word]} {word}" for word in _WORDS)
    lines = [f"{runtime}: {len(probed.results)} cases, {words}"]
    lines.append(f"reads opset versions {runtime.reads}; most is right at {runtime.prefer}")
    if runtime.facts:
        lines += ["", "Facts"]
        for fact in runtime.facts:
            lines.append(f"  {fact.outcome:9} {shown(fact.says)}{f' (opset {fact.opsets})' if fact.opsets else ''}")
    if undescribed := distilled.undescribed:
        lines += ["", "Failing, and no fact explains it or no equivalent form avoids it"]
        lines += [f"  {case.name}" for case in undescribed[:_FEW]]
        lines += [f"  and {len(undescribed) - _FEW} more"] if len(undescribed) > _FEW else []
    return "\n".join(lines)


def models_text(result: FromModels, not_run: Mapping[str, str]) -> str:
    """The results for real models: those that are not right after conversion, and why; then the added facts."""
    words = [(change.before.word, change.after.word) for change in result.changes]
    lines = [
        f"{result.probed.runtime} {result.probed.version}: {counted(len(words), 'model')}, "
        f"{sum(before == 'right' for before, _ in words)} right before conversion, "
        f"{sum(after == 'right' for _, after in words)} after it"
    ]
    for change in result.changes:
        if change.after.word != "right":
            part = result.parts.get(change.case.name)
            why = change.after.detail if part is None else f"{part.names}: {part.verdict.detail}"
            why = why if len(why) <= _LONGEST else f"{why[:_LONGEST].rsplit(' ', 1)[0]} …"
            lines += [f"  {shown(change.case.name)}: {change.step}", f"    {shown(why)}"]
    lines += [f"  {shown(name)}: not run\n    {shown(reason)}" for name, reason in not_run.items()]
    for title, facts in (
        ("Facts added", [fact.says for fact in result.runtime.facts if fact in result.added]),
        (
            "Facts left out, since a model that they refuse runs right",
            [f"{fact.says} ({name})" for fact, name in result.untrue.items()],
        ),
    ):
        if facts:
            lines += ["", title, *(f"  {shown(fact)}" for fact in facts)]
    return "\n".join(lines)
