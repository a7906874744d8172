"""A node that a rule may replace, as the rule's guard asks about it: by the rule's own names for operands."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, zip_longest
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, refuse_reference
from reducelower.model.numbers import Array
from reducelower.model.schemas import schema_in_force
from reducelower.scope.body import AnyScope

__all__ = ["Asked", "Tried", "with_all"]

_CORRECT = "correct the rule: it can ask about what the node reads, and not about what its body computes"


class Asked:
    """A node that a rule's guard asks about: its operands and attributes, by the names that the rule gives them.

    Attributes:
        operands: the operand for each input of the rule, and for ``first`` and ``second``; empty if the node lacks it.
        terms: which terms of guards hold, by their text; all rules that give the same names can use them.
    """

    def __init__(self, function: FunctionProto, node: NodeProto, scope: AnyScope, opset: int) -> None:
        self.function = function
        self.node = node
        self.scope = scope
        self.opset = opset
        self.terms: dict[str, bool] = {}
        first, second, *_ = *node.input, "", ""
        named = dict(zip_longest(function.input, node.input[: len(function.input)], fillvalue=""))
        self.operands = {"first": first, "second": second, **named}
        self._output_places = dict(zip(function.output, count()))

    def within(self, names: Mapping[str, str]) -> Asked:
        """The same node for a part of a body with its own names for inputs of the rule, for none, or for other values.

        Guards cannot ask about the other values, which the body computes.
        """
        inner = copy(self)
        inner.terms = {}
        inner.operands = {name: operand for name, operand in self.operands.items() if name not in names}
        for name, name_here in names.items():
            if not name_here or self.is_input(name_here):
                inner.operands[name] = self.operands.get(name_here, "")
        return inner

    def is_input(self, name: str) -> bool:
        """Whether a name is that of an input of the rule, or ``first`` or ``second``."""
        return name in self.operands

    def operand(self, name: str) -> str:
        """The operand for an input of the rule; empty if the node leaves it out.

        Raises:
            RefusedError: the name is no input.
        """
        if name not in self.operands:
            raise RefusedError(f"a rule for {self.node.op_type} asks about {name!r}, which is no input", _CORRECT)
        return self.operands[name]

    def output(self, name: str) -> str:
        """The value for an output of the rule; empty if the node does not name it."""
        place = self._output_places[name]
        return self.node.output[place] if place < len(self.node.output) else ""

    @cached_property
    def defaults(self) -> Mapping[str, AttributeProto]:
        """The attributes that have a default, by the operator's schema; by the rule if there is no schema."""
        operator = schema_in_force(self.node.op_type, self.opset, self.node.domain)
        if operator is None:
            return {attribute.name: attribute for attribute in self.function.attribute_proto}
        return {name: each.default_value for name, each in operator.attributes.items() if each.default_value.type}

    def attribute(self, name: str) -> Any:
        """The value of an attribute, by default that of the schema; None if there is none.

        Raises:
            RefusedError: it is an attribute of the enclosing function, whose value differs between calls.
        """
        stated = attribute_of(self.node, name)
        if stated is not None:
            refuse_reference(stated)
        stated = self.defaults.get(name) if stated is None else stated
        value = None if stated is None else helper.get_attribute_value(stated)
        return value.decode() if isinstance(value, bytes) else value

    def value(self, name: str) -> Array | None:
        """The value of an input, if that is constant, or of an attribute."""
        operand = self.operands.get(name)
        if operand is not None:
            return self.scope.ask("constant", operand) if operand else None
        attribute = self.attribute(name)
        return None if attribute is None else np.asarray(attribute)


@dataclass
class Tried:
    """A node for which rules are tried, and what their guards have asked about it so far.

    Attributes:
        opset: the opset version that the node is written for.
        asked: the node as rules name it, by their names for inputs and outputs.
    """

    node: NodeProto
    scope: AnyScope
    opset: int
    asked: dict[tuple[tuple[str, ...], tuple[str, ...]], Asked] = field(default_factory=dict)


def with_all(function: FunctionProto, node: NodeProto) -> FunctionProto:
    """A rule with as many inputs and outputs as the node: more follow the last one and are named after it."""
    more_in, more_out = len(node.input) - len(function.input), len(node.output) - len(function.output)
    if max(more_in, more_out) <= 0 or not (function.input or more_in <= 0):
        return function
    extended = FunctionProto()
    extended.CopyFrom(function)
    extended.input.extend(f"{function.input[-1]}_and_{place}" for place in range(more_in))
    extended.output.extend(f"{function.output[-1]}_and_{place}" for place in range(more_out))
    return extended
