"""The picture of the rooms in docs/design.md is that of the code: no imports from a room above, none in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import reducelower

PACKAGE = Path(reducelower.__file__).parent
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
SHARED = {
    "__init__",
    "__main__",
    "arguments",
    "errors",
    "failures",
    "notebook",
    "options",
    "outcome",
    "plan",
    "versions",
}


def rooms() -> list[str]:
    """The rooms from the highest to the lowest, as the page lists them."""
    section = DESIGN.read_text("utf-8").split("## Where things are")[1]
    picture = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert picture is not None
    return [line.split()[0] for line in picture[1].splitlines()]


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


def test_no_room_imports_from_one_above_it() -> None:
    floor = {name: number for number, name in enumerate(rooms())}
    upward = [
        f"{name} imports {other}"
        for name, path in modules().items()
        for other in imports(path)
        if floor.get(name.split(".")[0], -1) > floor.get(other.split(".")[0], len(floor))
    ]
    assert not upward


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Where modules are, `static_order` raises CycleError, which names them."""
    known = modules()
    read = {name: set(imports(path)) & known.keys() - {name} for name, path in known.items()}
    assert set(TopologicalSorter(read).static_order()) == known.keys()
