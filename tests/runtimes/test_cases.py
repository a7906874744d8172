"""What a runtime gets wrong is written otherwise, with the same numbers: the tables in `cases`, see `tests.table`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table import check, rows

ROWS = rows(Path(__file__).with_name("cases"))


@pytest.mark.parametrize("claim", ROWS)
def test_no_fact_is_true_of_what_computes_the_same(claim: str) -> None:
    check(ROWS[claim])
