"""Placeholders of names in nodes that replace a node of the model, and the constants that are added for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import TensorProto

from reducelower.model.value_info import tensor_type
from reducelower.scope.scope import Asking
from reducelower.types import Known

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["ALL_OPERANDS", "Added", "blank", "blanks"]


def blank(what: int | str) -> str:
    """The placeholder of a name: the operand's number, ``n`` for the node's name, ``c0`` for the first added
    constant."""
    return f"⟦{what}⟧"


@cache
def blanks(operands: int) -> tuple[str, ...]:
    """The placeholders of so many operands."""
    return tuple(map(blank, range(operands)))


ALL_OPERANDS = -1
"""The operand number under which questions are recorded that are about all operands together."""


class Added(NamedTuple):
    """A constant that a rule adds."""

    tail: str
    tensor: TensorProto
    value: Array

    @property
    def known(self) -> Known:
        """What is known about it."""
        return Known.of_constant(self.tensor.data_type, tuple(self.tensor.dims), self.value)

    @property
    def answers(self) -> Mapping[Asking, Any]:
        """What is said of it, but for how it is written."""
        dims = tuple(self.tensor.dims)
        return {
            "constant": self.value,
            "element_type": self.tensor.data_type,
            "rank": len(dims),
            "shape": dims,
            "type": tensor_type(self.tensor),
        }
