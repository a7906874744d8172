"""Constant values, each stored once, in whichever field of a tensor it is."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from onnx import TensorProto

from reducelower.files.external import read_tensor
from reducelower.model.numbers import value_key
from reducelower.model.skeleton import LARGEST_CONSTANT

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from reducelower.files import DataFolder
    from reducelower.model.numbers import Array

__all__ = ["Stored", "Values"]

_SPELLED_IN: Mapping[int, str] = {TensorProto.INT64: "int64_data", TensorProto.INT32: "int32_data"}
"""The fields of these element types besides ``raw_data``. No floats: 0.0 == -0.0, but their bits differ."""


class Stored:
    """A value that is stored once: equal values are one object, so that answers with values can be compared."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class Values:
    """The values of some runs. `size` is their total in bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._stored: dict[Hashable, Stored] = {}
        self._spelled: dict[Hashable, Stored] = {}

    def of(self, array: Array) -> Stored:
        """A value, stored."""
        key = value_key(array)
        if key not in self._stored:
            self._stored[key] = Stored(array)
            self.size += array.nbytes
        return self._stored[key]

    def of_tensor(self, tensor: TensorProto, folder: DataFolder | None = None) -> Stored | None:
        """The value of a tensor; None if it is large, or if its data is external and there is no folder.

        Raises:
            RefusedError: it cannot be read.
        """
        dims = tuple(tensor.dims[:])  # slicing to a list halves the time
        if prod(dims) > LARGEST_CONSTANT:
            return None
        if tensor.data_location == TensorProto.EXTERNAL:
            # Not cached by its serialized form: a file of the same name may hold something else.
            is_in_file = folder is not None and len(tensor.external_data)  # else a sparse one that cannot be read
            return self.of(read_tensor(tensor, folder)) if is_in_file else None
        content = tensor.raw_data or tuple(getattr(tensor, _SPELLED_IN.get(tensor.data_type, ""), ()))
        if not content or tensor.HasField("segment"):
            return self.of(read_tensor(tensor))
        spelling = (tensor.data_type, dims, content)
        stored = self._spelled.get(spelling)
        if stored is None:
            stored = self._spelled[spelling] = self.of(read_tensor(tensor))
        return stored
