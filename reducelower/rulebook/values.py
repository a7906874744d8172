"""The values of a body while it is written for a node: their names, the constants among them, and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import add_named, make_attribute, refuse_reference
from reducelower.model.numbers import Array
from reducelower.model.schemas import opset_of
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import AXES, BINDINGS, is_stashed
from reducelower.rulebook.named import TYPES, as_value, bound, of_nothing
from reducelower.rulebook.simplify import Simplified, Type

__all__ = ["BodyValues", "Frame"]


@dataclass
class Frame:
    """A function while it is written: the meaning of its names, and its attributes."""

    names: dict[str, str]
    attributes: Mapping[str, AttributeProto]
    header: Mapping[str, None] = field(default_factory=dict)


class BodyValues:
    """The values of the body of one rule for one node.

    Attributes:
        function: the rule.
        asked: the node.
        done: the body as written so far.
        types: functions that find the element types of values.
        known_inputs: inputs whose constant values the body computes with.
        unknown_rank: an input whose unknown rank the body depends on.
    """

    def __init__(self, function: FunctionProto, asked: Asked, known_inputs: set[str]) -> None:
        self.function = function
        self.asked = asked
        self.opset = opset_of(function)
        self.done = Simplified()
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
        if name in frame.header and name not in frame.attributes:
            if name in BINDINGS:
                return self.constant(name, bound(name, self._own_type()))
            if name in AXES:
                axis = self.asked.attribute("axis")
                rank = partial(self.asked.scope.needed_rank, self.asked.node.input[0])
                return self.constant(name, np.array(AXES[name].of(axis, rank), np.int64))
        if name == "of_nothing":
            return self.constant(name, of_nothing(self.asked.node.op_type, self._own_type()))
        if name == "target":
            return self.constant(name, np.array(self.asked.scope.target_opset, np.int64))
        attribute = frame.attributes.get(name)
        if attribute is not None:
            refuse_reference(attribute)
        value = None if attribute is None else as_value(attribute)
        if value is None:
            raise RefusedError(f"nothing gives {name!r} in the rule for {self.function.name}", "correct the rule")
        if value.dtype.kind == "f" and value.ndim <= 1 and not as_written:
            return self.constant(f"{name}_typed", value.astype(helper.tensor_dtype_to_np_dtype(self._own_type())))
        return self.constant(name, value)

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
        existing = self.done.constants.get(name)
        is_other = existing is not None and (existing.dtype != value.dtype or not np.array_equal(existing, value))
        if is_other or (existing is None and name in self._taken):
            name = self.free(name)
        self.done.constants[name] = np.asarray(value)
        self.types[name] = partial(helper.np_dtype_to_tensor_dtype, value.dtype)
        return name

    def free(self, name: str) -> str:
        """A name that nothing in the body has yet."""
        candidate = name
        while candidate in self._taken or candidate in self.done.constants:
            self._numbers[name] = self._numbers.get(name, 1) + 1
            candidate = f"{name}_{self._numbers[name]}"
        self._taken.add(candidate)
        return candidate

    def value(self, name: str) -> Array | None:
        """The value of a constant, or of an input that the guard found constant."""
        if name in self.known_inputs:
            return self.asked.value(name)
        return self.done.constants.get(name)

    def yields(self, name: str, frame: Frame) -> str:
        """The name in the body for an output of a node."""
        if not name:
            return ""
        if name not in frame.names:
            frame.names[name] = self.free(name)
        return frame.names[name]

    def resolved(self, node: NodeProto, frame: Frame) -> list[AttributeProto]:
        """The attributes of a node, with references replaced by an attribute, an element type, or a known value."""
        resolved = []
        for attribute in node.attribute:
            name = attribute.ref_attr_name
            if not name:
                copy = AttributeProto()
                copy.CopyFrom(attribute)
                resolved.append(copy)
                continue
            holder = NodeProto()
            referred = frame.attributes.get(name)
            if referred is not None and referred.type == attribute.type:
                add_named(holder, referred, attribute.name)
            elif referred is None and name in frame.header and name in {*BINDINGS, *AXES}:
                bound_value = self.done.constants[self.read(name, frame)]
                value = numpy_helper.from_array(bound_value) if name in BINDINGS else bound_value.tolist()
                holder.attribute.append(make_attribute(attribute.name, value))
            elif attribute.type == AttributeProto.TENSOR:
                tensor = numpy_helper.from_array(np.reshape(self._needed(self.read(name, frame), attribute), 1))
                holder.attribute.append(helper.make_attribute(attribute.name, tensor))
            elif name in frame.names:
                value = self._needed(frame.names[name], attribute)
                add_named(holder, make_attribute(name, value), attribute.name)
            elif name in TYPES:
                holder.attribute.append(helper.make_attribute(attribute.name, TYPES[name](self.asked)))
            elif referred is not None:
                add_named(holder, referred, attribute.name)
                if attribute.type == AttributeProto.FLOAT and not referred.ref_attr_name:
                    number = float(helper.get_attribute_value(referred))
                    holder.attribute[0].CopyFrom(helper.make_attribute(attribute.name, number))
            resolved += holder.attribute
        return resolved

    def _needed(self, name: str, attribute: AttributeProto) -> Any:
        value = self.value(name)
        if value is None:
            if self.unknown_rank:
                self.asked.scope.needed_rank(self.unknown_rank)
            raise RefusedError(f"{name} of the rule for {self.function.name} is not known here", "correct the rule")
        if attribute.type == AttributeProto.TENSOR:
            return value
        plain: Any = value.tolist()
        if attribute.type in (AttributeProto.INT, AttributeProto.FLOAT):
            number = value.reshape(-1).tolist()[0]
            return float(number) if attribute.type == AttributeProto.FLOAT else number
        return [plain] if attribute.type == AttributeProto.INTS and not isinstance(plain, list) else plain
