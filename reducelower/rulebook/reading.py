"""From a rule's file to its functions, with the line each stands on."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from onnx import AttributeProto, FunctionProto, parser

from reducelower.errors import RuleError
from reducelower.model.schemas import attribute_type, opset_of

__all__ = ["HELPERS", "SUFFIX", "Source", "complete_references", "read_rules"]

SUFFIX = ".onnxtxt"
"""What the name of a rule's file ends with; the rest of the name is the operator it replaces."""

HELPERS = "helpers"
"""The name, without its end, of the file in a folder of rules that holds helper functions for all of them."""

_PLACE = re.compile(r"\(line: (\d+) column: (\d+)\)")


@dataclass(frozen=True)
class Source:
    """A function together with the text it was read from.

    Attributes:
        path: file it stands in; None for a function given as an object.
        lines: the lines of the file, from the first one to the function's last.
        first: line the function starts on, counted from 1.
        helpers: the helper functions whose bodies were written into it.
    """

    function: FunctionProto
    path: Path | None = None
    lines: tuple[str, ...] = ()
    first: int = 1
    helpers: tuple[Source, ...] = ()

    def written_for(self, overload: str) -> Source:
        """The same function with another overload."""
        function = deepcopy(self.function)
        function.overload = overload
        return replace(self, function=function)

    def error(self, reason: str, word: str = "") -> RuleError:
        """A `RuleError` that points at the first line of the body which gives a value this name, or mentions it."""
        gives = re.compile(rf"^[^=(]*\b{re.escape(word)}\b[^=(]*=") if word else None
        mentions = re.compile(rf"\b{re.escape(word)}\b") if word else None
        for pattern in filter(None, (gives, mentions)):
            for source in (self, *self.helpers):
                for number, line in enumerate(source.lines[source.first - 1 :], start=source.first):
                    if pattern.search(line):
                        return RuleError(reason, source.path, number)
        return RuleError(reason, self.path, self.first if self.path else None)


def read_rules(path: Path) -> list[Source]:
    """Read the functions of one file.

    A function starts with the ``<`` of its header in the first column and ends with a ``}`` in the first column;
    between functions there is nothing but empty lines and comments (``# ...``).

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
    """Parse one function; empty lines in front of it keep the parser's own line numbers those of the file."""
    text = "\n" * (start - 1) + "\n".join(lines[start - 1 :]) + "\n"
    try:
        return Source(parser.parse_function(text), path, lines, start)
    except parser.ParseError as error:
        # Of the parser's message its reason, which is the last sentence, and the line it names.
        place = _PLACE.search(str(error))
        reason = str(error).removeprefix("b'").removeprefix('b"').rstrip("'\"").split("\\n")[-1]
        raise RuleError(f"is not ONNX text: {reason}", path, int(place[1]) if place else start) from None


def complete_references(function: FunctionProto) -> FunctionProto:
    """A copy whose references such as ``keepdims = @keepdims`` have the type that the operator's schema states.

    The text may leave it out (``keepdims: int = @keepdims`` in full); ONNX's checker asks for it. What the schemas do
    not know is left for validation to report.
    """
    completed = deepcopy(function)
    opset = opset_of(function)
    for node in completed.node:
        for attribute in node.attribute:
            if attribute.ref_attr_name and attribute.type == AttributeProto.UNDEFINED:
                attribute.type = cast(AttributeProto.AttributeType, attribute_type(node.op_type, opset, attribute.name))
    return completed
