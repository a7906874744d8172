"""Read the functions in a rule file, with their line numbers."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

from onnx import AttributeProto, FunctionProto, parser

from reducelower.errors import RuleError
from reducelower.model.schemas import attribute_type, opset_of

__all__ = ["HELPERS", "NOWHERE", "SUFFIX", "VERSIONS", "Place", "Source", "complete_references", "home", "read_rules"]

SUFFIX = ".onnxtxt"
"""The suffix of rule files; the rest of the file name is the operator."""

VERSIONS = "versions"
"""The folder with rules of version boundaries, in a folder of rules."""

HELPERS = "helpers"
"""The stem of the file with helper functions for all rules of a folder."""

_PLACE = re.compile(r"\(line: (\d+) column: (\d+)\)")


class Place(NamedTuple):
    """Where a rule is written; nowhere for one given as an object."""

    path: Path | None
    line: int | None


NOWHERE = Place(None, None)


@dataclass(frozen=True)
class Source:
    """A function with the text it was read from.

    Attributes:
        path: its file; None for a function given as an object.
        lines: the lines of the file up to the function's last.
        first: line number of the function's start, from 1.
        helpers: helper functions that were inlined into it.
    """

    function: FunctionProto
    path: Path | None = None
    lines: tuple[str, ...] = ()
    first: int = 1
    helpers: tuple[Source, ...] = ()

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
            for source in (self, *self.helpers):
                for number, line in enumerate(source.lines[source.first - 1 :], start=source.first):
                    if pattern.search(line):
                        return RuleError(reason, source.path, number)
        return RuleError(reason, *self.place)


@cache
def home() -> Path:
    """The folder of shipped books: inside the package in a wheel, next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "rules"
    return installed if installed.is_dir() else package.parent / "rules"


def read_rules(path: Path) -> list[Source]:
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


def complete_references(function: FunctionProto) -> FunctionProto:
    """A copy whose references such as ``keepdims = @keepdims`` have the attribute type from the operator's schema.

    The text may omit it (in full ``keepdims: int = @keepdims``), but ONNX's checker needs it. Attributes that no schema
    knows are reported by validation.
    """
    completed = deepcopy(function)
    opset = opset_of(function)
    for node in completed.node:
        for attribute in node.attribute:
            if attribute.ref_attr_name and attribute.type == AttributeProto.UNDEFINED:
                attribute.type = cast(AttributeProto.AttributeType, attribute_type(node.op_type, opset, attribute.name))
    return completed
