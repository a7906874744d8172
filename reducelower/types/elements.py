"""The contents of small integer vectors that operators compute, with symbolic sizes.

Source: the operators' pages, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeAlias

from onnx import TensorProto

from reducelower.model.numbers import value_of_tensor
from reducelower.types.call import Call, UnknownError
from reducelower.types.known import LONGEST, Elements
from reducelower.types.sizes import Size, is_positive, quotient

__all__ = ["ELEMENTS"]


def _sliced_elements(call: Call) -> Elements:
    elements = call.elements(0)
    if call.rank(0) != 1:
        raise UnknownError
    for _, start, end, step in call.bounds():
        if not isinstance(start, int) or not isinstance(end, int) or step < 1:
            raise UnknownError
        elements = elements[start:end:step]
    return elements


def _gathered_elements(call: Call) -> Elements:
    elements, places = call.elements(0), call.numbers(1)
    if call.rank(0) != 1 or not all(-len(elements) <= place < len(elements) for place in places):
        raise UnknownError
    return tuple(elements[place] for place in places)


def _concatenated_elements(call: Call) -> Elements:
    joined: list[Size | None] = []
    for index in range(len(call.node.input)):
        length = call.length(index)
        if length > LONGEST:
            raise UnknownError
        elements = call.elements_if_known(index)
        joined += [None] * length if elements is None else elements
    return tuple(joined)


_Number: TypeAlias = "Callable[[Call, Size, Size], Size | None]"


def _remainder(call: Call, left: Size, right: Size) -> int | None:
    return left % right if isinstance(left, int) and isinstance(right, int) and right > 0 <= left else None


def _equal(call: Call, left: Size, right: Size) -> Size | None:
    if left == right:
        return 1
    difference = left - right
    differs = isinstance(difference, int) or is_positive(difference) or is_positive(-difference)
    return 0 if differs else None


def _pairwise(number: _Number) -> Callable[[Call], Elements]:
    def elements(call: Call) -> Elements:
        if len(call.node.input) != 2:
            raise UnknownError
        left, right = _alike(call.elements(0), call.elements(1))
        return tuple(
            None if one is None or other is None else number(call, one, other)
            for one, other in zip(left, right, strict=True)
        )

    return elements


def _alike(*vectors: Elements) -> list[Elements]:
    """Vectors broadcast to one length."""
    length = max(map(len, vectors))
    if any(len(vector) not in (1, length) for vector in vectors):
        raise UnknownError
    return [vector * length if len(vector) == 1 else vector for vector in vectors]


def _chosen(call: Call) -> Elements:
    chosen, then, otherwise = _alike(*(call.elements(index) for index in range(3)))
    return tuple(
        (one if taken else other) if isinstance(taken, int) else one if one == other else None
        for taken, one, other in zip(chosen, then, otherwise, strict=True)
    )


def _cast(call: Call) -> Elements:
    if call.attribute("to") not in (TensorProto.INT32, TensorProto.INT64):
        raise UnknownError
    return call.elements(0)


def _filled(call: Call) -> Elements:
    value = call.attribute("value")
    if value is not None and value.data_type not in (TensorProto.INT32, TensorProto.INT64):
        raise UnknownError
    length = prod(size for size in call.elements(0) if size is not None)
    if None in call.elements(0) or not isinstance(length, int) or length > LONGEST or value is None:
        raise UnknownError
    number = value_of_tensor(value)
    if number is None or not number.size:
        raise UnknownError
    return (int(number.reshape(-1)[0]),) * length


def _total(call: Call) -> Elements:
    elements = [each for each in call.elements(0) if each is not None]
    if len(elements) < len(call.elements(0)) or call.rank(0) != 1 or call.attribute("noop_with_empty_axes", 0):
        raise UnknownError
    if call.node.op_type == "ReduceProd":
        return (prod(elements),)
    return (sum(elements),)


ELEMENTS: Mapping[str, Callable[[Call], Elements]] = {
    **dict.fromkeys(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"), lambda call: call.elements(0)),
    **dict.fromkeys(("ReduceProd", "ReduceSum"), _total),
    "Add": _pairwise(lambda call, left, right: left + right),
    "Cast": _cast,
    "Concat": _concatenated_elements,
    "ConstantOfShape": _filled,
    "Div": _pairwise(lambda call, left, right: quotient(left, right, call.atom)),
    "Equal": _pairwise(_equal),
    "Gather": _gathered_elements,
    "Mod": _pairwise(_remainder),
    "Mul": _pairwise(lambda call, left, right: left * right),
    "Shape": lambda call: call.shape(0)[call.part()],
    "Size": lambda call: (prod(call.shape(0)),),
    "Slice": _sliced_elements,
    "Sub": _pairwise(lambda call, left, right: left - right),
    "Where": _chosen,
}
"""The contents of the first output if it is a small integer vector, by operator."""
