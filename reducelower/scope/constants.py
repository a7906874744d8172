"""Constants as Constant nodes, where a graph cannot hold initializers and Constant may take floats only."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from reducelower.model.attributes import make_node
from reducelower.model.names import Names
from reducelower.model.numbers import FIRST_FLOATS

__all__ = ["as_doubles", "constant_nodes", "constant_takes"]

_CONSTANT_TAKES_ALL = 9
"""From this opset version on, Constant takes every element type; earlier versions take floats only."""

_CAST_IS_INFERRED = 6

_EXACT_IN_DOUBLE = 2.0**53
"""Doubles hold every integer up to this one."""


def constant_takes(element_type: int, opset: int) -> bool:
    """Whether Constant takes an element type at an opset version."""
    return opset >= _CONSTANT_TAKES_ALL or element_type in FIRST_FLOATS


def constant_nodes(name: str, tensor: TensorProto, opset: int, names: Names) -> list[NodeProto] | None:
    """The nodes that compute a constant where no initializer is possible; None if that opset version has none.

    An element type that Constant does not take is cast from doubles with the same values.
    """
    if constant_takes(tensor.data_type, opset):
        return [make_node("Constant", [], [name], value=tensor)]
    doubles = as_doubles(tensor, opset)
    if doubles is None:
        return None
    source = names.fresh("", f"{name}_double")
    return [
        make_node("Constant", [], [source], value=doubles),
        make_node("Cast", [source], [name], to=tensor.data_type),
    ]


def as_doubles(tensor: TensorProto, opset: int) -> TensorProto | None:
    """The values of integers or bools as doubles, to be cast back; None if doubles cannot hold them.

    Below opset 6 inference does not read a Cast.
    """
    value = numpy_helper.to_array(tensor)
    if value.dtype.kind not in "biu" or opset < _CAST_IS_INFERRED:
        return None
    doubles = value.astype(np.float64)
    return numpy_helper.from_array(doubles) if (np.abs(doubles) <= _EXACT_IN_DOUBLE).all() else None
