"""Distances of two arrays, in a table.

Of each row of `measured.toml`, ``before`` and ``after`` are expressions, ``tolerance`` is an expression or the name of
a default one, or nothing may differ, and ``options`` are further arguments of `measure`. Nothing differs unless there
is a ``mismatch``, which holds these parts; what ``holds`` is true of what was ``found``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import pytest

from reducelower.numerics.measure import measure
from reducelower.numerics.tolerance import DEFAULT_TOLERANCES, EXACT, Tolerance
from tests.table import VOCABULARY, combinations, rows

NAMES = {**VOCABULARY, "Tolerance": Tolerance, "finfo": ml_dtypes.finfo}
ROWS = rows(
    Path(__file__).with_name("measured.toml"),
    fields={"each", "before", "after", "tolerance", "options", "mismatch", "holds"},
)


def tolerance_of(row: Any) -> Tolerance:
    said = row.get("tolerance", "")
    if not said:
        return EXACT
    return DEFAULT_TOLERANCES[said] if said in DEFAULT_TOLERANCES else eval(said, NAMES)


@pytest.mark.parametrize("claim", ROWS)
def test_what_is_measured_of_two_arrays(claim: str) -> None:
    row = ROWS[claim]
    options = dict(row.get("options", {}))
    for chosen in combinations(row.get("each", {})):
        names = {**NAMES, **chosen}
        before, after = (eval(row[side], names) for side in ("before", "after"))
        found = measure(before, after, tolerance_of(row), **options)
        parts = row.get("mismatch", [])
        assert bool(found.mismatch) is ("mismatch" in row), (chosen, found)
        assert all(part in found.mismatch for part in ([parts] if isinstance(parts, str) else parts)), (chosen, found)
        for held in row.get("holds", ()):
            assert eval(held, {**names, "found": found}), (held, chosen, found)


def test_every_default_tolerance_has_a_reason() -> None:
    assert all(tolerance.reason for tolerance in DEFAULT_TOLERANCES.values())
