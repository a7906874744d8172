"""The pages about runtimes say what the target files say."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from reducelower.model.schemas import latest_opset
from reducelower.runtimes import shipped_names

from .shown import imported

pytestmark = pytest.mark.xdist_group("the suite")

ROOT = Path(__file__).parents[2]


@cache
def pages() -> dict[str, str]:
    found: dict[str, str] = imported("runtimes").pages()
    return found


def row(heading: str, runtime: str) -> dict[str, str]:
    """A runtime's marks in the table under a heading, by operator."""
    section = pages()["runtimes.md"].partition(f"## {heading}")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    (found,) = (cells for cells in lines if f"[{runtime}]" in cells[0])
    return {name.strip(): mark.strip() for name, mark in zip(lines[0], found, strict=True)}


def facts(runtime: str) -> list[dict[str, object]]:
    content = (ROOT / "rules" / "targets" / f"{runtime}.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(content).get("fact", []))


def test_the_committed_pages_are_current() -> None:
    if latest_opset() != 28:
        pytest.skip("the pages are made with onnx 1.23, which knows opset 28")
    paths = [Path("runtimes.md"), *(path.relative_to(ROOT / "docs") for path in (ROOT / "docs/runtimes").glob("*.md"))]
    committed = {path.as_posix(): (ROOT / "docs" / path).read_text(encoding="utf-8") for path in paths}
    assert committed == pages(), "run: python docs/runtimes.py"


def test_every_page_has_its_place_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r": runtimes/(\S+)\.md", menu) == list(shipped_names())


@pytest.mark.parametrize("runtime", shipped_names())
def test_every_fact_of_every_runtime_is_told_on_its_page(runtime: str) -> None:
    for fact in facts(runtime):
        assert " ".join(str(fact["says"]).split()) in pages()[f"runtimes/{runtime}.md"]


@pytest.mark.parametrize("runtime", shipped_names())
def test_marks_without_parentheses_rest_on_measurements(runtime: str) -> None:
    measured = any("measured" in fact["evidence"] for fact in facts(runtime))  # type: ignore[operator]
    for heading in ("The usual form", "Any form"):
        marks = [mark for name, mark in row(heading, runtime).items() if name not in ("runtime", "version")]
        assert len(marks) == 10
        if not measured:
            assert all(re.fullmatch(r"(·|\(.\))( (·|\(.\)))?", mark) for mark in marks)


def test_the_usual_form_is_told_by_opset_version() -> None:
    marks = row("The usual form", "openvino")
    # openvino.toml: wrong at opsets 13 to 17 where axes are an attribute, right at 18 where they are an input.
    assert marks["L1"] == "✗ ✓"
    # ReduceL2 squares first, at any opset version.
    assert marks["L2"] == "∞"
    assert marks["Mean"] == "✓"


def test_the_worst_of_any_form_is_told() -> None:
    # openvino.toml: products of 64-bit integers are computed in 32 bits, and sums of integers are coarse as well.
    assert row("Any form", "openvino")["Prod"] == "∞"
    assert row("Any form", "openvino")["Sum"] == "∞"
    assert row("Any form", "openvino")["L1"] == "✗"
