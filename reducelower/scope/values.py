"""Constant values, each stored once, in whichever field of a tensor it is."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from onnx import TensorProto, numpy_helper

from reducelower.errors import RefusedError, UnreadableModelError
from reducelower.model.numbers import value_key
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.model.text import one_line

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from reducelower.files import DataFolder
    from reducelower.model.numbers import Array

__all__ = ["Values", "loaded", "read_tensor"]

_SPELLED_IN: Mapping[int, str] = {TensorProto.INT64: "int64_data", TensorProto.INT32: "int32_data"}
"""The fields of these element types besides ``raw_data``. No floats: 0.0 == -0.0, but their bits differ."""


class Values(list["Array | None"]):
    """Values by number: equal values share a number, and 0 means not constant. `size` is their total in bytes."""

    def __init__(self) -> None:
        super().__init__([None])
        self.size = 0
        self._numbers: dict[Hashable, int] = {}
        self._spelled: dict[Hashable, int] = {}

    def number(self, value: Array) -> int:
        """The number of a value."""
        key = value_key(value)
        if key not in self._numbers:
            # In this order, so that an interrupt cannot leave a number that another value gets as well.
            self.append(value)
            self._numbers[key] = len(self) - 1
            self.size += value.nbytes
        return self._numbers[key]

    def of_tensor(self, tensor: TensorProto, folder: DataFolder | None = None) -> int:
        """The number of a tensor's value; 0 if it is large, or if its data is external and there is no folder.

        Raises:
            RefusedError: it cannot be read.
        """
        dims = tuple(tensor.dims[:])  # slicing to a list halves the time
        if prod(dims) > LARGEST_CONSTANT:
            return 0
        if tensor.data_location == TensorProto.EXTERNAL:
            # Not cached by its serialized form: a file of the same name may hold something else.
            is_in_file = folder is not None and len(tensor.external_data)  # else a sparse one that cannot be read
            return self.number(read_tensor(tensor, folder)) if is_in_file else 0
        content = tensor.raw_data or tuple(getattr(tensor, _SPELLED_IN.get(tensor.data_type, ""), ()))
        if not content or tensor.HasField("segment"):
            return self.number(read_tensor(tensor))
        spelling = (tensor.data_type, dims, content)
        number = self._spelled.get(spelling)
        if number is None:
            number = self._spelled[spelling] = self.number(read_tensor(tensor))
        return number


def loaded(tensor: TensorProto, folder: DataFolder) -> TensorProto:
    """A copy of a tensor with its external data in it.

    Raises:
        UnreadableModelError: it cannot be read.
    """
    made = TensorProto.FromString(tensor.SerializeToString())
    made.raw_data = folder.read(tensor)
    made.ClearField("external_data")
    made.ClearField("data_location")
    return made


def read_tensor(tensor: TensorProto, folder: DataFolder | None = None) -> Array:
    """The value of a tensor, whose data may be in a file.

    Raises:
        RefusedError: it cannot be read.
    """
    if folder is None and tensor.data_location == TensorProto.EXTERNAL:
        raise RefusedError(f"the tensor {tensor.name!r} has its data in another file", "store its values in the model")
    try:
        return numpy_helper.to_array(tensor if folder is None else loaded(tensor, folder))
    except UnreadableModelError as error:
        raise RefusedError(str(error)) from error
    except Exception as error:  # numpy and onnx raise several types
        reason = one_line(error)
        raise RefusedError(f"the tensor {tensor.name!r} cannot be read: {reason}", "correct the model") from error
