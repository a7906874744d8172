"""The forms of rules: what the engine expands one node of an operator to.

The expanded node has an epsilon, a number of groups and axes that occur nowhere else in a body, so that they can be
recognized in the expansion. So one expansion gives the form for all values.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.api import legalize
from reducelower.errors import ConversionError
from reducelower.model.numbers import Array
from reducelower.model.schemas import element_type_name, schema
from reducelower.options import Book, Target
from reducelower.recompose.expressions import (
    AXES,
    AXES_ARE_INPUT,
    Application,
    Exact,
    Expression,
    Form,
    Literal,
    Variable,
)
from reducelower.recompose.surroundings import attributes_of
from reducelower.rulebook import Rule, RuleBook, RuleError, load_book
from reducelower.rulebook.book import load_forms

__all__ = ["Expansions", "Manner", "raisable"]

_RESULT = "result"
_COUNT = "count"

_EPSILON, _GROUPS, _SOME_AXES, _NUMBER = 0.0123, 5, (7,), 113
"""Placeholder values: epsilon, num_groups, axes of a Reduce operator, and the number of summed elements."""

_NUMBERS = {"epsilon": float(np.float32(_EPSILON)), "root_epsilon": sqrt(np.float32(_EPSILON)), "count": float(_NUMBER)}
"""The values of one-element constants by the variable that they stand for."""

_RANK = 4

_NORMALIZATIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "GroupNormalization": ({"epsilon": _EPSILON, "num_groups": _GROUPS},),
    "InstanceNormalization": ({"epsilon": _EPSILON},),
    "LayerNormalization": ({"epsilon": _EPSILON},),
    "LogSoftmax": ({},),
    "LpNormalization": ({"p": 1}, {"p": 2}),
    "RMSNormalization": ({"epsilon": _EPSILON},),
    "Softmax": ({},),
}
"""The attributes of the expanded nodes; without `axis` they use the last axis."""

_ALONG_ONE_AXIS = 13
"""Opset version from which on Softmax and LogSoftmax use one axis."""

_UNCHANGING = frozenset({"Abs", "Exp", "Floor", "Log", "Reshape", "Sqrt"})
"""Operators that never change across opset versions: if a rule's body has one, its expansion has it too."""


@dataclass(frozen=True)
class Manner:
    """How a Reduce node reduces, and the element type of its data."""

    element_type: int
    keepdims: int
    noop: int
    has_axes: bool


class Expansions:
    """The forms of some rule books, computed on demand."""

    def __init__(self, ops: Collection[str] | None, books: Iterable[Book], *, by_hand: bool) -> None:
        """Select the rules.

        A form is named after the first book that has it. `by_hand` adds forms of Reduce operators that people write.
        """
        self._ops = ops
        self._books = [(book if isinstance(book, RuleBook) else load_book(book), False) for book in books]
        self._books += [(book, True) for book in load_forms()] if by_hand else []

    def of_reductions(self, opset: int, manners: Collection[Manner], present: Collection[str]) -> Iterator[Form]:
        """The forms of Reduce operators for these manners, given the operators in the graph."""
        for manner in sorted(manners, key=repr):
            for book, rule, by_hand in self._rules(manner.element_type, present):
                if rule.function.name.startswith("Reduce"):
                    yield from _forms(opset, book, rule, manner, by_hand)

    def of_normalizations(self, opset: int, element_types: Collection[int], present: Collection[str]) -> Iterator[Form]:
        """The forms of normalizations for these element types, given the operators in the graph."""
        for element_type in sorted(element_types):
            for book, rule, by_hand in self._rules(element_type, present):
                if rule.function.name in _NORMALIZATIONS:
                    yield from _forms(opset, book, rule, element_type, by_hand)

    def _rules(self, element_type: int, present: Collection[str]) -> Iterator[tuple[RuleBook, Rule, bool]]:
        """The rules to look for, each with its book and whether people write it by hand."""
        seen: set[int] = set()
        for book, by_hand in self._books:
            for op_type in raisable(book):
                rule = book.find(op_type, element_type)
                # A rule inherited from another book is one form, not two.
                if rule is None or id(rule) in seen or (self._ops is not None and op_type not in self._ops):
                    continue
                seen.add(id(rule))
                if rule.operators & _UNCHANGING <= set(present):
                    yield book, rule, by_hand


_FORMS: WeakKeyDictionary[RuleBook, dict[Hashable, tuple[Form, ...]]] = WeakKeyDictionary()
"""Cache of forms per book."""


def _forms(opset: int, book: RuleBook, rule: Rule, how: Manner | int, by_hand: bool) -> tuple[Form, ...]:
    cached = _FORMS.setdefault(book, {})
    key = opset, rule.name, how, by_hand
    if key not in cached:
        if isinstance(how, Manner):
            nodes, element_type = _reduction(rule, how, opset, by_hand), how.element_type
        else:
            nodes, element_type = _normalizations(rule, opset), how
        forms = (_form(book, rule, node, opset, element_type) for node in nodes)
        cached[key] = tuple(replace(form, is_careless=by_hand) for form in forms if form is not None)
    return cached[key]


@cache
def raisable(book: RuleBook) -> tuple[str, ...]:
    """The operators that can be recomposed from a book's bodies."""
    return tuple(name for name in book.operators if name.startswith("Reduce") or name in _NORMALIZATIONS)


# The nodes that are expanded


def _reduction(rule: Rule, manner: Manner, opset: int, by_hand: bool) -> Iterator[NodeProto]:
    attributes = {attribute.name: attribute.i for attribute in rule.function.attribute_proto}
    if attributes.get("keepdims", manner.keepdims) != manner.keepdims or (by_hand and manner.noop):
        return
    node = helper.make_node(rule.function.name, ["data"], [_RESULT], keepdims=manner.keepdims)
    if opset >= AXES_ARE_INPUT:
        node.attribute.append(helper.make_attribute("noop_with_empty_axes", manner.noop))
        node.input.extend([AXES] if manner.has_axes else [])
    elif manner.noop:
        return
    elif manner.has_axes:
        node.attribute.append(helper.make_attribute(AXES, _SOME_AXES))
    yield node


def _normalizations(rule: Rule, opset: int) -> Iterator[NodeProto]:
    op_type = rule.function.name
    definition = schema(op_type, opset)
    if definition is None or (op_type in ("Softmax", "LogSoftmax") and opset < _ALONG_ONE_AXIS):
        return
    for attributes in _NORMALIZATIONS[op_type]:
        for count in range(definition.min_input, definition.max_input + 1):
            inputs = [each.name for each in definition.inputs[:count]]
            yield helper.make_node(op_type, inputs, [_RESULT], **attributes)


def _form(book: RuleBook, rule: Rule, node: NodeProto, opset: int, element_type: int) -> Form | None:
    """The expansion of a node as a form; None if it cannot be expanded or leaves nothing to recognize."""
    definition = schema(node.op_type, opset)
    if definition is None or f"tensor({element_type_name(element_type)})" not in definition.inputs[0].types:
        return None
    try:
        expanded = legalize(
            _model_of(node, opset, element_type),
            Target(None, frozenset({node.op_type})),
            rules=_with_count(book, rule, element_type),
            ir_version="keep",
        ).model.graph
    except (ConversionError, RuleError):
        return None
    if not any(each.op_type.startswith("Reduce") for each in expanded.node):
        return None
    values: dict[str, Expression] = {name: Variable(name) for name in node.input}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in expanded.initializer}
    axes = next(iter(_axes(expanded.node, constants)), None)
    for each in expanded.node:
        values[each.output[0]] = _application(each, values, constants, axes, opset)
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    inputs = tuple(name for name in node.input if name != AXES)
    return Form(node.op_type, rule.name, inputs, values[_RESULT], attributes, element_type=element_type)


def _model_of(node: NodeProto, opset: int, element_type: int) -> ModelProto:
    """A model of one node."""
    graph = GraphProto(name="form", node=[node])
    for at, name in enumerate(node.input):
        value = graph.input.add(name=name).type.tensor_type
        value.elem_type = TensorProto.INT64 if name == AXES else element_type
        # For a normalization, only the rank of the data may be needed.
        for _ in range(_RANK if not at and name != "data" else 0):
            value.shape.dim.add()
    graph.output.add(name=_RESULT).type.tensor_type.elem_type = element_type
    model = ModelProto(ir_version=10, graph=graph)
    model.opset_import.add(version=opset)
    return model


def _with_count(book: RuleBook, rule: Rule, element_type: int) -> RuleBook:
    """The book to expand with; if the rule uses the number of summed elements, a copy with a placeholder for it."""
    if _COUNT not in rule.function.attribute:
        return book
    function = deepcopy(rule.function)
    function.attribute.remove(_COUNT)
    value = helper.make_tensor(_COUNT, element_type, (), [_NUMBER])
    function.attribute_proto.append(helper.make_attribute(_COUNT, value))
    return RuleBook(book.name, functions=[function], trusted=True, helpers=rule.helpers)


# Expanded nodes as an expression


def _axes(nodes: Iterable[NodeProto], constants: Mapping[str, Array]) -> Iterator[tuple[int, ...]]:
    """The constant axes of the reductions."""
    for node in nodes:
        if node.op_type.startswith("Reduce"):
            yield from (tuple(attribute.ints) for attribute in node.attribute if attribute.name == AXES)
            yield from (tuple(constants[name].tolist()) for name in node.input[1:] if name in constants)


def _application(
    node: NodeProto,
    values: Mapping[str, Expression],
    constants: Mapping[str, Array],
    axes: tuple[int, ...] | None,
    opset: int,
) -> Application:
    """The expression of a node, from those of its inputs."""
    attributes = attributes_of(node, opset)
    if axes is not None and tuple(attributes.get(AXES, ())) == axes:
        attributes[AXES] = Variable(AXES)
    operands: list[Expression] = []
    for at, name in enumerate(node.input):
        if name not in constants:
            operands.append(values[name])
        elif constants[name].dtype == np.int64 and tuple(constants[name].reshape(-1).tolist()) == axes:
            operands.append(Variable(AXES))
        else:
            operands.append(_constant(constants[name], is_exponent=node.op_type == "Pow" and at == 1))
    return Application(node.op_type, attributes, tuple(operands), is_exact=True)


def _constant(value: Array, *, is_exponent: bool) -> Expression:
    """A constant as an expression: a variable for a placeholder, an exponent of any type, or the exact value."""
    if value.dtype == np.int64 and _GROUPS in value:
        return Variable("group_shape")
    if value.size == 1:
        number = value.reshape(-1)[0]
        for name, placeholder in _NUMBERS.items():
            if number == np.float64(placeholder).astype(value.dtype):
                return Variable(name)
        if is_exponent:
            return Literal(float(number))
    return Exact(value)
