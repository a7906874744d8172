"""The facts about one value: element type, shape, and the contents of a small integer vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from reducelower.types.sizes import Polynomial, Size

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = [
    "COUNTING",
    "LONGEST",
    "UNKNOWN",
    "Constant",
    "Elements",
    "Known",
    "Question",
    "Shape",
    "in_own_names",
]


LONGEST = 64
"""The most elements of a vector whose contents are tracked: shapes and axes are shorter."""

Shape: TypeAlias = "tuple[Size | None, ...]"
"""Sizes, with None for unknown ones."""

Elements: TypeAlias = "tuple[Size | None, ...]"
"""The elements of a tensor in order, with None for unknown ones."""


Question: TypeAlias = 'Literal["element_type", "container", "rank", "shape", "elements", "data", "constant"]'
"""A question about a value; see the attributes of `Known`. ``constant`` also gives values too large for `Known`."""

UNKNOWN: Mapping[Question, Any] = {
    "element_type": 0,
    "container": b"",
    "rank": None,
    "shape": None,
    "elements": None,
    "data": b"",
    "constant": None,
}
"""The answers if nothing is known."""


@dataclass(frozen=True, slots=True)
class Known:
    """The facts about a value.

    Attributes:
        element_type: `TensorProto.DataType`; 0 if unknown.
        shape: None if the rank is unknown.
        elements: the contents of a small tensor of integers or bools; None if unknown.
        value: the contents, if it is a small constant; not compared.
        container: the type of a sequence or optional value, serialized; empty for a tensor.
    """

    element_type: int = 0
    shape: tuple[Size, ...] | None = None
    elements: Elements | None = None
    value: Array | None = field(default=None, compare=False, repr=False)
    container: bytes = b""

    @classmethod
    def of_constant(cls, element_type: int, dims: Sequence[int], value: Array | None) -> Known:
        """The facts about a constant, without its value if that is large or unreadable."""
        shape = tuple(dims)
        if value is None or prod(dims) > LONGEST or value.dtype == object:
            return cls(element_type, shape)
        # Bools become numbers.
        elements = tuple(map(int, value.reshape(-1).tolist())) if element_type in COUNTING else None
        return cls(element_type, shape, elements, value)

    def answer(self, question: Question) -> Any:
        """See `Held.answer`."""
        return getattr(self, question)

    @property
    def data(self) -> bytes:
        """The serialized tensor, if all of its contents are known; else empty."""
        value = self.counted if self.value is None else self.value
        return b"" if value is None else numpy_helper.from_array(value).SerializeToString()

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None if unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def atoms(self) -> frozenset[int]:
        """All atoms of the sizes."""
        sizes = (*(self.shape or ()), *(self.elements or ()))
        return frozenset(atom for size in sizes if isinstance(size, Polynomial) for atom in size.atoms)

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The elements, if all are numbers."""
        if self.elements is None:
            return None
        numbers = tuple(each for each in self.elements if isinstance(each, int))
        return numbers if len(numbers) == len(self.elements) else None

    @property
    def counted(self) -> Array | None:
        """The contents as an array, if all are numbers and the shape is known."""
        numbers, sizes = self.numbers, [size for size in self.shape or () if isinstance(size, int)]
        if numbers is None or len(sizes) != self.rank:
            return None
        return np.array(numbers, helper.tensor_dtype_to_np_dtype(self.element_type)).reshape(sizes)


class Constant(NamedTuple):
    """The type of a constant, whose value is read only when a question needs it."""

    element_type: int
    shape: tuple[int, ...]

    @property
    def type(self) -> dict[Question, Any]:
        """The answers that do not need the value."""
        return {"element_type": self.element_type, "rank": len(self.shape), "shape": self.shape}


COUNTING = (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
"""Element types whose contents may become sizes, or choose between them."""


def in_own_names(values: Iterable[Known]) -> tuple[tuple[Known, ...], dict[int, int]]:
    """The same facts with atoms numbered in order of appearance, and each atom's number. Float contents are dropped.

    So the facts are equal for values that differ only in the names of their sizes.
    """
    names: dict[int, int] = {}

    def renamed(size: Size | None) -> Size | None:
        if not isinstance(size, Polynomial):
            return size
        for monomial, _ in size.terms:
            for atom in monomial:
                names.setdefault(atom, len(names))
        return size.renamed(names)

    renumbered: list[Known] = []
    for value in values:
        shape = None if value.shape is None else tuple(each for each in map(renamed, value.shape) if each is not None)
        elements = None if value.elements is None else tuple(map(renamed, value.elements))
        renumbered.append(Known(value.element_type, shape, elements, container=value.container))
    return tuple(renumbered), names
