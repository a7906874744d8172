"""Every rewrite at an opset boundary has been compared with an expectation that does not come from the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.fuzz.judging import judge
from tools.fuzz.rewrites import case_of, covered_elsewhere, every_rewrite, is_rewritten, known_numbers
from tools.fuzz.versions import measured

ROOT = Path(__file__).parents[2]
NUMBERS = sorted(known_numbers().items())
SHARES = [NUMBERS[start::6] for start in range(6)]


def test_no_rewrite_has_never_been_compared_with_an_independent_expectation() -> None:
    never = set(every_rewrite()) - set(known_numbers()) - set(covered_elsewhere())
    assert sorted(never) == [], "`python -m tools.fuzz.rewrites` looks for a case of each"


@pytest.mark.opset(28)
def test_nothing_is_listed_that_is_no_rewrite() -> None:
    assert sorted((set(known_numbers()) | set(covered_elsewhere())) - set(every_rewrite())) == []
    assert not set(known_numbers()) & set(covered_elsewhere())


@pytest.mark.parametrize("row", sorted(set(covered_elsewhere().values())))
def test_a_row_that_is_named_instead_exists(row: str) -> None:
    table, claim = row.split("::")
    assert f'["{claim}"]' in (ROOT / table).read_text(encoding="utf-8")


@measured
@pytest.mark.parametrize("share", SHARES)
def test_a_rewrite_computes_what_a_runtime_makes_of_its_source(share: list[tuple[str, int]]) -> None:
    for name, number in share:
        case = case_of(name, number)
        verdict = judge(case)
        assert verdict.kind == "equal", f"{name}: {verdict.kind}: {verdict.detail}"
        assert verdict.judges, name
        assert is_rewritten(case), name
