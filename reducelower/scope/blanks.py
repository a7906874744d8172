"""Blanks, which stand for names in replacement nodes, and the constants that rules add for these nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from onnx import TensorProto

from reducelower.types import Known

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["ALL_OPERANDS", "DATA", "MARKS", "NAME_BLANK", "Added", "blank", "blanks", "fill", "is_in_blanks"]


def blank(what: int | str) -> str:
    """The blank for a name: of an operand by its number, of the node (``n``), of the first added constant (``c0``)."""
    return f"⟦{what}⟧"


@cache
def blanks(operands: int) -> tuple[str, ...]:
    """The blanks for this many operands."""
    return tuple(map(blank, range(operands)))


DATA = blank(0)
"""The blank of a node's first operand."""

NAME_BLANK = blank("n")
"""The blank of the node's own name."""

MARKS = blank("marks")
"""The doc string of a node in blanks: doc string and metadata of the original go to the new node that has it."""

_BLANK = re.compile(r"⟦\w+⟧")


def is_in_blanks(text: str) -> bool:
    """Whether a text contains a blank."""
    return _BLANK.search(text) is not None


def fill(text: str, real: Mapping[str, str]) -> str:
    """Replace the blanks in a text by names."""
    return _BLANK.sub(lambda match: real.get(match[0], match[0]), text)


ALL_OPERANDS = -1
"""The operand number for questions about all operands together."""


class Added(NamedTuple):
    """A constant that a rule adds."""

    tail: str
    tensor: TensorProto
    value: Array

    @property
    def known(self) -> Known:
        """Its shape and contents."""
        return Known.of_constant(self.tensor.data_type, self.value)
