"""Names in a body that are no values of the body: element types, numbers of an element type, attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TypeAlias

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.numbers import FLOATS, Array, largest_finite, whole_range
from reducelower.model.schemas import element_type_name
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import BINDINGS

__all__ = ["TYPES", "as_value", "bound", "of_nothing"]

TYPES: Mapping[str, Callable[[Asked], int]] = {
    "wide": lambda asked: _widest(asked, asked.node.input[:1]),
    "widest": lambda asked: _widest(asked, asked.node.input),
    "comparable": lambda asked: _comparable(asked.scope.needed_element_type(asked.node.input[0])),
    "wide_result": lambda asked: (
        TensorProto.DOUBLE if asked.attribute("output_datatype") == TensorProto.DOUBLE else TensorProto.FLOAT
    ),
}
"""Element types that a body names as ``to = @wide``: float, or double if the first input, or any of them, is double.

``comparable`` is the type of the first input, but int32 for bools, which are compared as integers.
"""


def _widest(asked: Asked, names: Iterable[str]) -> int:
    types = [asked.scope.needed_element_type(name) for name in names if name]
    return TensorProto.DOUBLE if TensorProto.DOUBLE in types else TensorProto.FLOAT


def _comparable(element_type: int) -> int:
    return TensorProto.INT32 if element_type == TensorProto.BOOL else element_type


_Number: TypeAlias = "int | float"

_OF_NOTHING: Mapping[str, Callable[[_Number, _Number], _Number]] = {
    "CumProd": lambda _, __: 1,
    "CumSum": lambda _, __: 0,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare"), lambda _, __: 0),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp", "ReduceMax"), lambda least, _: least),
    "ReduceMin": lambda _, greatest: greatest,
    "ReduceProd": lambda _, __: 1,
}
"""The result for no elements, by the ends of the type: the specification's table of neutral elements of reductions."""


def of_nothing(op_type: str, element_type: int) -> Array:
    """The result of a reduction of no elements."""
    ends = (-inf, inf) if element_type in FLOATS else whole_range(element_type)
    return np.array(_OF_NOTHING[op_type](*ends), helper.tensor_dtype_to_np_dtype(element_type))


def bound(name: str, element_type: int) -> Array:
    """The value of a binding for an element type; also the ends of narrow floats, which only IsInf takes.

    Raises:
        RefusedError: the element type has no such number.
    """
    if element_type in BINDINGS[name]:
        return numpy_helper.to_array(helper.make_tensor(name, element_type, (), [BINDINGS[name][element_type]]))
    if name not in ("lowest", "largest"):
        reason = f"its rule takes {name!r}, which {element_type_name(element_type)} does not have"
        raise RefusedError(reason, "narrow the overload of the rule")
    largest = largest_finite(element_type)
    return np.array(largest if name == "largest" else -largest, helper.tensor_dtype_to_np_dtype(element_type))


def as_value(attribute: AttributeProto) -> Array | None:
    """The value of an attribute as an array; None for a string or a graph."""
    match attribute.type:
        case AttributeProto.TENSOR:
            return numpy_helper.to_array(attribute.t)
        case AttributeProto.INT | AttributeProto.INTS:
            return np.array(helper.get_attribute_value(attribute), np.int64)
        case AttributeProto.FLOAT | AttributeProto.FLOATS:
            return np.array(helper.get_attribute_value(attribute), np.float32)
    return None
