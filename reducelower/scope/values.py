"""Constant values, each stored once, in whichever field of a tensor it is."""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper

from reducelower.errors import RefusedError, UnreadableModelError
from reducelower.model.attributes import refuse_reference
from reducelower.model.constants import HELD_IN, tensor_in, tensor_of
from reducelower.model.numbers import value_key
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.model.text import one_line

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from reducelower.files import DataFolder
    from reducelower.model.numbers import Array

__all__ = ["Values", "dense", "dense_tensor", "held_by", "loaded", "read_tensor"]

_SPELLED_IN: Mapping[int, str] = {TensorProto.INT64: "int64_data", TensorProto.INT32: "int32_data"}
"""The fields of these element types besides ``raw_data``. No floats: 0.0 == -0.0, but their bits differ."""


def dense(sparse: SparseTensorProto) -> Array:
    """The value of a sparse tensor, with zeros or empty strings in between."""
    values, places = read_tensor(sparse.values), read_tensor(sparse.indices)
    try:
        whole: Array = np.full(tuple(sparse.dims), "" if values.dtype.hasobject else 0, values.dtype)
        if places.ndim == 1:
            whole.reshape(-1)[places] = values
        else:
            whole[tuple(places.T)] = values
    except (IndexError, MemoryError, TypeError, ValueError) as error:
        raise RefusedError(f"its sparse tensor cannot be read: {one_line(error)}", "correct the model") from error
    return whole


_MOST_DENSE = 1 << 24
"""The most elements of a sparse tensor that is made dense only to look at it."""


def dense_tensor(sparse: SparseTensorProto) -> TensorProto:
    """A sparse tensor as a dense one of the same name.

    If it is too large or cannot be read, the dense one has external data without a location.
    """
    if prod(sparse.dims) <= _MOST_DENSE:
        with suppress(RefusedError):
            return numpy_helper.from_array(dense(sparse), sparse.values.name)
    values = sparse.values
    return TensorProto(
        name=values.name, data_type=values.data_type, dims=sparse.dims, data_location=TensorProto.EXTERNAL
    )


def held_by(node: NodeProto) -> TensorProto | None:
    """The tensor that a Constant node holds, a sparse one as `dense_tensor`; None if it is not in the node."""
    sparse = next((attribute for attribute in node.attribute if attribute.name == "sparse_value"), None)
    return tensor_of(node) if sparse is None or sparse.ref_attr_name else dense_tensor(sparse.sparse_tensor)


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
            return 0 if folder is None else self.number(read_tensor(tensor, folder))
        content = tensor.raw_data or tuple(getattr(tensor, _SPELLED_IN.get(tensor.data_type, ""), ()))
        if not content or tensor.HasField("segment"):
            return self.number(read_tensor(tensor))
        spelling = (tensor.data_type, dims, content)
        number = self._spelled.get(spelling)
        if number is None:
            number = self._spelled[spelling] = self.number(read_tensor(tensor))
        return number

    def of_attribute(self, attribute: AttributeProto, folder: DataFolder | None = None) -> int:
        """The same, of a Constant node's attribute.

        Raises:
            RefusedError: it cannot be read, or it refers to an attribute of a function.
        """
        refuse_reference(attribute)
        if attribute.name == "value":
            return self.of_tensor(attribute.t, folder)
        is_sparse = attribute.name == "sparse_value"
        if not is_sparse and attribute.name not in HELD_IN:
            return 0
        if is_sparse and prod(attribute.sparse_tensor.dims) > LARGEST_CONSTANT:
            return 0
        spelling = attribute.SerializeToString()
        if spelling not in self._spelled:
            tensor = tensor_in(attribute)
            value = dense(attribute.sparse_tensor) if tensor is None else read_tensor(tensor)
            self._spelled[spelling] = self.number(value)
        return self._spelled[spelling]


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
