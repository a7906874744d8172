"""Operators that take one element at a time, Cast among them, where the target has less of them or none.

Concat before opset 4 stands here as well: like Cast before opset 6, it differs by an attribute alone.

Sources: the pages of Gelu (20), Celu (12), Shrink (9), Sign (9), IsInf (10), Round (11), Identity (13, 14), Bernoulli
(15, 22), Cast (1, 6), CastLike (15 and later), Concat (1, 4).
"""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, defs, helper, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.casts import Fitted, retypes_container
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of
from reducelower.model.numbers import FLOATS, UNSIGNED, largest_finite
from reducelower.model.schemas import parse_element_type


@expresses("Gelu", opset=13)
def _gelu(op: Writer) -> list[NodeProto]:
    """Half of x * (1 + erf(x / sqrt(2))), or its tanh approximation, in the form that runtimes recognize."""
    data = op.input(0)
    element_type = op.scope.needed_element_type(data)

    def number(value: float, tail: str) -> str:
        return op.constant(value, element_type, tail)

    if op.attribute("approximate", "none") == "tanh":
        cube = op.add("Pow", data, number(3.0, "three"), tail="cube")
        inner = op.add("Add", data, op.add("Mul", cube, number(0.044715, "cubic")), tail="inner")
        bent = op.add("Tanh", op.add("Mul", inner, number(math.sqrt(2 / math.pi), "sqrt_two_over_pi")))
    else:
        bent = op.add("Erf", op.add("Div", data, number(math.sqrt(2.0), "sqrt_two")))
    shifted = op.add("Add", bent, number(1.0, "one"), tail="shifted")
    # Halved first: the data times something up to two may lie beyond the largest number.
    halved = op.add("Mul", data, number(0.5, "half"), tail="halved")
    return op.yields("Mul", halved, shifted)


@expresses("Celu", opset=8)
def _celu(op: Writer) -> list[NodeProto]:
    """What is above zero, plus alpha * (exp(x / alpha) - 1) of what is below it; alpha may be negative.

    The schema's body sends what is above zero through x / alpha * alpha, which may overflow, and takes scalars for
    vectors.
    """
    data = op.input(0)
    element_type = op.scope.needed_element_type(data)
    alpha = op.constant(op.attribute("alpha", 1.0), element_type, "alpha")
    below = op.add("Neg", op.add("Relu", op.add("Neg", data, tail="turned"), tail="depth"), tail="below")
    exponential = op.add("Exp", op.add("Div", below, alpha, tail="scaled"))
    less_one = op.add("Sub", exponential, op.constant(1.0, element_type, "one"), tail="less_one")
    return op.yields("Add", op.add("Relu", data, tail="above"), op.add("Mul", less_one, alpha, tail="bent"))


@expresses("Shrink", opset=9)
def _shrink(op: Writer) -> list[NodeProto] | None:
    """Whole numbers are shifted by a bias that is none before the result is cut to a whole number.

    The schema's body would cut the bias itself, and negate unsigned numbers; it serves everything else.
    """
    element_type = op.element_type(0)
    is_exact = float(op.attribute("bias", 0.0)).is_integer() and op.attribute("lambd", 0.5) >= 0
    if element_type in FLOATS or (is_exact and element_type not in UNSIGNED):
        return None
    wide = op.add("Cast", op.input(0), tail="wide", to=TensorProto.DOUBLE)
    lambd = op.attribute("lambd", 0.5)
    bias, high, low = (
        op.constant(value, TensorProto.DOUBLE, tail)
        for value, tail in ((op.attribute("bias", 0.0), "bias"), (lambd, "high"), (-lambd, "low"))
    )
    # The choice is between whole numbers: below opset 9 there is no Where for others.
    less, more = (
        op.cast(op.add(op_type, wide, bias), TensorProto.DOUBLE, element_type, tail)
        for op_type, tail in (("Sub", "less"), ("Add", "more"))
    )
    is_high = op.add("Greater", wide, high, tail="is_high")
    above = op.add("Where", is_high, less, op.constant(0, element_type, "zero"), tail="above")
    return op.yields("Where", op.add("Less", wide, low, tail="is_low"), more, above)


@expresses("Sign", opset=8)
def _sign(op: Writer) -> list[NodeProto]:
    """Whether it is positive minus whether it is negative; NaN has no sign.

    Integers are compared as float32, which rounds them and keeps their signs: comparisons took floats only.
    """
    element_type = op.element_type(0)
    data, is_float = op.input(0), element_type in FLOATS
    numbers = element_type if is_float else TensorProto.FLOAT
    if not is_float:
        data = op.add("Cast", data, tail="numbers", to=numbers)
    zero = op.constant(0, numbers, "zero")
    positive, negative = (op.add("Cast", op.add(op_type, data, zero), to=numbers) for op_type in ("Greater", "Less"))
    if not is_float:
        return op.yields("Cast", op.add("Sub", positive, negative, tail="sign"), to=element_type)
    # Every number lies below one or above minus one. For what is neither, the sign becomes zero by zero.
    one, minus_one = op.constant(1, numbers, "one"), op.constant(-1, numbers, "minus_one")
    sides = op.add("Less", data, one, tail="is_low"), op.add("Greater", data, minus_one, tail="is_high")
    is_number = op.add("Cast", op.add("Or", *sides, tail="is_number"), tail="counts", to=numbers)
    return op.yields("Div", op.add("Sub", positive, negative, tail="sign"), is_number)


@expresses("IsInf", opset=9)
def _is_inf(op: Writer) -> list[NodeProto]:
    """What lies beyond the largest finite number."""
    data = op.input(0)
    element_type = op.scope.needed_element_type(data)
    largest = largest_finite(element_type)
    sides = [
        (op_type, op.constant(bound, element_type, tail))
        for attribute, op_type, bound, tail in (
            ("detect_positive", "Greater", largest, "largest"),
            ("detect_negative", "Less", -largest, "lowest"),
        )
        if op.attribute(attribute, 1)
    ]
    if not sides:
        # Nothing is beyond itself.
        return op.yields("Less", data, data)
    if len(sides) == 1:
        return op.yields(sides[0][0], data, sides[0][1])
    return op.yields("Or", *(op.add(op_type, data, bound) for op_type, bound in sides))


@expresses("Round", opset=9)
def _round(op: Writer) -> list[NodeProto]:
    """The floor or the number after it, whichever is nearer; halfway between them, the even one.

    What rounds to zero keeps its sign, as the data times zero has it.
    """
    data = op.input(0)
    element_type = op.scope.needed_element_type(data)
    values = ((0.0, "zero"), (0.5, "half"), (1.0, "one"), (2.0, "two"))
    zero, half, one, two = (op.constant(value, element_type, tail) for value, tail in values)
    floor = op.add("Floor", data)
    above = op.add("Add", floor, one, tail="above")
    even = op.add("Mul", op.add("Floor", op.add("Mul", above, half, tail="halved")), two, tail="even")
    rest = op.add("Sub", data, floor, tail="rest")
    upward = op.add("Where", op.add("Less", half, rest, tail="is_above"), above, even, tail="upward")
    nearest = op.add("Where", op.add("Less", rest, half, tail="is_below"), floor, upward, tail="nearest")
    # onnxruntime 1.31 takes 0 for a negative zero of the first operand, and keeps that of the second.
    is_more = op.add("Less", half, op.add("Abs", nearest), tail="is_more")
    return op.yields("Where", is_more, nearest, op.add("Mul", data, zero, tail="signed_zero"))


@retypes_container("Identity")
def _identity(op: Writer, container: TypeProto, goal: defs.OpSchema) -> Fitted | None:
    """A sequence with something put in at its end and taken out again."""
    if container.WhichOneof("value") != "sequence_type":
        return None
    element_type = container.sequence_type.elem_type.tensor_type.elem_type
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    something = op.scope.add_constant(np.zeros([0], dtype), "something")
    longer = op.add("SequenceInsert", op.input(0), something, tail="longer")
    return op.yields("SequenceErase", longer), None, []


@expresses("Bernoulli", opset=13)
def _bernoulli(op: Writer) -> list[NodeProto]:
    """1 where a number between 0, included, and 1, excluded, is below the chance; so never at 0 and always at 1.

    The body in the schema (onnx 1.23.2) compares the other way round, and so yields 1 with the chance of 0.
    """
    chances = op.input(0)
    element_type = op.scope.needed_element_type(chances)
    # A short float could round a draw up to 1.
    wide = TensorProto.DOUBLE if element_type == TensorProto.DOUBLE else TensorProto.FLOAT
    chances = op.cast(chances, element_type, wide, "chances")
    seed = filter(None, (attribute_of(op.node, "seed"),))
    drawn = op.add("RandomUniformLike", chances, tail="drawn", dtype=wide, copied=seed, low=0.0, high=1.0)
    happens = op.add("Less", drawn, chances, tail="happens")
    return op.yields_cast(happens, TensorProto.BOOL, int(op.attribute("dtype", element_type)))


@raises("Cast", 6)
def _raise_name(op: Writer) -> None:
    """The name of an element type becomes its number."""
    name = op.attribute("to")
    try:
        op.set("to", parse_element_type(str(name)))
    except ValueError as error:
        raise RefusedError(str(error)) from error


@lowers("Cast", 6)
def _lower_number(op: Writer) -> Outcome:
    """The number of an element type becomes its name, which shape inference does not read."""
    if op.scope.element_type(op.input(0)) == op.attribute("to"):
        return op.yields("Identity", op.input(0))
    op.scope.state_type(op.node.output[0])
    op.set("to", TensorProto.DataType.Name(op.attribute("to")))
    return None


@raises("Concat", 4)
def _raise_default_axis(op: Writer) -> None:
    """The axis was 1 unless given, and has to be given since."""
    op.state("axis", 1)


# Numbers that a cast turns into the same ones whoever casts them, and small enough to hold once more.
_FOLDED = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32)
_SMALL = 64


@expresses("CastLike", opset=24)
def _cast_like(op: Writer) -> list[NodeProto]:
    """Cast, or the constant itself in the other type, as in the function bodies that CastLike was made for."""
    data, other = op.node.input[:2]
    goal = op.scope.needed_element_type(other)
    value = op.scope.constant(data)
    if value is not None and value.size <= _SMALL and op.scope.element_type(data) in _FOLDED and goal in _FOLDED[:2]:
        op.scope.release(data)
        array = value.astype(helper.tensor_dtype_to_np_dtype(goal))
        return op.yields("Constant", value=numpy_helper.from_array(array, op.node.output[0]))
    marks = filter(None, (attribute_of(op.node, name) for name in ("saturate", "round_mode")))
    return op.yields("Cast", data, copied=marks, to=goal)
