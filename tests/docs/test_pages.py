"""What the pages show works as printed: Python runs, commands print what stands below them, tables are current."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from .shown import DOCS, ROOT, Command, agrees, blocks, commands, missing_modules, run_command, run_python

PAGES = sorted(path for path in DOCS.rglob("*.md") if re.search(r"^```(python|console)", path.read_text("utf-8"), re.M))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What every page starts from: a model, and a folder of models."""
    examples = ROOT / "examples" / "models"
    shutil.copy(examples / "branches_21.onnx", tmp_path / "model.onnx")
    shutil.copytree(examples, tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
def test_what_a_page_shows_works_from_top_to_bottom(page: Path, folder: Path) -> None:
    names: dict[str, Any] = {}
    missing: list[str] = []
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.title:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            absent = missing_modules(block.text)
            missing += absent
            if not absent:
                run_python(block, str(page), names)
        elif block.language == "console":
            for command in commands(block):
                if "--runtime openvino" in command.line and missing_modules("import openvino"):
                    missing.append("openvino")
                    continue
                result = run_command(command, folder)
                assert result.returncode == command.status, f"{command.line}\n{result.stdout}{result.stderr}"
                assert agrees(result.stdout + result.stderr, command.shown), f"{command.line}\n{result.stdout}"
    if missing:
        pytest.skip(f"all but what needs {', '.join(sorted(set(missing)))} was run")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_what_a_terminal_shows_is_at_most_eighty_columns_wide(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "console":
            assert max(map(len, block.text.splitlines()), default=0) <= 80, block.text


def test_a_newcomer_needs_less_than_ten_lines() -> None:
    first = next(block for block in blocks((DOCS / "tutorial.md").read_text()) if block.language == "python")
    assert "torch.onnx.export" in first.text
    assert len(first.text.splitlines()) < 10


@pytest.mark.parametrize(("table", "example"), [("extremes", "extremes.py"), ("layers", "half_precision.py")])
def test_a_table_on_numerics_is_what_the_example_prints(table: str, example: str) -> None:
    numerics = (DOCS / "numerics.md").read_text(encoding="utf-8")
    if onnxruntime.__version__ not in numerics:
        pytest.skip("the table is that of another onnxruntime")
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / example)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    shown = re.search(rf"<!-- {table} -->\n(.*?)<!-- /{table} -->", numerics, re.DOTALL)
    assert shown
    assert shown[1].strip() == result.stdout.strip()


# What the test above rests on


@pytest.mark.parametrize(
    ("printed", "shown", "agreed"),
    [
        ("a  b\nc\n", ("a b", "c"), True),
        ("a b\nc\n", ("a b",), False),
        ("a b c\n", ("a b", "  c"), True),
        ("a\nb\nc\n", ("...", "c"), True),
        ("a\nb\nc\n", ("a", "...", "c"), True),
        ("a\nb\n", ("...", "c"), False),
        ("at most 7 ULP apart\n", ("at most 12 ULP apart",), True),
        ("7 nodes\n", ("8 nodes",), False),
    ],
)
def test_what_is_printed_is_held_against_what_is_shown(printed: str, shown: tuple[str, ...], agreed: bool) -> None:
    assert agrees(printed, shown) is agreed


def test_a_console_block_is_taken_apart() -> None:
    (block,) = blocks("text\n\n```console\n$ one\nout\n$ two\n[exit status 1]\n```\n")
    assert block.line == 4
    assert list(commands(block)) == [Command("one", ("out",), 0), Command("two", (), 1)]


def test_a_command_may_go_on_in_the_next_line() -> None:
    (block,) = blocks("```console\n$ one \\\n    two\nout\n```\n")
    (command,) = commands(block)
    assert command.line.split() == ["one", "two"]
    assert command.shown == ("out",)


def test_modules_that_are_not_there_are_found() -> None:
    assert missing_modules("import os, nowhere.inside as n\nfrom elsewhere.more import x\nfrom os import path") == [
        "nowhere",
        "elsewhere",
    ]
