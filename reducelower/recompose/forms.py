"""The forms that are looked for, and what each looks like in a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.api import legalize
from reducelower.errors import ConversionError
from reducelower.model.schemas import element_type_name, schema, taken_types
from reducelower.options import Target
from reducelower.rulebook import RuleBook, RuleError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reducelower.rulebook import Rule

__all__ = ["AXES", "DATA", "Form", "Manner", "Pattern", "pattern_of", "takes_count"]

DATA, AXES, _REDUCED = "data", "axes", "reduced"

_AXES_ARE_INPUT = 18
"""Opset version at which every Reduce operator takes its axes as an input."""


@dataclass(frozen=True, eq=False)
class Form:
    """One way to write one operator for one element type: a rule, and the book to expand with.

    Attributes:
        op_type: the composite operator.
        rule: its body.
        book: a rule book in which that rule answers.
        by_hand: whether the form is none of a rule book, so that it may fail where the axes are unusual.
    """

    op_type: str
    rule: Rule
    book: RuleBook
    by_hand: bool


@dataclass(frozen=True)
class Manner:
    """How a composite node would reduce, where it would stand.

    Attributes:
        opset: opset version of the graph.
        element_type: that of the data (`TensorProto.DataType`).
        keepdims, noop: its attributes.
        has_axes: whether it names axes at all.
        axes: the axes where they are constant, else None.
        count: how many elements one output is made of, where the form states it.
    """

    opset: int
    element_type: int
    keepdims: int
    noop: int
    has_axes: bool
    axes: tuple[int, ...] | None = None
    count: int | None = None

    @property
    def takes_axes_as_input(self) -> bool:
        """Whether a composite operator has its axes as an input here."""
        return self.opset >= _AXES_ARE_INPUT


@dataclass(frozen=True)
class Pattern:
    """The nodes that stand for one composite node that reads `DATA` and perhaps `AXES`.

    Attributes:
        last: the node that yields the result.
        producers: the node that yields a value, by its name.
        constants: values that are constant, by name.
    """

    last: NodeProto
    producers: Mapping[str, NodeProto] = field(repr=False)
    constants: Mapping[str, NDArray[np.generic]] = field(repr=False)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len({id(node) for node in self.producers.values()})


def takes_count(function: FunctionProto) -> bool:
    """Whether a body holds the number of elements that one output is made of."""
    return "count" in function.attribute


def pattern_of(form: Form, manner: Manner) -> Pattern | None:
    """What a form looks like; None where the operator or the form does not exist in this manner."""
    if not _is_legal(form.op_type, manner) or not _holds(form, manner):
        return None
    try:
        expanded = legalize(
            _lone_node(form.op_type, manner),
            Target(None, frozenset({form.op_type})),
            rules=_book(form, manner),
            ir_version="keep",
        )
    except (ConversionError, RuleError):
        return None
    graph = expanded.model.graph
    producers = {name: node for node in graph.node for name in node.output}
    last = producers.get(_REDUCED)
    if last is None or not any(node.op_type.startswith("Reduce") for node in graph.node):
        return None
    return Pattern(last, producers, {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})


def _is_legal(op_type: str, manner: Manner) -> bool:
    """Whether the opset version has the operator for the element type, and can say how it reduces."""
    found = schema(op_type, manner.opset)
    if found is None or f"tensor({element_type_name(manner.element_type)})" not in taken_types(found, found.inputs[0]):
        return False
    return manner.takes_axes_as_input or (not manner.noop and (manner.axes is not None or not manner.has_axes))


def _holds(form: Form, manner: Manner) -> bool:
    """Whether a form is right for this manner of reducing."""
    given = {attribute.name: attribute.i for attribute in form.rule.function.attribute_proto}
    if given.get("keepdims", manner.keepdims) != manner.keepdims or takes_count(form.rule.function) != (
        manner.count is not None
    ):
        return False
    return not form.by_hand or (not manner.noop and (bool(manner.axes) or not manner.has_axes))


def _lone_node(op_type: str, manner: Manner) -> ModelProto:
    """A model of one node of a composite operator."""
    node = NodeProto(op_type=op_type, input=[DATA], output=[_REDUCED])
    node.attribute.append(helper.make_attribute("keepdims", manner.keepdims))
    graph = GraphProto(name="form")
    graph.input.add(name=DATA).type.tensor_type.elem_type = manner.element_type
    graph.output.add(name=_REDUCED).type.tensor_type.elem_type = manner.element_type
    if manner.takes_axes_as_input:
        node.attribute.append(helper.make_attribute("noop_with_empty_axes", manner.noop))
        if manner.has_axes:
            node.input.append(AXES)
            graph.input.add(name=AXES).type.tensor_type.elem_type = TensorProto.INT64
    elif manner.axes is not None:
        node.attribute.append(helper.make_attribute("axes", manner.axes))
    graph.node.append(node)
    model = ModelProto(ir_version=10, graph=graph)
    model.opset_import.add(version=manner.opset)
    return model


def _book(form: Form, manner: Manner) -> RuleBook:
    """The book to expand with: of a form that states a count, one in which its rule has that count."""
    if manner.count is None:
        return form.book
    function = FunctionProto()
    function.CopyFrom(form.rule.function)
    function.attribute.remove("count")
    value = helper.make_tensor("count", manner.element_type, (), [manner.count])
    function.attribute_proto.append(helper.make_attribute("count", value))
    return RuleBook(form.book.name, functions=[function], trusted=True)
