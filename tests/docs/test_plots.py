"""The plots of the page on numerics: one for every rule that has an error, small, the same in every run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .shown import DOCS, imported


def script() -> Any:
    pytest.importorskip("matplotlib")
    return imported("plots")


def test_every_plot_that_the_page_shows_is_there_and_small() -> None:
    shown = re.findall(r"\((plots/\w+\.svg)\)", (DOCS / "numerics.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(str(path.relative_to(DOCS)) for path in (DOCS / "plots").glob("*"))
    for name in shown:
        assert (DOCS / name).stat().st_size < 100_000


def test_two_runs_draw_the_same(tmp_path: Path) -> None:
    plots = script()
    for folder in ("one", "two"):
        plots.main(str(tmp_path / folder), magnitudes=3, trials=1)
    drawn = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert drawn == sorted(path.name for path in (DOCS / "plots").iterdir())
    for name in drawn:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
