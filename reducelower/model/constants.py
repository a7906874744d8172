"""The ways in which Constant nodes hold a value, and sparse tensors as dense ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import prod

import numpy as np
from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.numbers import Array, value_of_tensor
from reducelower.text import one_line

__all__ = ["HELD_IN", "dense", "dense_tensor", "tensor_of"]

HELD_IN: Mapping[str, tuple[int, str]] = {
    "value_int": (TensorProto.INT64, "i"),
    "value_ints": (TensorProto.INT64, "ints"),
    "value_float": (TensorProto.FLOAT, "f"),
    "value_floats": (TensorProto.FLOAT, "floats"),
    "value_string": (TensorProto.STRING, "s"),
    "value_strings": (TensorProto.STRING, "strings"),
}
"""The attributes of Constant besides tensors: the element type of each, and the field with its elements."""


def tensor_of(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node, a sparse one as `dense_tensor`.

    None if it refers to a function attribute or has none.
    """
    return next(filter(None, map(_tensor_in, node.attribute)), None)


def _tensor_in(attribute: AttributeProto) -> TensorProto | None:
    if attribute.ref_attr_name:
        return None
    if attribute.name == "value":
        return attribute.t
    if attribute.name == "sparse_value":
        return dense_tensor(attribute.sparse_tensor)
    if attribute.name not in HELD_IN:
        return None
    element_type, field = HELD_IN[attribute.name]
    content = getattr(attribute, field)
    if element_type != TensorProto.STRING:
        return numpy_helper.from_array(np.array(content, helper.tensor_dtype_to_np_dtype(element_type)))
    # Not through numpy, which holds text, so that any bytes stay as they are.
    is_list = attribute.name == "value_strings"
    return helper.make_tensor("", element_type, [len(content)] if is_list else [], content if is_list else [content])


def dense(sparse: SparseTensorProto) -> Array:
    """The value of a sparse tensor, with zeros or empty strings in between.

    Raises:
        RefusedError: it cannot be read.
    """
    values, places = value_of_tensor(sparse.values), value_of_tensor(sparse.indices)
    try:
        if values is None or places is None:
            raise ValueError("its parts are in another file or damaged")
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
