"""The values of a body while it is written for a node: their names, types, the constants among them, and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import copied, make_attribute, refuse_reference
from reducelower.model.graph import subgraphs
from reducelower.model.numbers import Array
from reducelower.model.schemas import opset_of, parse_element_type, schema
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import BINDINGS, bound, is_stashed, of_nothing
from reducelower.rulebook.numbers import NUMBERS

__all__ = ["KNOWN_NAMES", "BodyValues", "Frame"]


@dataclass
class Frame:
    """A function while it is written: the meaning of its names, and its attributes."""

    names: dict[str, str]
    attributes: Mapping[str, AttributeProto]


class BodyValues:
    """The values of the body of one rule for one node.

    Attributes:
        function: the rule.
        asked: the node.
        nodes: the nodes as written so far.
        constants: folded values by name.
        made_by: the node that computes a value, by its name, also in subgraphs.
        input_types: the element types of inputs of subgraphs.
        known_inputs: inputs whose constant values the body computes with.
        unknown_rank: an input whose unknown rank the body depends on.
    """

    def __init__(self, function: FunctionProto, asked: Asked, known_inputs: set[str]) -> None:
        self.function = function
        self.asked = asked
        self.opset = opset_of(function)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.made_by: dict[str, NodeProto] = {}
        self.input_types: dict[str, int] = {}
        self._taken = {*function.input, *function.output, "first", "second"}  # by which `asked` knows operands as well
        self._numbers: dict[str, int] = {}
        self.known_inputs = known_inputs
        self.unknown_rank = ""

    def read(self, name: str, frame: Frame, *, as_written: bool = False) -> str:
        """The name of a value; the name of an attribute is a value too, unless another value has it."""
        if name in frame.names or not name:
            return frame.names.get(name, "")
        attribute = frame.attributes.get(name)
        if attribute is None:
            return self.constant(name, self._named(name))
        refuse_reference(attribute)
        value = _as_array(attribute)
        if value is None:
            raise self._unknown(name)
        if value.dtype.kind == "f" and value.ndim <= 1 and not as_written:
            return self.constant(f"{name}_typed", value.astype(helper.tensor_dtype_to_np_dtype(self._own_type())))
        return self.constant(name, value)

    def _named(self, name: str) -> Array:
        """The value of a name that neither the body nor an attribute has."""
        if name in BINDINGS:
            return bound(name, self._own_type())
        if name == "of_nothing":
            return of_nothing(self.asked.node.op_type, self._own_type())
        if name in NUMBERS:
            return np.array(NUMBERS[name](self.asked), np.int64)
        raise self._unknown(name)

    def _unknown(self, name: str) -> RefusedError:
        return RefusedError(f"nothing gives {name!r} in the rule for {self.function.name}", "correct the rule")

    def _own_type(self) -> int:
        """The element type to compute in: that of the first input, or of ``stash_type`` if the rule casts to it.

        Raises:
            RefusedError: it is not known.
        """
        if is_stashed(self.function):
            return int(self.asked.attribute("stash_type"))
        return self.asked.scope.needed_element_type(self.asked.node.input[0])

    def constant(self, name: str, value: Array) -> str:
        """The name of a constant of the body."""
        existing = self.constants.get(name)
        is_other = existing is not None and (existing.dtype != value.dtype or not np.array_equal(existing, value))
        if is_other or (existing is None and name in self._taken):
            name = self.free(name)
        self.constants[name] = np.asarray(value)
        return name

    def free(self, name: str) -> str:
        """A name that nothing in the body has yet."""
        candidate = name
        while candidate in self._taken or candidate in self.constants:
            self._numbers[name] = self._numbers.get(name, 1) + 1
            candidate = f"{name}_{self._numbers[name]}"
        self._taken.add(candidate)
        return candidate

    def value(self, name: str) -> Array | None:
        """The value of a constant, or of an input that the guard found constant."""
        if name in self.known_inputs:
            return self.asked.value(name)
        return self.constants.get(name)

    def element_type(self, name: str) -> int | None:
        """The element type of a value; None if it is unknown."""
        if name in self.constants:
            return helper.np_dtype_to_tensor_dtype(self.constants[name].dtype)
        if self.asked.is_input(name):
            operand = self.asked.operand(name)
            return self.asked.scope.element_type(operand) if operand else None
        node = self.made_by.get(name)
        return self.input_types.get(name) if node is None else self._type_of_output(node, name)

    def _type_of_output(self, node: NodeProto, name: str) -> int | None:
        """The element type of a node's output, as far as its schema ties it to that of an input."""
        if node.op_type in ("Cast", "CastLike"):
            return self.goal_of_cast(node)
        place = list(node.output).index(name)
        if node.op_type == "If":
            results = (self.element_type(graph.output[place].name) for _, _, graph in subgraphs(node))
            return next(filter(None, results), None)
        operator = schema(node.op_type, self.opset)
        if operator is None or place >= len(operator.outputs):
            return None
        formal = operator.outputs[place]
        pairs = zip(operator.inputs, node.input, strict=False)
        tied = [read for other, read in pairs if read and other.type_str == formal.type_str]
        only = next(iter(formal.types)) if len(formal.types) == 1 else ""
        if tied or not only.startswith("tensor("):
            return self.element_type(tied[-1]) if tied else None
        return parse_element_type(only)

    def goal_of_cast(self, node: NodeProto) -> int | None:
        """The element type that a Cast or CastLike gives; None if unknown."""
        if node.op_type == "CastLike":
            return self.element_type(node.input[1])
        goals = (attribute for attribute in node.attribute if attribute.name == "to" and not attribute.ref_attr_name)
        return next((attribute.i for attribute in goals), None)

    def yields(self, name: str, frame: Frame) -> str:
        """The name in the body for an output of a node."""
        if not name:
            return ""
        if name not in frame.names:
            frame.names[name] = self.free(name)
        return frame.names[name]

    def resolved(self, node: NodeProto, frame: Frame) -> list[AttributeProto]:
        """The attributes of a node, with references replaced by an attribute, an element type, or a known value."""
        resolved = (self._referred(each, frame) if each.ref_attr_name else copied(each) for each in node.attribute)
        return [attribute for attribute in resolved if attribute is not None]

    def _referred(self, attribute: AttributeProto, frame: Frame) -> AttributeProto | None:
        """What a reference stands for; None for an attribute that the node lacks."""
        name, kind = attribute.ref_attr_name, attribute.type
        referred = frame.attributes.get(name)
        if referred is not None and (kind == referred.type or not (name in frame.names or kind == _TENSOR)):
            if kind == _FLOAT and not referred.ref_attr_name:
                return helper.make_attribute(attribute.name, float(helper.get_attribute_value(referred)))
            return copied(referred, attribute.name)
        if name in frame.names or referred is not None:
            value = self.value(self.read(name, frame))
        elif name in KNOWN_NAMES:
            value = self._named(name)
        else:
            return None
        if value is None:
            if self.unknown_rank:
                self.asked.scope.needed_rank(self.unknown_rank)
            raise RefusedError(f"{name} of the rule for {self.function.name} is not known here", "correct the rule")
        if name in BINDINGS:
            return make_attribute(attribute.name, numpy_helper.from_array(value))
        if kind == _TENSOR:
            return make_attribute(attribute.name, numpy_helper.from_array(value.reshape(1)))
        if kind in (AttributeProto.INT, _FLOAT):
            number = value.reshape(-1).tolist()[0]
            return make_attribute(attribute.name, float(number) if kind == _FLOAT else number)
        numbers = value.reshape(-1) if kind == AttributeProto.INTS else value
        return make_attribute(attribute.name, numbers.tolist())


_FLOAT, _TENSOR = AttributeProto.FLOAT, AttributeProto.TENSOR

KNOWN_NAMES = frozenset({*BINDINGS, *NUMBERS, "of_nothing"})
"""Names of values that a body has without computing them."""


def _as_array(attribute: AttributeProto) -> Array | None:
    """The value of an attribute as an array; None for a string or a graph."""
    match attribute.type:
        case AttributeProto.TENSOR:
            return numpy_helper.to_array(attribute.t)
        case AttributeProto.INT | AttributeProto.INTS:
            return np.array(helper.get_attribute_value(attribute), np.int64)
        case AttributeProto.FLOAT | AttributeProto.FLOATS:
            return np.array(helper.get_attribute_value(attribute), np.float32)
    return None
