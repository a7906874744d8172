"""What a guard may ask about a node: a table of questions by name, with their meaning.

Every question goes through the scope of the node, so that the memo knows what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.model.attributes import attribute_of
from reducelower.model.schemas import element_type_name
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import whole_range
from reducelower.rulebook.numbers import from_the_front, shared_rank
from reducelower.text import shape_text
from reducelower.types.sizes import Size, over

__all__ = ["QUESTIONS"]


def _given(asked: Asked, name: str) -> bool:
    if name in asked.operands:
        return asked.operands[name] != ""
    return bool(asked.output(name)) if name in asked.function.output else attribute_of(asked.node, name) is not None


def _computed(asked: Asked, name: str) -> bool:
    return _given(asked, name) and asked.value(name) is None


def _none(asked: Asked, name: str) -> bool:
    if not _given(asked, name):
        return True
    value = asked.value(name)
    return value is not None and not value.size


def _size(asked: Asked, name: str, axis: int | str | None = None) -> int | None:
    if not asked.is_input(name) and name not in asked.function.output:
        value = asked.value(name)
        return None if value is None else int(value.size)
    shape = _shape(asked, name)
    if shape is None:
        return None
    axis = asked.attribute(axis) if isinstance(axis, str) else axis
    if axis is not None:
        return shape[axis] if -len(shape) <= axis < len(shape) else None
    return None if None in shape else int(np.prod([size or 0 for size in shape], dtype=np.int64))


def _named_size(asked: Asked, name: str, axis: int) -> Size | None:
    if not asked.operand(name):
        return 0
    shape = asked.scope.known(asked.operand(name)).shape
    return None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]


def _shape(asked: Asked, name: str) -> tuple[int | None, ...] | None:
    value = _name(asked, name)
    return asked.scope.shape(value) if value else None


def _is_multiple(asked: Asked, name: str, axis: str, of: str) -> bool:
    shape = asked.scope.known(asked.operand(name)).shape
    if shape is None:
        return False
    return over(shape[from_the_front(asked.attribute(axis), len(shape))], asked.attribute(of)) is not None


def _is_end(asked: Asked, name: str, of: str) -> bool:
    shape, whole = _shape(asked, name), _shape(asked, of)
    if shape is None or whole is None or None in shape:
        return False
    return len(shape) <= len(whole) and shape == whole[len(whole) - len(shape) :]


def _same_shape(asked: Asked, name: str, other: str) -> bool:
    shape = _shape(asked, name)
    return shape is not None and None not in shape and shape == _shape(asked, other)


def _shape_text(asked: Asked, name: str) -> str:
    shape = _shape(asked, name)
    return str(None) if shape is None else shape_text(shape)


def _size_behind(asked: Asked, name: str, axis: int) -> int | None:
    shape = _shape(asked, name)
    sizes = () if shape is None else shape[axis:]
    return None if shape is None or None in sizes else int(np.prod([size or 0 for size in sizes], dtype=np.int64))


def _in_float(asked: Asked, name: str) -> bool:
    numbers = _values(asked, name)
    with np.errstate(over="ignore"):
        return numbers is not None and all(one != one or _narrowed(one) == one for one in numbers)


def _narrowed(value: Any) -> float | None:
    """A number as a float of 32 bits; None for a text."""
    return None if isinstance(value, (str, bytes)) else float(np.float32(value))


def _ends(asked: Asked, of: str | int) -> tuple[int, int] | None:
    element_type = of if isinstance(of, int) else asked.scope.needed_element_type(asked.operand(of))
    return None if element_type_name(element_type).startswith("float") else whole_range(element_type)


def _bits(asked: Asked, name: str) -> int:
    element_type = asked.scope.needed_element_type(asked.operand(name))
    return int(helper.tensor_dtype_to_np_dtype(element_type).itemsize * 8)


def _rank(asked: Asked, name: str) -> int | None:
    value = _name(asked, name)
    return asked.scope.rank(value) if value else None


def _type(asked: Asked, name: str) -> int | None:
    value = _name(asked, name)
    return asked.scope.element_type(value) if value else None


def _type_name(asked: Asked, of: str | int | None) -> str:
    return element_type_name((_type(asked, of) if isinstance(of, str) else of) or TensorProto.UNDEFINED)


def _value(asked: Asked, name: str) -> Any:
    value = asked.value(name)
    if value is None:
        return None
    numbers: Any = value.reshape(-1).tolist()
    return numbers[0] if asked.is_input(name) and len(numbers) == 1 else numbers


def _values(asked: Asked, name: str) -> list[Any] | None:
    value = asked.value(name)
    return None if value is None else value.reshape(-1).tolist()


def _dtype(asked: Asked, name: str) -> str | None:
    value = asked.value(name)
    return None if value is None else value.dtype.name


def _repeats(asked: Asked, name: str, of: str = "") -> bool | None:
    axes = _values(asked, name)
    if axes is None:
        return None
    rank = asked.scope.needed_rank(asked.operand(of)) if of else 0
    return len({axis + rank if axis < 0 else axis for axis in axes}) < len(axes)


def _within(asked: Asked, name: str, of: str) -> bool | None:
    axes = _values(asked, name)
    if axes is None:
        return None
    rank = asked.scope.needed_rank(asked.operand(of))
    return all(-rank <= axis < rank for axis in axes)


def _is_default(asked: Asked, name: str) -> bool:
    operand, scope = asked.operand(name), asked.scope
    return scope.written_as(operand) == "dynamic" and not scope.made_by(operand)


def _is_read(asked: Asked, name: str) -> bool:
    return bool(asked.output(name)) and asked.scope.is_read(asked.output(name))


def _name(asked: Asked, name: str) -> str:
    return asked.operand(name) if asked.is_input(name) else asked.output(name)


def _front(asked: Asked, name: str, rank: int = 0, room: int = 0) -> Any:
    """An axis, or axes in order, counted from the front of `rank` dimensions; `room` allows places past the last."""
    value = asked.attribute(name)
    if not isinstance(value, int):
        return sorted(from_the_front(axis, rank, room) if rank else axis for axis in value)
    return from_the_front(value, rank, room)


def _is_last(asked: Asked, name: str, of: str) -> bool:
    """Whether only dimensions of size one follow an axis."""
    rank = shared_rank(asked)
    axis = from_the_front(asked.attribute(name), rank)
    shape = _shape(asked, of) if axis < rank - 1 else ()
    return shape is not None and all(size == 1 for size in shape[axis + 1 :])


QUESTIONS: Mapping[str, tuple[Callable[..., Any], str]] = {
    "given": (_given, "the node has this input, output or attribute"),
    "absent": (lambda asked, name: not _given(asked, name), "it has not"),
    "constant": (lambda asked, name: asked.value(name) is not None, "the input is a constant"),
    "computed": (_computed, "the input is known at run time only"),
    "none": (_none, "it is absent, or a list of nothing"),
    "least": (lambda asked, name: min(_values(asked, name) or (), default=None), "the smallest number in the constant"),
    "greatest": (lambda asked, name: max(_values(asked, name) or (), default=None), "the largest number in it"),
    "repeats": (_repeats, "the constant holds a number twice, or names a dimension of the other input twice"),
    "values": (_values, "the constant as a list"),
    "known_rank": (lambda asked, name: _rank(asked, name) is not None, "the number of dimensions is known"),
    "within": (_within, "all axes in the constant are dimensions of the other input"),
    "value": (_value, "the constant: a number if it is one, else a list"),
    "rank": (_rank, "the number of dimensions"),
    "needed_rank": (lambda asked, name: asked.scope.needed_rank(asked.operand(name)), "the same; refused if unknown"),
    "front": (_front, "the axis, or the axes in order, counted from the front of so many dimensions"),
    "is_last": (_is_last, "only sizes of 1 follow the axis"),
    "empty": (lambda asked, name: 0 in (_shape(asked, name) or ()), "a size is known to be zero"),
    "whole": (lambda asked, name: int(asked.attribute(name)), "the number without its fraction"),
    "size": (_size, "the number of elements, or the size along an axis, which an attribute may give"),
    "named_size": (
        _named_size,
        "the size along an axis, by its name if that is all that is known; 0 without the input",
    ),
    "is_multiple": (_is_multiple, "the size along an axis, known by its name at least, is a multiple of a number"),
    "is_end": (_is_end, "its sizes are known, and are the last ones of the other"),
    "same_shape": (_same_shape, "both have the same sizes, all known"),
    "shape": (_shape_text, "the sizes, for a sentence"),
    "size_behind": (_size_behind, "the number of elements along an axis and those behind it"),
    "bits": (_bits, "how many bits a number of the element type has; refused if that is unknown"),
    "in_float": (_in_float, "a float holds every number of the constant exactly"),
    "ends": (_ends, "the least and the greatest number of an integer type, or of an input's; nothing for floats"),
    "dtype": (_dtype, "numpy's name for the element type of the constant"),
    "needed_type": (
        lambda asked, name: asked.scope.needed_element_type(asked.operand(name)),
        "the element type; refused if unknown",
    ),
    "type": (_type, "the element type"),
    "type_name": (_type_name, "its name, for a sentence"),
    "is_yielded": (
        lambda asked, name: bool(asked.output(name)) and asked.scope.is_yielded(asked.output(name)),
        "the model yields the output",
    ),
    "is_read": (_is_read, "something reads the output"),
    "is_default": (_is_default, "it is a constant that callers of the model may override"),
    "name": (_name, "the name of the value, for a sentence"),
    "declare": (
        lambda asked, name: asked.scope.how_to_declare(asked.operand(name), "rank"),
        "how to declare the rank, for a hint",
    ),
}
"""What a guard may ask about an input, output or attribute: by name, with its meaning."""
