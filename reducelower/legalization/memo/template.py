"""The nodes of an outcome as bytes with blanks, so that thousands of equal nodes are written without messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from onnx import NodeProto

from reducelower.model.graph import subgraphs
from reducelower.model.wire import INPUT, NAME, OUTPUT, field_head, varint
from reducelower.scope.blanks import blank, blanks

__all__ = ["MARKS", "NAME_BLANK", "Template", "fill", "is_in_blanks"]

NAME_BLANK = blank("n")
"""The blank of the node's own name."""

MARKS = blank("marks")
"""The doc string of a node in blanks: doc string and metadata of the original go to the new node that has it."""

_BLANK = re.compile(r"⟦\w+⟧")

_FORMS_KEPT = 256
"""For how many combinations of lengths a template keeps its form."""

_Piece: TypeAlias = "bytes | int"
"""A part of a node: constant bytes, or a blank, by the number of the text that fills it."""


class _SplitNode(NamedTuple):
    """A node: the size of its constant bytes, its blanks, and the bytes between them."""

    size: int
    blanks: Sequence[int]
    around: Sequence[bytes]


class _NoBytesError(Exception):
    """A node has subgraphs or names of another form, so it has to be written as a message."""


class Template:
    """What is the same for all nodes with an outcome, in any graph of any model.

    The texts that fill the blanks are the operands of the node, its name, its marks, new names, and the names of the
    constants that are added. Each name and each node is preceded by its length, so there is one form per combination of
    lengths; forms are cached.

    Attributes:
        is_bytes: whether the nodes can be written as bytes: none has subgraphs or a name of another form.
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
        """Take apart the nodes of an outcome.

        Args:
            nodes: the nodes, with blanks for names.
            derived: new names in order: stem, tail, name.
            added: the blanks of added constants, in order.
            operands: how many distinct operands the replaced node has.
            is_bare: whether it is one node without tag and length before it; else as in a GraphProto.
        """
        texts = (*blanks(operands), NAME_BLANK, MARKS, *(name for _, _, name in derived), *added)
        self._numbers = {text: number for number, text in enumerate(texts)}
        self._is_bare = is_bare
        self._forms: dict[tuple[int, ...], bytes] = {}
        try:
            self._nodes = [_split(self._pieces(node)) for node in nodes]
            self.is_bytes = True
        except _NoBytesError:
            self._nodes = []
            self.is_bytes = False
        self._pick = _picker([number for node in self._nodes for number in node.blanks])

    def fill(self, texts: tuple[bytes, ...]) -> bytes:
        """The nodes with these texts in their blanks."""
        lengths = tuple(map(len, texts))
        form = self._forms.get(lengths)
        if form is None:
            if len(self._forms) >= _FORMS_KEPT:
                self._forms.clear()
            form = self._forms[lengths] = b"".join(chain.from_iterable(self._parts(lengths)))
        filled: bytes = form % self._pick(texts)
        return filled

    def _parts(self, lengths: Sequence[int]) -> list[list[bytes]]:
        """The form for texts of these lengths, in parts."""
        parts, marks = [], self._numbers[MARKS]
        for size, numbers, around in self._nodes:
            heads = []
            for number in numbers:
                length = lengths[number]
                taken, head = (length, b"%b") if number == marks else _length_head(length)  # marks are whole fields
                size += taken
                heads.append(head)
            head = b"" if self._is_bare else _escaped(field_head(size))
            parts.append([head, around[0], *chain.from_iterable(zip(heads, around[1:], strict=True))])
        return parts

    def _pieces(self, node: NodeProto) -> Sequence[_Piece]:
        """A node in pieces: its names, operator and attributes, everything else."""
        if any(True for _ in subgraphs(node)):
            raise _NoBytesError
        pieces: list[_Piece] = []
        for tag, names in ((INPUT, node.input), (OUTPUT, node.output), (NAME, [node.name] if node.name else [])):
            for name in names:
                pieces += [bytes([tag]), self._piece_of(name)]
        pieces.append(NodeProto(op_type=node.op_type, attribute=node.attribute).SerializeToString())
        if node.doc_string == MARKS:
            pieces.append(self._numbers[MARKS])
        others = NodeProto.FromString(node.SerializeToString())
        for cleared in ("input", "output", "name", "op_type", "attribute", "doc_string"):
            others.ClearField(cleared)
        pieces.append(others.SerializeToString())
        return pieces

    def _piece_of(self, name: str) -> _Piece:
        number = self._numbers.get(name)
        if number is not None:
            return number
        if is_in_blanks(name):
            raise _NoBytesError
        text = name.encode()
        return varint(len(text)) + text


def _split(pieces: Sequence[_Piece]) -> _SplitNode:
    size, numbers, around = 0, list[int](), [b""]
    for piece in pieces:
        if isinstance(piece, bytes):
            size += len(piece)
            around[-1] += _escaped(piece)
        else:
            numbers.append(piece)
            around.append(b"")
    return _SplitNode(size, numbers, around)


def _picker(numbers: Sequence[int]) -> Callable[[tuple[bytes, ...]], Any]:
    """A function that picks the texts of some numbers, as a tuple."""
    # With a single number, itemgetter would return the item instead of a tuple.
    if not numbers:
        return lambda texts: ()
    return itemgetter(*numbers) if len(numbers) > 1 else lambda texts: (texts[numbers[0]],)


@cache
def _length_head(length: int) -> tuple[int, bytes]:
    """How many bytes a name takes with its length, and that length followed by a placeholder for the name."""
    head = varint(length)
    return len(head) + length, _escaped(head) + b"%b"


def _escaped(text: bytes) -> bytes:
    """Text escaped for a form."""
    return text.replace(b"%", b"%%")


def is_in_blanks(text: str) -> bool:
    """Whether a text contains a blank."""
    return _BLANK.search(text) is not None


def fill(text: str, real: Mapping[str, str]) -> str:
    """Replace the blanks in a text by names."""
    return _BLANK.sub(lambda match: real.get(match[0], match[0]), text)
