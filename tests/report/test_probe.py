"""The report of a probe in both forms."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.distilling import distil
from reducelower.conformance.judging import Verdict
from reducelower.report.probe import as_html, as_text, heat, write_probe_report
from tests.conformance.made import DAY, RIGHT, probed, reductions

SAID = 'ValueError: <b>no</b> & "none" \x1b[31m'


def verdict(case: Case) -> Verdict:
    if case.features.axes == "dynamic":
        return Verdict("refused", "error", SAID)
    if case.tag == "empty":
        return Verdict("wrong", "values", "0, expected 1")
    return RIGHT


PROBED = probed(reductions("ReduceProd", "ReduceSum", "Cast"), verdict)
DISTILLED = distil(PROBED, DAY)
REFUSALS = sum(result.word == "refused" for result in PROBED.results)
WRONGS = sum(result.word == "wrong" for result in PROBED.results)


def test_the_heat_map_counts_every_case_once() -> None:
    both = [heat(PROBED, reductions=flag)[1] for flag in (True, False)]
    assert [[row.operator for row in rows] for rows in both] == [["ReduceProd", "ReduceSum"], ["Cast"]]
    assert sum(cell.total for rows in both for row in rows for cell in row.cells) == len(PROBED.cases)
    assert sum(cell.refused for rows in both for row in rows for cell in row.cells) == REFUSALS


def test_text_has_the_counts_the_facts_and_what_is_left() -> None:
    text = as_text(PROBED, DISTILLED)
    assert f"fake 1.0: {len(PROBED.cases)} cases" in text
    assert "ReduceProd and ReduceSum with axes known at run time only are refused" in text
    assert "ReduceProd-18 float[2,0,3]" in text
    assert "\x1b" not in text


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.links += [values[name] or "" for name in ("src", "href") if name in values]
        if tag == "td" and (values.get("class") or "").startswith("heat"):
            self.cells.append(values["class"] or "")
        assert tag != "b"
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_shades_its_cells() -> None:
    page = _Page()
    page.feed(as_html(PROBED, DISTILLED))
    assert page.links == []
    assert page.open == []
    filled = sum(
        bool(cell.total) for flag in (True, False) for row in heat(PROBED, reductions=flag)[1] for cell in row.cells
    )
    assert len(page.cells) == filled
    assert set(page.cells) == {"heat3", "heat4"}


def test_a_report_is_written_the_same_every_time(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_probe_report(PROBED, DISTILLED, path)
    first = path.read_bytes()
    write_probe_report(PROBED, DISTILLED, path)
    assert path.read_bytes() == first
