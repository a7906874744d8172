"""Few rows of many parameters in which every two values of different parameters still meet."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, TypeVar

__all__ = ["pairwise", "thinned"]

_Row = TypeVar("_Row", bound=Sequence[Hashable])


def pairwise(*parameters: Collection[Any], possible: Callable[..., bool] = lambda *row: True) -> list[tuple[Any, ...]]:
    """Rows, each with a value of every parameter, such that every two values that can meet do so in one of them.

    Args:
        parameters: the values of each parameter.
        possible: whether a row can be at all.
    """
    listed = [list(values) for values in parameters]
    rows = itertools.product(*(range(len(values)) for values in listed))

    def given(row: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[at] for values, at in zip(listed, row, strict=True))

    return [given(row) for row in thinned([row for row in rows if possible(*given(row))])]


def thinned(rows: Sequence[_Row]) -> list[_Row]:
    """Those of some rows in which every two values meet that meet in any of them; always the same ones.

    Most faults hang on one parameter or on two that meet, so that these rows find what all of them find.
    Source: Kuhn, Wallace and Gallo, Software Fault Interactions and Implications for Software Testing, IEEE TSE 2004.
    """
    if not rows or len(rows[0]) < 2:
        return list(rows)
    columns = list(itertools.combinations(range(len(rows[0])), 2))
    pairs = [{(i, j, row[i], row[j]) for i, j in columns} for row in rows]
    kept = set()
    order = random.Random(0).sample(range(len(rows)), len(rows))
    met: set[tuple[Hashable, ...]] = set()
    # Those that bring most come first, so that few are needed.
    for least in range(len(columns), 0, -1):
        for at in order:
            # What a row brings becomes less and less, so that one that brings little is not looked at until later.
            if len(pairs[at]) >= least:
                pairs[at] -= met
            if len(pairs[at]) >= least:
                met |= pairs[at]
                kept.add(at)
    return [row for at, row in enumerate(rows) if at in kept]
