"""Clip, comparisons, Max, Min and Relu of types that came late; not text, since element types decide the form.

A bound of Clip that is left out is none at opset 1, the largest float32 at 6, and the largest number of the data's own
element type since 11. Those differ for infinities, and for what lies beyond float32.

Sources: the pages of Clip (1, 6, 11, 12, 13), Max (8, 12), Relu (13, 14), Equal (7, 11).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, defs

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.casts import Fitted, cast_exactly, refusal, retypes
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.numbers import SIGNED, UNSIGNED, largest_finite, whole_range

__all__ = ["limited"]

_INTEGERS = (*SIGNED, *UNSIGNED)
_SMALL = tuple(kind for kind in _INTEGERS if kind not in (TensorProto.INT64, TensorProto.UINT64))


def _holds(value: np.ndarray) -> bool:
    """Whether an attribute of type float holds the bound exactly."""
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        return bool(float(np.float32(number)) == value.reshape(-1)[0] or number != number)


@lowers("Clip", 11)
def _lower_bounds(op: Writer) -> Outcome:
    """Bounds that an attribute of type float cannot say become the larger of two and the smaller of two.

    So do constant ones where min lies above max, which versions before 11 refuse and later ones answer with max.
    """
    names = [op.input(1), op.input(2)]
    values = [op.scope.constant(name) if name else None for name in names]
    known = all(value is not None for name, value in zip(names, values, strict=True) if name)
    element_type = TensorProto.FLOAT if all(names) else op.element_type(0)
    left_out = {} if all(names) else _left_out(names, element_type)
    if known and all(_holds(value) for value in (*values, *left_out.values()) if value is not None):
        low, high = values
        if low is None or high is None or low.reshape(-1)[0] <= high.reshape(-1)[0]:
            for attribute, bound in left_out.items() if element_type != TensorProto.FLOAT else ():
                op.set(attribute, float(bound))  # of float it is the default
            return None
    bounds = [
        op.constant(left_out[attribute], element_type, attribute) if attribute in left_out else name
        for attribute, name in zip(_BOUNDS, names, strict=True)
    ]
    return limited(op, bounds)


_BOUNDS = ("min", "max")


def _left_out(names: Sequence[str], element_type: int) -> dict[str, np.ndarray]:
    """What the bounds that are left out stand for since opset 11, where data can lie beyond it."""
    if element_type in _INTEGERS:
        return {}
    largest = largest_finite(element_type)
    return {
        attribute: np.array(sign * largest)
        for attribute, name, sign in zip(_BOUNDS, names, (-1, 1), strict=True)
        if not name
    }


def limited(op: Writer, bounds: Sequence[str]) -> list[NodeProto]:
    """The smaller of max and the larger of min and the data: Max and Min, which take floats only before opset 12.

    Integers are compared instead, as 64-bit ones where they are shorter.
    """
    data, element_type = op.input(0), op.element_type(0)
    steps = [(op_type, bound) for op_type, bound in zip(("Max", "Min"), bounds, strict=True) if bound]
    if element_type not in _INTEGERS:
        for op_type, bound in steps[:-1]:
            data = op.add(op_type, data, bound)
        return op.yields(steps[-1][0], data, steps[-1][1]) if steps else op.yields("Identity", data)

    wide = TensorProto.INT64 if element_type in _SMALL else element_type
    data = op.cast(data, element_type, wide, "int64")
    for op_type, bound in steps:
        limit = op.cast(bound, element_type, wide, f"{op_type.lower()}_int64")
        below = op.add("Less", data, limit, tail=f"{op_type.lower()}_below")
        data = op.add("Where", below, *((limit, data) if op_type == "Max" else (data, limit)), tail=op_type.lower())
    return op.yields_cast(data, wide, element_type)


_WIDEST = (TensorProto.INT64, TensorProto.UINT64)


def _chosen(op: Writer, op_type: str, one: str, other: str) -> tuple[str, str, str]:
    """Operands of the Where that yields the larger or the smaller of two integers."""
    below = op.add("Less", one, other, tail="below")
    return (below, other, one) if op_type == "Max" else (below, one, other)


@retypes("Max", "Min")
def _extreme(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """No float holds every 64-bit integer, so those are compared as they are."""
    if element_type not in _WIDEST:
        return cast_exactly(op, element_type, goal)
    return _by_comparison(op), None, []


@expresses("Max", "Min", opset=13)
def _expressed(op: Writer) -> list[NodeProto]:
    """For integers only: comparing floats says nothing where one of them is NaN."""
    if op.element_type(0) not in _INTEGERS:
        raise RefusedError(f"{op.node.op_type} is expressed by comparisons for integers only")
    return _by_comparison(op)


def _by_comparison(op: Writer) -> list[NodeProto]:
    found, *others = op.node.input
    if not others:
        return op.yields("Identity", found)
    for name in others[:-1]:
        found = op.add("Where", *_chosen(op, op.node.op_type, found, name), tail="so_far")
    return op.yields("Where", *_chosen(op, op.node.op_type, found, others[-1]))


@retypes("Clip")
def _clip(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Where float32, which is what runtimes clip, does not hold every value, it is compared with its bounds."""
    if element_type not in (*_WIDEST, TensorProto.INT32, TensorProto.UINT32):
        return cast_exactly(op, element_type, goal)
    lowest, highest = whole_range(element_type)
    bounds = [op.input(1), op.input(2)]
    for index, name in enumerate(("min", "max")):
        # Below opset 11 the bounds are attributes; those that no value reaches say that there are none.
        value = op.attribute(name)
        if value is not None and (lowest < value if name == "min" else value < highest):
            bounds[index] = op.constant(int(min(max(value, lowest), highest)), element_type, name)
    return limited(op, bounds), None, []


@retypes("Relu")
def _relu(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """The larger of the data and zero."""
    if element_type not in _INTEGERS:
        return cast_exactly(op, element_type, goal)
    return op.yields("Max", op.input(0), op.constant(0, element_type, "zero")), None, []


@retypes("Less", "Greater")
def _less(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """No float holds every 64-bit integer: quotients by 2^32 are compared as doubles, then rests."""
    if element_type not in _WIDEST:
        return cast_exactly(op, element_type, goal)
    half = op.constant(1 << 32, element_type, "half")
    highs = [op.add("Div", name, half, tail="high") for name in op.node.input]
    wholes = [op.add("Mul", high, half, tail="whole") for high in highs]
    rests = [op.add("Sub", name, whole, tail="rest") for name, whole in zip(op.node.input, wholes, strict=True)]
    highs, rests = (
        [op.add("Cast", name, tail="double", to=TensorProto.DOUBLE) for name in names] for names in (highs, rests)
    )
    ahead = op.add(op.node.op_type, *highs, tail="ahead")
    behind = op.add(op.node.op_type, *reversed(highs), tail="behind")
    level = op.add("Not", op.add("Or", ahead, behind, tail="apart"), tail="level")
    return op.yields("Or", ahead, op.add("And", level, op.add(op.node.op_type, *rests, tail="then"))), None, []


@retypes("Equal")
def _equal(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Two numbers are equal where neither is less, unless one is NaN, and then their sum is NaN."""
    if element_type in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.UINT64):
        one, other = op.node.input
        if element_type == TensorProto.FLOAT16:
            one, other = (
                op.cast(name, element_type, TensorProto.FLOAT, tail) for name, tail in ((one, "one"), (other, "other"))
            )
        less = op.add("Less", one, other)
        differ = op.add("Or", less, op.add("Greater", one, other), tail="differ")
        if element_type != TensorProto.UINT64:
            # The sum of opposite infinities is not a number either, and they differ anyway.
            nothing = op.add("IsNaN", op.add("Add", one, other, tail="sum"), tail="nan")
            differ = op.add("Or", differ, nothing, tail="differ_or_nan")
        return op.yields("Not", differ), None, []
    if element_type == TensorProto.STRING:
        if op.scope.target_opset < 11:
            raise refusal(op, element_type)
        return _equal_strings(op), None, []
    return cast_exactly(op, element_type, goal)


def _equal_strings(op: Writer) -> list[NodeProto]:
    """Strings that are equal have one number among the different ones of both operands, in one row."""
    scope, operands = op.scope, list(op.node.input)
    shapes = [scope.shape(name) for name in operands]

    def compared() -> str:
        flat = [op.add("Reshape", name, op.number(-1), tail="flat") for name in operands]
        row = op.add("Concat", *flat, tail="row", axis=0)
        numbers = op.add_many("Unique", [row], ["different", "", "numbers"])[2]
        middle = op.add("Reshape", op.add("Size", operands[0]), op.number(1), tail="middle")
        bounds = ((op.number(0), middle), (middle, op.number(TO_THE_END)))
        return op.add("Equal", *(
            op.add("Reshape", op.add("Slice", numbers, *bound), op.add("Shape", name), tail="numbers_of")
            for name, bound in zip(operands, bounds, strict=True)
        ))  # fmt: skip

    def of_nothing() -> str:
        return op.add("Equal", *(op.add("ConstantOfShape", op.add("Shape", name)) for name in operands))

    if any(shape is not None and 0 in shape for shape in shapes):
        of_nothing()
        return op.yields_last()
    if not scope.may_be_empty(operands[0]) and not scope.may_be_empty(operands[1]):
        compared()
        return op.yields_last()
    # No Unique goes over nothing, and a Reshape takes 0 for a size that the data has.
    counts = [op.add("Size", name, tail="count") for name in operands]
    nothing = op.add("Equal", op.add("Mul", *counts), op.integers(0, "none"), tail="is_empty")
    return op.yields_either(nothing, of_nothing, compared, TensorProto.BOOL)
