"""The page about runtimes says what the target files say."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from reducelower.model.schemas import latest_opset
from reducelower.runtimes import shipped_names

from .shown import imported

ROOT = Path(__file__).parents[2]


@cache
def made() -> str:
    text: str = imported("runtimes").page()
    return text


def row(heading: str, runtime: str) -> dict[str, str]:
    """A runtime's marks in the table under a heading, by operator."""
    section = made().partition(f"## {heading}")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    (found,) = (cells for cells in lines if f"[{runtime}]" in cells[0])
    return {name.strip(): mark.strip() for name, mark in zip(lines[0], found, strict=True)}


def facts(runtime: str) -> list[dict[str, object]]:
    content = (ROOT / "rules" / "targets" / f"{runtime}.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(content).get("fact", []))


def test_the_committed_page_is_current() -> None:
    if latest_opset() != 28:
        pytest.skip("the page is made with onnx 1.23, which knows opset 28")
    committed = (ROOT / "docs" / "runtimes.md").read_text(encoding="utf-8")
    assert committed == made(), "run: python docs/runtimes.py > docs/runtimes.md"


@pytest.mark.parametrize("runtime", shipped_names())
def test_every_fact_of_every_runtime_is_told_under_its_anchor(runtime: str) -> None:
    section = made().partition(f"{{#{runtime}}}\n")[2].partition("\n## ")[0]
    for fact in facts(runtime):
        assert " ".join(str(fact["says"]).split()) in section


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
