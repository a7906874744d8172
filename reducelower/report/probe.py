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
"""Of the reason why a model fails, on the terminal; all of it is in the report."""


def as_text(probed: Probed, distilled: Distilled) -> str:
    """What the suite showed: how much is right, then the facts."""
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


def models_text(found: FromModels, left_out: Mapping[str, str]) -> str:
    """What probing real models showed: those that are not right when converted, and why; then the facts added."""
    words = [(change.before.word, change.after.word) for change in found.changes]
    lines = [
        f"{found.probed.runtime} {found.probed.version}: {counted(len(words), 'model')}, "
        f"{sum(before == 'right' for before, _ in words)} right before conversion, "
        f"{sum(after == 'right' for _, after in words)} after it"
    ]
    for change in found.changes:
        if change.after.word != "right":
            part = found.parts.get(change.case.name)
            why = change.after.detail if part is None else f"{part.names}: {part.verdict.detail}"
            why = why if len(why) <= _LONGEST else f"{why[:_LONGEST].rsplit(' ', 1)[0]} …"
            lines += [f"  {shown(change.case.name)}: {change.step}", f"    {shown(why)}"]
    lines += [f"  {shown(name)}: not run\n    {shown(reason)}" for name, reason in left_out.items()]
    for title, facts in (
        ("Facts added", [fact.says for fact in found.runtime.facts if fact in found.added]),
        (
            "Facts left out, since a model that they refuse runs right",
            [f"{fact.says} ({name})" for fact, name in found.untrue.items()],
        ),
    ):
        if facts:
            lines += ["", title, *(f"  {shown(fact)}" for fact in facts)]
    return "\n".join(lines)
