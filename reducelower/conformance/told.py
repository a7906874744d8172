"""The report of a probe as text."""

from __future__ import annotations

from collections import Counter

from reducelower.conformance.distilling import Distilled
from reducelower.conformance.judging import Word
from reducelower.conformance.running import Probed
from reducelower.model.text import shown

__all__ = ["as_text"]

_WORDS: tuple[Word, ...] = ("right", "wrong", "refused")

_FEW = 10


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
