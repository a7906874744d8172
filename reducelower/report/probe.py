"""The report of a probe as text, with a map of what is right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from reducelower.conformance.distilling import Distilled
from reducelower.conformance.from_models import FromModels
from reducelower.conformance.judging import Word
from reducelower.conformance.running import Probed
from reducelower.model.schemas import REDUCTIONS
from reducelower.model.text import counted, shown

__all__ = ["as_text", "heat", "models_text"]

_WORDS: tuple[Word, ...] = ("right", "wrong", "refused")

_FEW = 10

_LONGEST = 200
"""Of the reason why a model fails, on the terminal; all of it is in the report."""


def heat(probed: Probed, *, reductions: bool) -> dict[str, dict[int, Counter[Word]]]:
    """How many cases of each operator are right, wrong and refused, by opset version.

    Those are the Reduce operators, or else the operators that their replacements are made of.
    """
    found = defaultdict[str, dict[int, Counter[Word]]](lambda: defaultdict(Counter))
    for case, result in zip(probed.cases, probed.results, strict=True):
        if (case.operator in REDUCTIONS) == reductions:
            found[case.operator][case.opset][result.word] += 1
    return dict(sorted(found.items()))


def as_text(probed: Probed, distilled: Distilled) -> str:
    """The report as text: a heat map of numbers, then the facts."""
    runtime = distilled.runtime
    counts = Counter(result.word for result in probed.results)
    words = ", ".join(f"{counts[word]} {word}" for word in _WORDS)
    lines = [f"{runtime}: {len(probed.results)} cases, {words}"]
    lines.append(f"reads opset versions {runtime.reads}; most is right at {runtime.prefer}")
    lines += ["", *_table("right, or right/wrong/refused", heat(probed, reductions=True))]
    parts = heat(probed, reductions=False).items()
    if failing := {name: cells for name, cells in parts if any(cell.keys() - {"right"} for cell in cells.values())}:
        lines += ["", *_table("parts of replacements", failing)]
    if runtime.facts:
        lines += ["", "Facts"]
        for fact in runtime.facts:
            lines.append(f"  {fact.outcome:9} {shown(fact.says)}{f' (opset {fact.opsets})' if fact.opsets else ''}")
    if untold := distilled.untold:
        lines += ["", "Failing, and no fact explains it or no equivalent form avoids it"]
        lines += [f"  {case.name}" for case in untold[:_FEW]]
        lines += [f"  and {len(untold) - _FEW} more"] if len(untold) > _FEW else []
    return "\n".join(lines)


def models_text(found: FromModels, left_out: Mapping[str, str]) -> str:
    """What probing real models showed: those that are not right when converted, and why; then the facts added."""
    words = [(change.before.word, change.after.word) for change in found.changes]
    lines = [
        f"{found.probed.runtime} {found.probed.version}: {counted(len(words), 'model')}, "
        f"{sum(before == 'right' for before, _ in words)} right as they are, "
        f"{sum(after == 'right' for _, after in words)} when converted"
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


def _cell(counts: Counter[Word]) -> str:
    """How many are right, and the other two where they are not zero."""
    said = [str(counts[word]) for word in _WORDS]
    return "/".join(said) if counts.total() > counts["right"] else said[0]


def _table(title: str, rows: Mapping[str, Mapping[int, Counter[Word]]]) -> list[str]:
    """A column for each opset version at which more than one form was tried, and one for all others."""
    opsets = sorted({opset for cells in rows.values() for opset in cells})
    wide = [at for at in opsets if any(at in cells and cells[at].total() > 1 for cells in rows.values())]
    rest = [at for at in opsets if at not in wide]
    table = [[title, *map(str, wide), *(["others"] if rest else [])]]
    for operator, cells in rows.items():
        others = sum((cells[at] for at in rest if at in cells), Counter[Word]())
        line = [operator, *(_cell(cells[at]) if at in cells else "" for at in wide)]
        table.append([*line, _cell(others)] if rest else line)
    widths = [max(len(line[at]) for line in table) for at in range(len(table[0]))]
    return [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in table
    ]
