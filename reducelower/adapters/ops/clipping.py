"""Clip where its bounds are attributes (before opset 11) and where it takes floats only (before opset 12).

A bound that is left out is none at opset 1, the largest float32 at 6, and the largest number of the data's own element
type since 11. Those differ for infinities, and for what lies beyond float32.

Source: https://onnx.ai/onnx/operators/onnx__Clip.html (1, 6, 11, 12, 13).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.model.attributes import attribute_of, set_attribute
from reducelower.model.numbers import SIGNED, UNSIGNED, largest_finite
from reducelower.scope.scope import Scope

__all__ = ["limited"]

_INTEGERS = (*SIGNED, *UNSIGNED)
_SMALL = tuple(kind for kind in _INTEGERS if kind not in (TensorProto.INT64, TensorProto.UINT64))


def _holds(value: np.ndarray) -> bool:
    """Whether an attribute of type float holds the bound exactly."""
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        return bool(float(np.float32(number)) == value.reshape(-1)[0] or number != number)


@lowers("Clip", 11)
def _lower_bounds(node: NodeProto, scope: Scope) -> Outcome:
    """Bounds that an attribute of type float cannot say become the larger of two and the smaller of two.

    So do constant ones where min lies above max, which versions before 11 refuse and later ones answer with max.
    """
    body = Writer(node, scope)
    names = [body.input(1), body.input(2)]
    values = [scope.constant(name) if name else None for name in names]
    known = all(value is not None for name, value in zip(names, values, strict=True) if name)
    left_out = {} if all(names) else _left_out(names, scope.needed_element_type(node.input[0]))
    if known and all(_holds(value) for value in (*values, *left_out.values()) if value is not None):
        low, high = values
        if low is None or high is None or low.reshape(-1)[0] <= high.reshape(-1)[0]:
            for attribute, bound in left_out.items():
                set_attribute(node, attribute, float(bound))
            return None
    element_type = scope.needed_element_type(node.input[0])
    bounds = [
        body.constant(left_out[attribute], element_type, attribute) if attribute in left_out else name
        for attribute, name in zip(_BOUNDS, names, strict=True)
    ]
    return limited(body, bounds)


_BOUNDS = ("min", "max")


def _left_out(names: Sequence[str], element_type: int) -> dict[str, np.ndarray]:
    """What the bounds that are left out stand for since opset 11, where that is not what they stood for before."""
    if element_type in (TensorProto.FLOAT, *_INTEGERS):
        return {}
    largest = largest_finite(element_type)
    return {
        attribute: np.array(sign * largest)
        for attribute, name, sign in zip(_BOUNDS, names, (-1, 1), strict=True)
        if not name
    }


@raises("Clip", 11)
def _raise_bounds(node: NodeProto, scope: Scope) -> Outcome:
    """A bound that was left out was the largest float32: no bound on float16, and one amid the doubles."""
    absent = _absent(node)
    element_type = scope.needed_element_type(node.input[0]) if absent else TensorProto.FLOAT
    if element_type == TensorProto.FLOAT:
        return None
    bound = largest_finite(TensorProto.FLOAT) if element_type == TensorProto.DOUBLE else np.inf
    for name, sign in absent.items():
        set_attribute(node, name, sign * bound)
    return None


@raises("Clip", 6)
def _raise_no_bounds(node: NodeProto, scope: Scope) -> Outcome:
    """A bound that was left out was none, and became the largest float32."""
    absent = _absent(node)
    for name, sign in absent.items():
        set_attribute(node, name, sign * np.inf)
    return None


def _absent(node: NodeProto) -> dict[str, int]:
    """The bounds that a node leaves out, each with its sign."""
    return {name: sign for name, sign in zip(_BOUNDS, (-1, 1), strict=True) if attribute_of(node, name) is None}


def limited(body: Writer, bounds: Sequence[str]) -> list[NodeProto]:
    """The smaller of max and the larger of min and the data: Max and Min, which take floats only before opset 12.

    Integers are compared instead, as 64-bit ones where they are shorter.
    """
    data, element_type = body.node.input[0], body.scope.needed_element_type(body.node.input[0])
    steps = [(op_type, bound) for op_type, bound in zip(("Max", "Min"), bounds, strict=True) if bound]
    if element_type not in _INTEGERS:
        for op_type, bound in steps[:-1]:
            data = body.add(op_type, data, bound)
        return body.yields(steps[-1][0], data, steps[-1][1]) if steps else body.yields("Identity", data)

    def widened(name: str, tail: str) -> str:
        return body.add("Cast", name, tail=tail, to=TensorProto.INT64) if element_type in _SMALL else name

    data = widened(data, "int64")
    for op_type, bound in steps:
        limit = widened(bound, f"{op_type.lower()}_int64")
        below = body.add("Less", data, limit, tail=f"{op_type.lower()}_below")
        data = body.add("Where", below, *((limit, data) if op_type == "Max" else (data, limit)), tail=op_type.lower())
    return body.yields(
        "Cast" if element_type in _SMALL else "Identity",
        data,
        **({"to": element_type} if element_type in _SMALL else {}),
    )
