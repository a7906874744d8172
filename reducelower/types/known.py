"""The facts about one value: questions and answers, sizes, and the contents of a small integer vector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from onnx import TensorProto

from reducelower.types.contents import tensor
from reducelower.types.sizes import Polynomial, Size

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = [
    "COUNTING",
    "LONGEST",
    "Elements",
    "Known",
    "Question",
    "Shape",
    "elements_of",
    "in_own_names",
]

LONGEST = 64
"""The most elements of a vector whose contents are tracked: shapes and axes are shorter."""

Shape: TypeAlias = "tuple[Size | None, ...]"
"""Sizes, with None for unknown ones."""

Elements: TypeAlias = "tuple[Size | None, ...]"
"""The elements of a tensor in order, with None for unknown ones."""


Question: TypeAlias = 'Literal["element_type", "container", "rank", "shape", "contents", "constant"]'
"""A question about a value. The answer is None if it is unknown.

- ``element_type``: `TensorProto.DataType`.
- ``container``: the type of a sequence or optional value, serialized; None for a tensor.
- ``rank``, ``shape``: the number of dimensions, and the sizes.
- ``contents``: an array of a small tensor of integers or bools, in which sizes may be symbolic.
- ``constant``: an array of any type that may be large, but not symbolic.
"""

COUNTING = (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
"""Element types whose contents may become sizes, or choose between them."""


@dataclass(frozen=True, slots=True)
class Known:
    """The sizes of a value, and its contents if they may be sizes.

    Attributes:
        shape: None if the rank is unknown.
        elements: the contents of a small tensor of integers or bools; None if unknown.
    """

    shape: tuple[Size, ...] | None = None
    elements: Elements | None = None

    @classmethod
    def of_constant(cls, element_type: int, value: Array) -> Known:
        """The same about a constant."""
        may_be_sizes = element_type in COUNTING and value.size <= LONGEST
        return cls(value.shape, elements_of(value) if may_be_sizes else None)

    @property
    def contents(self) -> Array | None:
        """The elements as an array, if the shape is known."""
        sizes = [size for size in self.shape or () if isinstance(size, int)]
        is_sized = self.shape is not None and len(sizes) == len(self.shape)
        return tensor(self.elements, sizes) if self.elements is not None and is_sized else None

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


def elements_of(contents: Array) -> Elements:
    """The elements of a tensor of integers, bools or sizes; bools become numbers."""
    return tuple((contents.astype(np.int64) if contents.dtype.kind == "b" else contents).reshape(-1).tolist())


def in_own_names(values: Iterable[Known]) -> tuple[tuple[Known, ...], dict[int, int]]:
    """The same facts with atoms numbered in order of appearance, and each atom's number.

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
        renumbered.append(Known(shape, elements))
    return tuple(renumbered), names
