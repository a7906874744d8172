"""The nodes of an outcome with blanks for names, taken apart once and filled for every node that gets the outcome."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from onnx import NodeProto

from reducelower.legalization.memo.format import Format, Piece
from reducelower.model.census import INPUT, NAME, OUTPUT
from reducelower.model.graph import subgraphs
from reducelower.model.wire import varint
from reducelower.scope.blanks import blank

__all__ = ["MARKS", "NAME_BLANK", "Template", "fill", "is_in_blanks"]

NAME_BLANK = blank("n")
"""The blank of the node's own name."""

MARKS = blank("marks")
"""The doc string of a node in blanks: doc string and metadata of the original go to the new node that has it."""

_BLANK = re.compile(r"⟦\w+⟧")
_OPERAND = re.compile(r"⟦(\d+)⟧")

_FORMATS_KEPT = 8

_Pieces: TypeAlias = "Sequence[Piece | str]"
"""A node in pieces; names of new values and added constants are strings."""


class Template:
    """What is the same for every node with an outcome, in whatever graph and model it stands.

    The texts that fill the blanks are the operands of the node, its name, its marks, and then the new names.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProto],
        derived: Sequence[tuple[str, str, str]],
        added: Collection[str],
        operands: int,
        *,
        is_bare: bool,
    ) -> None:
        """Take the nodes of an outcome; nothing is taken apart yet.

        Args:
            nodes: the nodes, with blanks for names.
            derived: new names in order: stem, tail, name.
            added: the blanks of added constants.
            operands: how many distinct operands the replaced node has.
            is_bare: see `Format`.
        """
        self._nodes = nodes
        self._derived = derived
        self._added = added
        self._name_at = operands
        self._marks_at = operands + 1
        self._numbers = {name: operands + 2 + at for at, (_, _, name) in enumerate(derived)}
        self._is_bare = is_bare
        self._formats: dict[tuple[str, ...], Format] = {}

    @property
    def is_bytes(self) -> bool:
        """Whether the nodes can be written as bytes: none has subgraphs or a name of another form."""
        return self._pieces is not None

    def format(self, constants: Mapping[str, str]) -> Format:
        """The nodes as bytes with blanks; `constants` are names in the graph of added constants, by their blanks."""
        key = tuple(constants.values())
        if key not in self._formats:
            if len(self._formats) >= _FORMATS_KEPT:
                self._formats.clear()
            coded = {name: _coded(given) for name, given in constants.items()}
            known: dict[str, Piece] = {**self._numbers, **coded}
            nodes = [[known[each] if isinstance(each, str) else each for each in node] for node in self._pieces or ()]
            self._formats[key] = Format(nodes, self._marks_at, is_bare=self._is_bare)
        return self._formats[key]

    @cached_property
    def _pieces(self) -> Sequence[_Pieces] | None:
        nodes = []
        for node in self._nodes:
            pieces = self._pieces_of(node)
            if pieces is None:
                return None
            nodes.append(pieces)
        return nodes

    def _pieces_of(self, node: NodeProto) -> _Pieces | None:
        """A node in pieces: its names, operator and attributes, everything else; None if it has names elsewhere."""
        if any(True for _ in subgraphs(node)):
            return None
        pieces: list[Piece | str] = []
        for tag, names in ((INPUT, node.input), (OUTPUT, node.output), (NAME, [node.name] if node.name else [])):
            for name in names:
                piece = self._piece_of(name)
                if piece is None:
                    return None
                pieces += [bytes([tag]), piece]
        pieces.append(NodeProto(op_type=node.op_type, attribute=node.attribute).SerializeToString())
        if node.doc_string == MARKS:
            pieces.append(self._marks_at)
        behind = NodeProto.FromString(node.SerializeToString())
        for cleared in ("input", "output", "name", "op_type", "attribute", "doc_string"):
            behind.ClearField(cleared)
        pieces.append(behind.SerializeToString())
        return pieces

    def _piece_of(self, name: str) -> Piece | str | None:
        if name == NAME_BLANK:
            return self._name_at
        if name in self._numbers or name in self._added:
            return name
        if not is_in_blanks(name):
            return _coded(name)
        found = _OPERAND.fullmatch(name)
        return int(found[1]) if found else None


def is_in_blanks(text: str) -> bool:
    """Whether a text contains a blank."""
    return _BLANK.search(text) is not None


def fill(text: str, real: Mapping[str, str]) -> str:
    """Replace the blanks in a text by names."""
    return _BLANK.sub(lambda found: real.get(found[0], found[0]), text)


def _coded(name: str) -> bytes:
    """A name as protobuf writes it after the tag: length, then UTF-8."""
    text = name.encode()
    return varint(len(text)) + text
