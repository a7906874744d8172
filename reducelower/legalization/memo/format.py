"""Serialized nodes with placeholders for names, so that thousands of equal nodes are written without messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from reducelower.model.census import field_head
from reducelower.model.wire import varint

__all__ = ["Format", "Piece"]

Piece: TypeAlias = "bytes | int"
"""A part of a node: constant bytes, or a blank, by the index of the text that fills it."""

_Apart: TypeAlias = "tuple[int, list[int], list[bytes]]"
"""A node: its constant bytes, its blanks, and the bytes between them."""

_TEXTS_KEPT = 256
"""For how many combinations of lengths a format keeps its text."""


class Format:
    """Nodes with blanks, concatenated as in a GraphProto, or one node by itself.

    Each name and each node is preceded by its length, so there is one template per combination of name lengths.
    Templates are cached.
    """

    def __init__(self, nodes: Sequence[Sequence[Piece]], field_at: int, *, is_bare: bool) -> None:
        """Take nodes in pieces.

        `field_at` is the index of the text that consists of whole fields instead of a name. A bare node has no tag and
        length before it.
        """
        self._field_at = field_at
        self._is_bare = is_bare
        self._nodes = [_apart(pieces) for pieces in nodes]
        self._pick = _picking([number for _, blanks, _ in self._nodes for number in blanks])
        self._texts: dict[tuple[int, ...], bytes] = {}

    def fill(self, given: tuple[bytes, ...]) -> bytes:
        """The nodes with these texts in their blanks."""
        lengths = tuple(map(len, given))
        text = self._texts.get(lengths)
        if text is None:
            if len(self._texts) >= _TEXTS_KEPT:
                self._texts.clear()
            text = self._texts[lengths] = b"".join(chain.from_iterable(self._parts(lengths)))
        filled: bytes = text % self._pick(given)
        return filled

    def _parts(self, lengths: Sequence[int]) -> list[list[bytes]]:
        """The template for texts of these lengths, in parts."""
        parts = []
        for size, blanks, around in self._nodes:
            heads = []
            for number in blanks:
                length = lengths[number]
                taken, head = (length, b"%b") if number == self._field_at else _length_head(length)
                size += taken
                heads.append(head)
            head = b"" if self._is_bare else _plain(field_head(size))
            parts.append([head, around[0], *chain.from_iterable(zip(heads, around[1:], strict=True))])
        return parts


def _apart(pieces: Sequence[Piece]) -> _Apart:
    size = 0
    blanks: list[int] = []
    around = [b""]
    for piece in pieces:
        if isinstance(piece, bytes):
            size += len(piece)
            around[-1] += _plain(piece)
        else:
            blanks.append(piece)
            around.append(b"")
    return size, blanks, around


def _picking(places: Sequence[int]) -> Callable[[tuple[bytes, ...]], Any]:
    """A function that picks the texts at some indices, as a tuple."""
    # With a single index, itemgetter would return the item instead of a tuple.
    if not places:
        return lambda given: ()
    return itemgetter(*places) if len(places) > 1 else lambda given: (given[places[0]],)


@cache
def _length_head(length: int) -> tuple[int, bytes]:
    """How many bytes a name takes with its length, and that length followed by a placeholder for the name."""
    head = varint(length)
    return len(head) + length, _plain(head) + b"%b"


def _plain(text: bytes) -> bytes:
    """Text escaped for a template."""
    return text.replace(b"%", b"%%")
