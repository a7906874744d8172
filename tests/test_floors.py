"""The picture of the rooms in docs/design.md is that of the code: no imports from a room above, none in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import reducelower

pytestmark = pytest.mark.xdist_group("the picture")

PACKAGE = Path(reducelower.__file__).parent
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
SHARED = {
    "__init__",
    "__main__",
    "arguments",
    "child",
    "errors",
    "failures",
    "given",
    "lines",
    "options",
    "outcome",
    "plan",
    "rewrites",
    "text",
    "versions",
}


VERIFICATION = "verification."
IN_VERIFICATION = {"verification.findings", "verification.operators", "verification.result"}
"""Shared by the rooms of the proof."""


def rooms(inside: str = "") -> list[str]:
    """The rooms from the highest to the lowest, as the page lists them: all, or those inside one of them."""
    section = DESIGN.read_text("utf-8").split("## Where things are")[1].split("\n## ")[0]
    listed = [
        line.split()[0] for text in re.findall(r"```text\n(.*?)```", section, re.DOTALL) for line in text.splitlines()
    ]
    names = [name.replace("/", ".") for name in listed]
    return [name for name in names if name.rpartition(".")[0] == inside.rstrip(".")]


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module of the package that another imports, also late or for types alone."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    known = modules()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "reducelower":
            inner = (node.module or "").partition(".")[2]
            for alias in node.names:
                longer = f"{inner}.{alias.name}".strip(".")
                yield longer if longer in known else inner
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("reducelower."))


def test_the_page_names_every_room() -> None:
    there = {name.split(".")[0] for name in modules()} - SHARED
    assert sorted(rooms()) == sorted(there)


def test_the_page_names_every_room_of_the_proof() -> None:
    there = {".".join(name.split(".")[:2]) for name in modules() if name.startswith(VERIFICATION)} - IN_VERIFICATION
    assert sorted(rooms(VERIFICATION)) == sorted(there)


@pytest.mark.parametrize("inside", ["", VERIFICATION])
def test_no_room_imports_from_one_above_it(inside: str) -> None:
    floor = {name: number for number, name in enumerate(rooms(inside))}

    def of(name: str) -> str:
        """The room of a module."""
        return inside + name.removeprefix(inside).split(".")[0] if name.startswith(inside) else ""

    upward = [
        f"{name} imports {other}"
        for name, path in modules().items()
        for other in imports(path)
        if floor.get(of(name), -1) > floor.get(of(other), len(floor))
    ]
    assert not upward


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Where modules are, `static_order` raises CycleError, which names them."""
    known = modules()
    read = {name: set(imports(path)) & known.keys() - {name} for name, path in known.items()}
    assert set(TopologicalSorter(read).static_order()) == known.keys()
