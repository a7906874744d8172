"""How much of an operator is right at each opset version: the rows and columns of a heat map."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reducelower.adapters.reductions import REDUCTIONS
from reducelower.conformance.running import Probed

__all__ = ["Cell", "Row", "heat"]


@dataclass(frozen=True)
class Cell:
    """The cases of an operator at an opset version; all zero where there is none."""

    right: int = 0
    wrong: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        """How many cases there are."""
        return self.right + self.wrong + self.refused

    def __str__(self) -> str:
        """The number of right ones, and the other two where they are not zero."""
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

    Args:
        probed: the results.
        reductions: the Reduce operators; otherwise the operators that their replacements are made of.
    """
    counts: dict[tuple[str, int], list[str]] = {}
    for case, result in zip(probed.cases, probed.results, strict=True):
        if (case.operator in REDUCTIONS) == reductions:
            counts.setdefault((case.operator, case.opset), []).append(result.word)
    opsets = tuple(sorted({opset for _, opset in counts}))
    rows = tuple(
        Row(operator, tuple(_cell(counts.get((operator, opset), ())) for opset in opsets))
        for operator in dict.fromkeys(operator for operator, _ in sorted(counts))
    )
    return opsets, rows


def _cell(words: Iterable[str]) -> Cell:
    found = list(words)
    return Cell(found.count("right"), found.count("wrong"), found.count("refused"))
