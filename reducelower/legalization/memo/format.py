"""Nodes as a format that names go into, so that thousands of alike nodes are written without a message each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from reducelower.model.census import field_head
from reducelower.model.wire import varint

__all__ = ["Blank", "Format", "Piece"]

Blank: TypeAlias = "tuple[int, bytes]"
"""The number of one of the texts that a format takes, and what comes behind it in the same name."""

Piece: TypeAlias = "bytes | Blank"
"""A part of a node: bytes as they are, or a blank for a name."""

_Apart: TypeAlias = "tuple[int, list[tuple[int, int]], list[bytes]]"
"""A node: the bytes that every filling has, each blank with the bytes of its tail, and what stands around blanks."""


class Format:
    """Nodes that stand one behind the other in a GraphProto, or one node by itself, with blanks in them.

    What a name is filled with has its length in front of it, and so has every node. So there is a text for each
    combination of lengths, which is kept.
    """

    def __init__(self, nodes: Sequence[Sequence[Piece]], field_at: int, *, is_bare: bool) -> None:
        """Take nodes in pieces.

        `field_at` is the number of the text that is no name but whole fields, which have their lengths in them. A bare
        node has no length in front of it.
        """
        self._field_at = field_at
        self._is_bare = is_bare
        self._nodes = [_apart(pieces) for pieces in nodes]
        self._pick = _picking([number for _, blanks, _ in self._nodes for number, _ in blanks])
        self._texts: dict[tuple[int, ...], bytes] = {}

    def fill(self, given: tuple[bytes, ...]) -> bytes:
        """The nodes with these texts in their blanks."""
        lengths = tuple(map(len, given))
        text = self._texts.get(lengths)
        if text is None:
            text = self._texts[lengths] = b"".join(chain.from_iterable(self._parts(lengths)))
        filled: bytes = text % self._pick(given)
        return filled

    def _parts(self, lengths: Sequence[int]) -> list[list[bytes]]:
        """The text for texts of these lengths, in parts."""
        parts = []
        for size, blanks, around in self._nodes:
            heads = []
            for number, behind in blanks:
                length = lengths[number] + behind
                taken, head = (length, b"%b") if number == self._field_at else _length_head(length)
                size += taken
                heads.append(head)
            head = b"" if self._is_bare else _plain(field_head(size))
            parts.append([head, around[0], *chain.from_iterable(zip(heads, around[1:], strict=True))])
        return parts


def _apart(pieces: Sequence[Piece]) -> _Apart:
    size = 0
    blanks: list[tuple[int, int]] = []
    around = [b""]
    for piece in pieces:
        if isinstance(piece, bytes):
            size += len(piece)
            around[-1] += _plain(piece)
        else:
            number, tail = piece
            blanks.append((number, len(tail)))
            around.append(_plain(tail))
    return size, blanks, around


def _picking(places: Sequence[int]) -> Callable[[tuple[bytes, ...]], Any]:
    """A function that picks what is at some places, for a text to take."""
    # With one place alone, itemgetter would hand out the item rather than a tuple.
    if not places:
        return lambda given: ()
    return itemgetter(*places) if len(places) > 1 else lambda given: (given[places[0]],)


@cache
def _length_head(length: int) -> tuple[int, bytes]:
    """How many bytes a name of some length takes with its length in front; and that, with a blank for the name."""
    head = varint(length)
    return len(head) + length, _plain(head) + b"%b"


def _plain(text: bytes) -> bytes:
    """Text in a format that stands for itself."""
    return text.replace(b"%", b"%%")
