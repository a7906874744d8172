"""What whole graphs and local functions become: the tables in `cases`, which `tests.table` explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table import check, rows

ROWS = rows(Path(__file__).with_name("cases"))


@pytest.mark.parametrize("claim", ROWS)
def test_numbers_are_what_numpy_says(claim: str) -> None:
    check(ROWS[claim])
