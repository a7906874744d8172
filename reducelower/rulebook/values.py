"""The values of a body while it is written for a node: their names, types, the constants among them, and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import copied, make_attribute, refuse_reference
from reducelower.model.numbers import Array
from reducelower.model.schemas import opset_of, parse_element_type, schema
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import BINDINGS, bound, is_stashed, of_nothing
from reducelower.rulebook.numbers import NUMBERS

__all__ = ["KNOWN_NAMES", "BodyValues", "Frame", "goal_of_cast", "types_of_outputs"]

Type: TypeAlias = "Callable[[], int | None]"
"""The element type of a value, computed only if the body depends on it."""


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
        same: names that are aliases of other values.
        types: functions that find the element types of values.
        known_inputs: inputs whose constant values the body computes with.
        unknown_rank: an input whose unknown rank the body depends on.
    """

    def __init__(self, function: FunctionProto, asked: Asked, known_inputs: set[str]) -> None:
        self.function = function
        self.asked = asked
        self.opset = opset_of(function)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.same: dict[str, str] = {}
        self._taken = {*function.input, *function.output, "first", "second"}  # by which `asked` knows operands as well
        self._numbers: dict[str, int] = {}
        self.known_inputs = known_inputs
        self.types: dict[str, Type] = {
            name: partial(asked.scope.element_type, asked.operand(name))
            for name in function.input
            if asked.operand(name)
        }
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
        self.types[name] = partial(helper.np_dtype_to_tensor_dtype, value.dtype)
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


def goal_of_cast(node: NodeProto, types: Mapping[str, Type]) -> int | None:
    """The element type that a Cast or CastLike gives; None if unknown."""
    if node.op_type == "CastLike":
        return _type(types, node.input[1])
    goals = (attribute for attribute in node.attribute if attribute.name == "to" and not attribute.ref_attr_name)
    return next((attribute.i for attribute in goals), None)


def types_of_outputs(node: NodeProto, opset: int, types: Mapping[str, Type]) -> Iterator[tuple[str, Type]]:
    """The element types of a node's outputs, as far as its schema ties them to those of its inputs."""
    operator = schema(node.op_type, opset)
    if operator is None:
        return
    input_of = {formal.type_str: name for formal, name in zip(operator.inputs, node.input, strict=False) if name}
    for formal, name in zip(operator.outputs, node.output, strict=False):
        if node.op_type in ("Cast", "CastLike"):
            yield name, partial(goal_of_cast, node, types)
        elif formal.type_str in input_of:
            yield name, partial(_type, types, input_of[formal.type_str])
        elif len(formal.types) == 1 and (only := next(iter(formal.types))).startswith("tensor("):
            yield name, partial(parse_element_type, only)


def _type(types: Mapping[str, Type], name: str) -> int | None:
    return types[name]() if name in types else None
