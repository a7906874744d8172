"""The report of a probe as text, with a map of what is right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reducelower.adapters.reductions import REDUCTIONS
from reducelower.conformance.distilling import Distilled
from reducelower.conformance.from_models import FromModels
from reducelower.conformance.judging import Word
from reducelower.conformance.running import Probed
from reducelower.model.text import counted, shown

__all__ = ["as_text", "heat", "models_text"]

_WORDS: tuple[Word, ...] = ("right", "wrong", "refused")

_FEW = 10

_LONGEST = 200
"""Of the reason why a model fails, on the terminal; all of it is in the report."""


@dataclass(frozen=True)
class Cell:
    """The results for an operator at an opset version."""

    right: int = 0
    wrong: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        """The number of cases."""
        return self.right + self.wrong + self.refused

    def __str__(self) -> str:
        """The number of right ones, and the other two if they are not zero."""
        if not self.total:
            return ""
        return f"{self.right}/{self.wrong}/{self.refused}" if self.wrong or self.refused else str(self.right)


@dataclass(frozen=True)
class Row:
    """An operator, with one cell for each opset version."""

    operator: str
    cells: tuple[Cell, ...]


def heat(probed: Probed, *, reductions: bool) -> tuple[tuple[int, ...], tuple[Row, ...]]:
    """The opset versions probed, and a row for each operator.

    Those are the Reduce operators, or else the operators that their replacements are made of.
    """
    counts: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for case, result in zip(probed.cases, probed.results, strict=True):
        if (case.operator in REDUCTIONS) == reductions:
            counts[case.operator, case.opset].append(result.word)
    opsets = tuple(sorted({opset for _, opset in counts}))
    rows = tuple(
        Row(operator, tuple(Cell(*map(counts[operator, opset].count, _WORDS)) for opset in opsets))
        for operator in dict.fromkeys(operator for operator, _ in sorted(counts))
    )
    return opsets, rows


def totals(probed: Probed) -> dict[Word, int]:
    """How many cases are right, wrong and refused."""
    counts = Counter(result.word for result in probed.results)
    return {word: counts[word] for word in _WORDS}


def as_text(probed: Probed, distilled: Distilled) -> str:
    """The report as text: a heat map of numbers, then the facts."""
    runtime = distilled.runtime
    words = ", ".join(f"{count} {word}" for word, count in totals(probed).items())
    lines = [f"{runtime}: {len(probed.results)} cases, {words}"]
    lines.append(f"reads opset versions {runtime.reads}; most is right at {runtime.prefer}")
    lines += ["", *_table("right, or right/wrong/refused", *heat(probed, reductions=True))]
    opsets, rows = heat(probed, reductions=False)
    failing = [row for row in rows if any(cell.wrong or cell.refused for cell in row.cells)]
    if failing:
        lines += ["", *_table("parts of replacements", opsets, failing)]
    if runtime.facts:
        lines += ["", "Facts"]
        for fact in runtime.facts:
            lines.append(f"  {fact.outcome:9} {shown(fact.says)}{f' (opset {fact.opsets})' if fact.opsets else ''}")
    for title, cases in (
        ("Failing, and no fact explains it or no equivalent form avoids it", distilled.untold),
        ("Right, but a fact is true of it", distilled.overcast),
    ):
        if cases:
            lines += ["", title, *(f"  {case.name}" for case in cases[:_FEW])]
            lines += [f"  and {len(cases) - _FEW} more"] if len(cases) > _FEW else []
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


def _table(title: str, opsets: Sequence[int], rows: Sequence[Row]) -> list[str]:
    """A column for each opset version at which more than one form was tried, and one for all others."""
    wide = [at for at in range(len(opsets)) if max(row.cells[at].total for row in rows) > 1]
    rest = [at for at in range(len(opsets)) if at not in wide]
    head = [title, *(str(opsets[at]) for at in wide), *(["others"] if rest else [])]
    table = [head]
    for row in rows:
        cells = [str(row.cells[at]) for at in wide]
        if rest:
            together = [sum(getattr(row.cells[at], word) for at in rest) for word in _WORDS]
            cells.append("/".join(map(str, together)) if together[1] or together[2] else str(together[0]))
        table.append([row.operator, *cells])
    widths = [max(len(line[at]) for line in table) for at in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in table
    ]
