"""The forms in `rules/forms/composites` as expressions.

A form is written like a rule. Its helpers may have several alternative definitions, so one form stands for all
combinations of them. Inputs beyond the operator's own (``axes``, ``epsilon`` ...) are values that determine the
operator's attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, NodeProto, helper, numpy_helper

from reducelower.model.numbers import Array
from reducelower.rulebook.bindings import claim_of
from reducelower.rulebook.book import load_forms
from reducelower.rulebook.reading import Helpers, Source

__all__ = [
    "AXES",
    "AXES_ARE_INPUT",
    "COMMUTATIVE",
    "NOOP",
    "PASSING_ON",
    "AnyOf",
    "Application",
    "Exact",
    "Expression",
    "Form",
    "Literal",
    "Variable",
    "forms_of",
    "is_near",
    "written_operators",
]

AXES = "axes"
"""The variable for the axes of a Reduce operator: an input, an attribute, or absent for all axes."""

NOOP = "noop_with_empty_axes"
"""The attribute of a Reduce operator that decides nothing where axes are given."""

PASSING_ON = frozenset({"Cast", "Identity"})
"""Operators that may only pass on their input."""

COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min"})
"""Operators whose operands may have either order."""

AXES_ARE_INPUT = 18
"""Opset version from which on every Reduce operator has its axes as an input."""


@dataclass(frozen=True, eq=False)
class Variable:
    """An input of the form: any value, the same wherever the form uses it."""

    name: str


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant near this value, of any type and however it is defined."""

    value: float

    def dimensions(self, constant: Array) -> int:
        """The rank of a constant if it is of one element near this number, else -1."""
        is_it = constant.size == 1 and is_near(float(constant.reshape(-1)[0]), self.value, constant.dtype)
        return constant.ndim if is_it else -1


@dataclass(frozen=True, eq=False)
class Exact:
    """A constant with exactly this value and type; one of a single element may have dimensions."""

    value: Array

    def dimensions(self, constant: Array) -> int:
        """By how much the rank of a constant of this value exceeds the expected one; -1 if it is of another."""
        goal = self.value
        if constant.dtype != goal.dtype or constant.tobytes() != goal.tobytes():
            return -1
        return 0 if constant.shape == goal.shape else constant.ndim if constant.size == 1 and not goal.ndim else -1


@dataclass(frozen=True, eq=False)
class Application:
    """The output of an operator.

    Attributes:
        attributes: required attributes by name; a `Variable` takes the node's value.
    """

    op_type: str
    attributes: Mapping[str, object]
    operands: tuple[Expression, ...]

    @cached_property
    def takes_axes(self) -> bool:
        """Whether the axes are its last operand."""
        last = self.operands[-1] if self.operands else None
        return isinstance(last, Variable) and last.name == AXES


@dataclass(frozen=True, eq=False)
class AnyOf:
    """One of several expressions; the first that matches."""

    alternatives: tuple[Expression, ...]


Expression: TypeAlias = Variable | Literal | Exact | Application | AnyOf


@dataclass(frozen=True, eq=False)
class Form:
    """One way, or a family of ways, to write an operator.

    Attributes:
        name: its name in reports.
        inputs: its inputs; the first is the operator's.
        attributes: attributes of the operator that the form implies, by name.
        element_types: those of the data that it is for; None for all.
    """

    op_type: str
    name: str
    inputs: tuple[str, ...]
    result: Expression
    attributes: Mapping[str, Any]
    element_types: frozenset[int] | None = None

    @cached_property
    def ends(self) -> frozenset[str]:
        """The operators whose node may compute the result."""
        return frozenset(_ends(self.result))

    @property
    def is_reduction(self) -> bool:
        """Whether it is a form of a Reduce operator."""
        return self.op_type.startswith("Reduce")


@cache
def written_operators() -> tuple[str, ...]:
    """The operators with forms here."""
    return load_forms().operators


@cache
def forms_of(op_type: str) -> tuple[Form, ...]:
    """The forms of an operator."""
    sources, helpers = load_forms().written(op_type)
    return tuple(_form(source, helpers, load_forms().name) for source in sources)


def _form(source: Source, helpers: Helpers, book: str) -> Form:
    function = source.function
    values: dict[str, Expression] = {name: Variable(name) for name in function.input}
    references = {name: Variable(name) for name in function.attribute}
    for node in function.node:
        values[node.output[0]] = _expression(node, values, helpers, references)
    return Form(
        function.name,
        f"{book}/{function.name}",
        tuple(function.input),
        values[function.output[0]],
        {attribute.name: attribute.i for attribute in function.attribute_proto},
        claim_of(source).types,
    )


def _expression(
    node: NodeProto, values: Mapping[str, Expression], helpers: Helpers, references: Mapping[str, Variable]
) -> Expression:
    operands = tuple(values[name] for name in node.input)
    if node.op_type == "Identity":
        return operands[0]
    if node.op_type == "Constant":
        return Literal(float(numpy_helper.to_array(node.attribute[0].t)))
    if node.op_type in helpers:
        ways = [_call(source, operands, helpers) for source in helpers[node.op_type]]
        return ways[0] if len(ways) == 1 else AnyOf(tuple(ways))
    attributes = {attribute.name: _attribute_value(attribute, references) for attribute in node.attribute}
    return Application(node.op_type, attributes, operands)


def _attribute_value(attribute: AttributeProto, references: Mapping[str, Variable]) -> object:
    if attribute.ref_attr_name:
        return references[attribute.ref_attr_name]
    return helper.get_attribute_value(attribute)


def _call(source: Source, operands: Sequence[Expression], helpers: Helpers) -> Expression:
    function = source.function
    values = dict(zip(function.input, operands, strict=True))
    for node in function.node:
        values[node.output[0]] = _expression(node, values, helpers, {})
    return values[function.output[0]]


def _ends(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Application):
        yield expression.op_type
    elif isinstance(expression, AnyOf):
        yield from chain.from_iterable(map(_ends, expression.alternatives))


def is_near(number: float, goal: float, kind: np.dtype[np.generic]) -> bool:
    """Whether a number equals another rounded to an element type, within one unit in the last place."""
    return abs(number - goal) <= _LAST_PLACE.get(kind.itemsize, 2.0**-22) * abs(goal)


_LAST_PLACE = {2: 2.0**-10, 8: 2.0**-51}
"""A unit in the last place of half precision and of doubles, relative to the number, by size in bytes."""
