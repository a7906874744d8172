"""What the README shows works as printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reducelower
from tests.docs.shown import Command, agrees, blocks, commands, missing_modules, run_command

ROOT = Path(__file__).parents[1]
INSTALLED = Path(reducelower.__file__).parents[1]
"""Where the package is: in the same folder, unless these tests come from an archive and the package from a wheel."""

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "examples" / "models" / "branches_21.onnx", tmp_path / "model.onnx")
    (tmp_path / "models").mkdir()
    shutil.copy(ROOT / "examples" / "models" / "mean_18.onnx", tmp_path / "models")
    return tmp_path


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    for link in links:
        home = INSTALLED if link.startswith("reducelower/") else ROOT
        assert (home / link).exists(), link


def test_the_commands_of_the_tables_work_one_after_another(
    folder: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    commands = re.findall(r"`reducelower ([^`]*)`", README)
    assert len(commands) > 10
    for command in commands:
        ran = cli(*shlex.split(command))
        assert ran.status == command.startswith(("check ", "diff ")), command + ran.err


def test_the_figures_say_how_they_are_made() -> None:
    assert "`python benchmarks/coverage.py`" in README
    assert (ROOT / "benchmarks" / "coverage.py").is_file()


def test_the_comparison_has_a_row_for_every_converter_that_changes_opset_versions() -> None:
    rows = re.findall(r"^\| ([\w.]+)[^|]*(?:\| \d+ ){4}\|$", README, re.MULTILINE)
    expected = {"reducelower", "onnxifier", "onnxsim", "onnx.version_converter", "onnxscript.version_converter"}
    assert set(rows) == expected


def test_the_blocks_run_one_after_another_in_one_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    printed = ""
    for block in blocks(README):
        if block.language == "python" and not missing_modules(block.text):
            assert len(block.text.splitlines()) < 15
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, "README.md", "exec"), {})
            printed = out.getvalue()
        elif block.language == "text":
            assert block.text.split() == printed.split()  # what the block above it prints
        elif block.language == "console":
            for command in commands(block):
                line = command.line.partition(" #")[0].rstrip()
                result = run_command(Command(line, (), 0), folder)
                assert result.returncode == ("check " in command.line), result.stderr
                assert agrees(result.stdout + result.stderr, command.shown)


def test_the_package_index_gets_no_link_that_leads_nowhere() -> None:
    import tomllib

    hook = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["metadata"]["hooks"]
    text = README
    for each in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert "OWNER" not in text
    assert not re.findall(r"\]\((?!https?:)[^)]*\)", text)


def test_badges_are_read_from_the_package_index_and_never_written_by_hand() -> None:
    badges = re.findall(r"!\[[^\]]*\]\((https?:[^)]*)\)", README)
    assert badges
    assert all(re.fullmatch(r"https://img\.shields\.io/pypi/(v|pyversions|l)/reducelower", badge) for badge in badges)


def test_the_page_is_in_the_order_in_which_people_ask() -> None:
    places = [
        README.index(text)
        for text in (
            "**reducelower converts",
            "](docs/images/report.png)",
            "pip install reducelower",
            "torch.onnx.export",
            "$ reducelower convert",
            "| onnx.version_converter |",
            "## What else it does",
            "## Links",
        )
    ]
    assert places == sorted(places)
