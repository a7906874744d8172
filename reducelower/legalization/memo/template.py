"""The nodes of an outcome as bytes with blanks, so that thousands of equal nodes are written without messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from onnx import NodeProto

from reducelower.model.graph import may_hold_graphs
from reducelower.model.wire import INPUT, NAME, OUTPUT, varint
from reducelower.scope.blanks import MARKS, is_in_blanks

__all__ = ["Template"]

_FORMS_KEPT = 256
"""For how many combinations of lengths a template keeps its form."""

_Piece: TypeAlias = "bytes | int"
"""A part of a node: constant bytes, or a blank, by the number of the text that fills it."""


class Template:
    """What is the same for all nodes with an outcome, in any graph of any model.

    Each name and each node is preceded by its length, so there is one form per combination of lengths.

    Attributes:
        is_bytes: whether the nodes can be written as bytes: none has subgraphs or a name that contains a blank.
    """

    def __init__(self, nodes: Sequence[NodeProto], texts: Sequence[str], *, is_bare: bool) -> None:
        """Take apart the nodes of an outcome.

        `texts` are the blanks, in the order of the texts that fill them. If `is_bare`, there is one node without tag
        and length before it; else they are as in a GraphProto.
        """
        self._numbers = {text: number for number, text in enumerate(texts)}
        self._is_bare = is_bare
        self._forms: dict[tuple[int, ...], bytes] = {}
        names = {name for node in nodes for name in (*node.input, *node.output, node.name)}
        has_odd_name = any(is_in_blanks(name) for name in names - self._numbers.keys())
        self.is_bytes = not has_odd_name and not any(map(may_hold_graphs, nodes))
        self._nodes = [self._pieces(node) for node in nodes] if self.is_bytes else []
        self._blanks = [piece for pieces in self._nodes for piece in pieces if isinstance(piece, int)]

    def fill(self, texts: tuple[bytes, ...]) -> bytes:
        """The nodes with these texts in their blanks."""
        lengths = tuple(map(len, texts))
        form = self._forms.get(lengths)
        if form is None:
            if len(self._forms) >= _FORMS_KEPT:
                self._forms.clear()
            form = self._forms[lengths] = b"".join([self._form(pieces, lengths) for pieces in self._nodes])
        return form % tuple(map(texts.__getitem__, self._blanks))

    def _form(self, pieces: Sequence[_Piece], lengths: Sequence[int]) -> bytes:
        """A node with placeholders for texts of these lengths."""
        marks, size, parts = self._numbers[MARKS], 0, [b""]
        for piece in pieces:
            constant = piece if isinstance(piece, bytes) else b""
            if isinstance(piece, int):
                constant = b"" if piece == marks else varint(lengths[piece])  # marks are whole fields
                size += lengths[piece]
            size += len(constant)
            parts.append(constant.replace(b"%", b"%%"))
            if isinstance(piece, int):
                parts.append(b"%b")
        if not self._is_bare:
            parts[0] = (b"\x0a" + varint(size)).replace(b"%", b"%%")
        return b"".join(parts)

    def _pieces(self, node: NodeProto) -> Sequence[_Piece]:
        """A node in pieces: its names, then everything else."""
        rest = NodeProto.FromString(node.SerializeToString())
        for named in ("input", "output", "name"):
            rest.ClearField(named)
        pieces: list[_Piece] = []
        if rest.doc_string == MARKS:
            rest.ClearField("doc_string")
            pieces.append(self._numbers[MARKS])
        for tag, names in ((INPUT, node.input), (OUTPUT, node.output), (NAME, [node.name] if node.name else [])):
            for name in names:
                text = name.encode()
                number = self._numbers.get(name)
                pieces += [bytes([tag]), varint(len(text)) + text if number is None else number]
        return [*pieces, rest.SerializeToString()]
