"""The forms of rules for Reduce operators: what the engine expands one node of an operator to.

The expanded node has axes that occur nowhere else in a body, so that they can be recognized in the expansion. So one
expansion gives the form for all axes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.api import legalize
from reducelower.errors import ConversionError
from reducelower.model.numbers import Array
from reducelower.options import Target
from reducelower.recompose.expressions import (
    AXES,
    AXES_ARE_INPUT,
    NOOP,
    Application,
    Exact,
    Expression,
    Form,
    Literal,
    Variable,
)
from reducelower.recompose.surroundings import attributes_of
from reducelower.rulebook import RuleBook, RuleError, load_book
from reducelower.rulebook.rules import SHIPPED

__all__ = ["Manner", "expandable", "expanded_forms"]

_BOOKS = (*SHIPPED, "portable")

_RESULT = "result"

_SOME_AXES = (7,)
"""Placeholder for the axes."""

_MOST_FORMS = 4096
"""The most forms that are kept."""

_UNCHANGING = frozenset({"Abs", "Exp", "Floor", "Log", "Reshape", "Sqrt"})
"""Operators that never change across opset versions: if a rule's body has one, its expansion has it too."""


class Manner(NamedTuple):
    """The element type of a Reduce node's data, and whether it keeps the dimensions that it reduces."""

    element_type: int
    keepdims: int


def expanded_forms(
    ops: Collection[str], opset: int, manners: Collection[Manner], present: Collection[str]
) -> Iterator[Form]:
    """The forms of some operators for these manners, given the operators in the graph.

    A form is named after the first book that has it.
    """
    for manner in sorted(manners):
        seen: set[int] = set()
        for book in map(load_book, _BOOKS):
            for op_type in _reductions(book):
                rule = book.find(op_type, manner.element_type)
                # A rule inherited from another book is one form, not two.
                if rule is None or id(rule) in seen or op_type not in ops:
                    continue
                seen.add(id(rule))
                form = _form(book, op_type, manner, opset) if rule.operators & _UNCHANGING <= set(present) else None
                if form is not None:
                    yield form


def expandable() -> Iterator[str]:
    """The operators of which there are such forms."""
    return chain.from_iterable(map(_reductions, map(load_book, _BOOKS)))


def _reductions(book: RuleBook) -> Iterator[str]:
    return (name for name in book.operators if name.startswith("Reduce"))


def _reduction(op_type: str, manner: Manner, opset: int) -> NodeProto:
    """The node that is expanded."""
    if opset >= AXES_ARE_INPUT:
        return helper.make_node(op_type, ["data", AXES], [_RESULT], keepdims=manner.keepdims)
    return helper.make_node(op_type, ["data"], [_RESULT], keepdims=manner.keepdims, axes=_SOME_AXES)


@lru_cache(_MOST_FORMS)
def _form(book: RuleBook, op_type: str, manner: Manner, opset: int) -> Form | None:
    """The expansion of a node as a form; None if it cannot be expanded or leaves nothing to recognize."""
    node, rule = _reduction(op_type, manner, opset), book.find(op_type, manner.element_type)
    if rule is None:
        return None
    try:
        expanded = legalize(
            _model_of(node, opset, manner.element_type),
            Target(None, frozenset({op_type})),
            rules=book,
            ir_version="keep",
        ).model.graph
    except (ConversionError, RuleError):
        return None
    if not any(each.op_type.startswith("Reduce") for each in expanded.node):
        return None
    values: dict[str, Expression] = {name: Variable(name) for name in node.input}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in expanded.initializer}
    for each in expanded.node:
        values[each.output[0]] = _application(each, values, constants, opset)
    types = frozenset({manner.element_type})
    return Form(op_type, rule.name, ("data",), values[_RESULT], {"keepdims": manner.keepdims}, element_types=types)


def _model_of(node: NodeProto, opset: int, element_type: int) -> ModelProto:
    """A model of one node."""
    graph = GraphProto(name="form", node=[node])
    for name in node.input:
        graph.input.add(name=name).type.tensor_type.elem_type = TensorProto.INT64 if name == AXES else element_type
    graph.output.add(name=_RESULT).type.tensor_type.elem_type = element_type
    model = ModelProto(ir_version=10, graph=graph)
    model.opset_import.add(version=opset)
    return model


# Expanded nodes as an expression


def _application(
    node: NodeProto, values: Mapping[str, Expression], constants: Mapping[str, Array], opset: int
) -> Application:
    """The expression of a node, from those of its inputs."""
    attributes = attributes_of(node, opset)
    attributes.pop(NOOP, None)
    if tuple(attributes.get(AXES, ())) == _SOME_AXES:
        attributes[AXES] = Variable(AXES)
    operands: list[Expression] = []
    for at, name in enumerate(node.input):
        if name not in constants:
            operands.append(values[name])
        elif constants[name].dtype == np.int64 and tuple(constants[name].reshape(-1).tolist()) == _SOME_AXES:
            operands.append(Variable(AXES))
        else:
            operands.append(_constant(constants[name], is_exponent=node.op_type == "Pow" and at == 1))
    return Application(node.op_type, attributes, tuple(operands))


def _constant(value: Array, *, is_exponent: bool) -> Expression:
    """A constant as an expression: an exponent of any type, or the exact value."""
    return Literal(float(value.reshape(-1)[0])) if value.size == 1 and is_exponent else Exact(value)
