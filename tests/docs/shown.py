"""What the pages show, taken apart into blocks of code, and the running of it."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked import is_plain, program, reducelower

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^\s*(?:import|from)\s+(.+?)(?:\s+import\s.*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code: its language, the file it is (or nothing), its text, and its first line in the page."""

    language: str
    title: str
    text: str
    line: int


def imported(name: str) -> Any:
    """A script beside the pages, imported from its file: their folder is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(found[1], found[2] or "", found[3], text.count("\n", 0, found.start()) + 2)
        for found in _BLOCK.finditer(text)
    ]


def missing_modules(code: str) -> list[str]:
    """What Python code imports and this environment does not have."""
    names = [name.split(" as ")[0].strip().split(".")[0] for line in _IMPORT.findall(code) for name in line.split(",")]
    return [name for name in names if importlib.util.find_spec(name) is None]


def run_python(block: Block, page: str, names: dict[str, Any]) -> None:
    """Run a block as part of its page, so that a traceback leads there."""
    exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), names)


@dataclass(frozen=True)
class Command:
    """A command of a console block, the lines shown below it, and the exit status they speak of."""

    line: str
    shown: tuple[str, ...]
    status: int


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block: each line after a dollar, with what is printed up to the next."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, *shown = part.replace("\\\n", "").splitlines()
        status = re.fullmatch(r"\[exit status (\d+)\]", shown[-1]) if shown else None
        yield Command(line, tuple(shown[:-1] if status else shown), int(status[1]) if status else 0)


def run_command(command: Command, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, `reducelower` and `python` being those under test."""
    if is_plain(command.line):
        return reducelower(shlex.split(command.line)[1:], folder)
    paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))
    with tempfile.TemporaryDirectory() as place:
        program(Path(place) / "reducelower")
        (Path(place) / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        (Path(place) / "python").chmod(0o755)
        return subprocess.run(
            command.line,
            shell=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths, "PATH": os.pathsep.join([place, os.environ["PATH"]])},
            capture_output=True,
            text=True,
            check=False,
        )


def agrees(printed: str, shown: tuple[str, ...]) -> bool:
    """Whether a command printed what is shown; a line of three dots is any number of lines.

    Words count, not spaces, and not where lines are wrapped. Distances and errors depend on the processor, and sets of
    values on what is found worth feeding, so they count as a number, whichever it is.
    """
    if not shown:
        return True
    pattern = "".join(r"(?:.* )?" if line == "..." else re.escape(f"{_words(line)} ") for line in shown)
    return re.fullmatch(pattern, f"{_words(printed)} ") is not None


def _words(text: str) -> str:
    text = re.sub(r"\d+ ULP", "N ULP", " ".join(text.split()))
    text = re.sub(r"\d+ forms on \d+ sets", "N forms on N sets", text)
    return re.sub(r"error [\d.e-]+, [\d.e-]+ of", "error N, N of", text)
