"""Read the functions in a rule file, with their line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias

from onnx import FunctionProto, NodeProto, defs, parser

from reducelower.errors import Place, RuleError
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import opset_of

__all__ = [
    "OPERATORS", "SUFFIX", "VERSIONS", "Folder", "Helpers", "RuleText", "Source", "by_name", "called", "home",
    "shipped_books", "texts",
]  # fmt: skip

SUFFIX = ".onnxtxt"
"""The suffix of rule files; the rest of the file name is the operator."""

VERSIONS = "versions"
"""The folder with rules of version boundaries, in a folder of rules."""

OPERATORS = "# operators: "
"""The beginning of the first line of a file that lists its operators, if its name is not that of an operator."""

_HELPERS = "helpers"
"""The stem of the file with helper functions for all rules of a folder."""

_PLACE = re.compile(r"\(line: (\d+) column: (\d+)\)")


@dataclass(frozen=True)
class Source:
    """A function with the text it was read from.

    Attributes:
        path: its file; None for a function given as an object.
        lines: the lines of the file up to the function's last.
        first: line number of the function's start, from 1.
    """

    function: FunctionProto
    path: Path | None = None
    lines: tuple[str, ...] = ()
    first: int = 1

    @property
    def place(self) -> Place:
        """Where the function starts."""
        return Place(self.path, self.first if self.path else None)

    def written_for(self, overload: str) -> Source:
        """The same function with another overload."""
        function = deepcopy(self.function)
        function.overload = overload
        return replace(self, function=function)

    def error(self, reason: str, word: str = "") -> RuleError:
        """A `RuleError` at the first line of the body that defines or mentions this name."""
        defines = re.compile(rf"^[^=(]*\b{re.escape(word)}\b[^=(]*=") if word else None
        mentions = re.compile(rf"\b{re.escape(word)}\b") if word else None
        for pattern in filter(None, (defines, mentions)):
            for number, line in enumerate(self.lines[self.first - 1 :], start=self.first):
                if pattern.search(line):
                    return RuleError(reason, self.path, number)
        return RuleError(reason, *self.place)


Helpers: TypeAlias = Mapping[str, Sequence[Source]]
"""Helper functions by name, each with its definitions for some element types; those of a form are alternatives."""


@dataclass(frozen=True)
class RuleText:
    """A rule as it is written: the function, the helpers that it may call, and the name of its book."""

    source: Source
    helpers: Helpers = field(repr=False)
    book: str = ""

    @property
    def function(self) -> FunctionProto:
        """The function; inputs and outputs are those of the operator, in the schema's order."""
        return self.source.function

    @property
    def place(self) -> Place:
        """Where it is written."""
        return self.source.place

    @property
    def name(self) -> str:
        """Book and operator, such as ``stable/ReduceL2``."""
        return f"{self.book}/{self.function.name}"

    @property
    def opset(self) -> int:
        """The opset version of its body."""
        return opset_of(self.function)

    @cached_property
    def functions(self) -> Sequence[Source]:
        """The rule, and the helpers that it calls, directly or not."""
        found, waiting = {id(self.source): self.source}, [self.source]
        while waiting:
            names = called(waiting.pop().function.node)
            new = {id(each): each for name in names for each in self.helpers.get(name, ()) if id(each) not in found}
            found.update(new)
            waiting += new.values()
        return list(found.values())

    @cached_property
    def operators(self) -> frozenset[str]:
        """The operators that its body uses."""
        return frozenset(name for each in self.functions for name in called(each.function.node))


def texts(rules: Sequence[RuleText]) -> Iterator[str]:
    """The text of rules, and then of the helpers that they use, each once."""
    sources = [rule.source for rule in rules] + [each for rule in rules for each in rule.functions]
    for source in {each.place: each for each in sources}.values():
        yield "\n".join(source.lines[source.first - 1 :])


def called(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """The operators of nodes, including those in their subgraphs and the steps of a Fold."""
    for node in nodes:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.name == "step":
                yield attribute.s.decode()
        for _, _, graph in subgraphs(node):
            yield from called(graph.node)


@cache
def home() -> Path:
    """The folder of shipped books: inside the package in a wheel, next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "rules"
    return installed if installed.is_dir() else package.parent / "rules"


@cache
def shipped_books() -> frozenset[str]:
    """The names of the books that come with the package."""
    return frozenset(path.name for path in home().iterdir() if path.name != VERSIONS and any(path.glob(f"*{SUFFIX}")))


class Folder:
    """The files of rules in a folder, or none; each is parsed when one of its operators is first asked for."""

    def __init__(self, path: Path | None, helpers: Helpers) -> None:
        """Find the files; `helpers` serve all rules, besides those of the folder."""
        self.path = path
        self._shared = helpers

    @cached_property
    def files(self) -> Mapping[str, Sequence[Path]]:
        """The files by operator, by their names or by the operators that their first lines name."""
        files: dict[str, list[Path]] = {}
        for path in sorted(self.path.glob(f"*{SUFFIX}")) if self.path else ():
            if path.stem == _HELPERS:
                continue
            with path.open(encoding="utf-8", errors="replace") as file:
                first_line = file.readline()
            names = first_line.removeprefix(OPERATORS).split() if first_line.startswith(OPERATORS) else [path.stem]
            for op_type in names:
                files.setdefault(op_type, []).append(path)
        return files

    @cached_property
    def helpers(self) -> Helpers:
        """The helper functions for all rules, which may use each other."""
        path = None if self.path is None else self.path / f"{_HELPERS}{SUFFIX}"
        return {**self._shared, **(by_name(_read(path)) if path is not None and path.is_file() else {})}

    def read(self, op_type: str) -> list[list[Source]]:
        """The functions for an operator, of each of its files.

        Raises:
            RuleError: a file cannot be read or is not ONNX text.
        """
        return [_read(path) for path in self.files.get(op_type, ())]


def _read(path: Path) -> list[Source]:
    """Read the functions of one file.

    A function starts with the ``<`` of its header in the first column and ends with a ``}`` in the first column. Only
    empty lines and comments (``# ...``) may be between functions.

    Raises:
        RuleError: the file cannot be read or is not ONNX text.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"cannot be read: {error}", path) from None
    sources = []
    start: int | None = None
    for number, line in enumerate(lines, start=1):
        if start is None and line.startswith("<"):
            start = number
        elif start is not None and line.rstrip() == "}":
            sources.append(_parse(path, tuple(lines[:number]), start))
            start = None
        elif start is None and line.strip() and not line.lstrip().startswith("#"):
            raise RuleError("a function starts with the '<' of its header in the first column", path, number)
    if start is not None:
        _parse(path, tuple(lines), start)
        raise RuleError("the function does not end with a '}' in the first column", path, start)
    if not sources:
        raise RuleError("holds no function", path, 1)
    return sources


def _parse(path: Path, lines: tuple[str, ...], start: int) -> Source:
    """Parse one function; empty lines before it make the parser's line numbers those of the file."""
    text = "\n" * (start - 1) + "\n".join(lines[start - 1 :]) + "\n"
    try:
        return Source(parser.parse_function(text), path, lines, start)
    except parser.ParseError as error:
        # Keep the line number and the last sentence of the parser's message, which is the reason.
        place = _PLACE.search(str(error))
        reason = str(error).removeprefix("b'").removeprefix('b"').rstrip("'\"").split("\\n")[-1]
        raise RuleError(f"is not ONNX text: {reason}", path, int(place[1]) if place else start) from None


def by_name(sources: Iterable[Source]) -> Helpers:
    """Helper functions by name.

    Raises:
        RuleError: one is called like an operator.
    """
    helpers: dict[str, list[Source]] = {}
    for source in sources:
        name = source.function.name
        if defs.has(name, domain=""):
            raise source.error(f"a helper may not be called {name}, the name of an ONNX operator", name)
        helpers.setdefault(name, []).append(source)
    return helpers
