"""A node that the guard of a rule is asked about, with the names that the rule gives to operands and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import count, zip_longest
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, refuse_reference
from reducelower.model.numbers import Array
from reducelower.model.schemas import schema_in_force
from reducelower.scope.scope import Scope

__all__ = ["Asked"]

_CORRECT = "correct the rule: it can ask about what the node reads, and not about what its body computes"


class Asked:
    """A node that a rule's guard is asked about: its operands and attributes, by the names that the rule gives them.

    Attributes:
        terms: which terms of guards hold, by their text; of use to all rules that give the same names.
    """

    def __init__(self, function: FunctionProto, node: NodeProto, scope: Scope, opset: int) -> None:
        self.function = function
        self.node = node
        self.scope = scope
        self.opset = opset
        self.terms: dict[str, bool] = {}
        first, second, *_ = *node.input, "", ""
        named = dict(zip_longest(function.input, node.input[: len(function.input)], fillvalue=""))
        self._operands = {"first": first, "second": second, **named}
        self._yielded = dict(zip(function.output, count()))

    def within(self, names: Mapping[str, str]) -> Asked:
        """The same node asked about where a body has names of its own: for inputs of the rule, for none, or for others.

        About others, which the body computes, nothing can be asked.
        """
        inner = copy(self)
        inner.terms = {}
        inner._operands = {name: operand for name, operand in self._operands.items() if name not in names}
        for name, meant in names.items():
            if not meant or self.is_input(meant):
                inner._operands[name] = self._operands.get(meant, "")
        return inner

    def is_input(self, name: str) -> bool:
        """Whether a name is that of an input of the rule, or ``first`` or ``second``."""
        return name in self._operands

    def operand(self, name: str) -> str:
        """The operand for an input of the rule; empty if the node leaves it out.

        Raises:
            RefusedError: it is no input.
        """
        if name not in self._operands:
            raise RefusedError(f"a rule for {self.node.op_type} asks about {name!r}, which is no input", _CORRECT)
        return self._operands[name]

    def output(self, name: str) -> str:
        """The value for an output of the rule; empty if the node does not name it."""
        place = self._yielded[name]
        return self.node.output[place] if place < len(self.node.output) else ""

    def default(self, name: str) -> AttributeProto | None:
        """The default of an attribute, by the operator's schema, or else by the rule; None if it has none."""
        found = schema_in_force(self.node.op_type, self.opset, self.node.domain)
        if found is None:
            return next((said for said in self.function.attribute_proto if said.name == name), None)
        known = found.attributes[name].default_value if name in found.attributes else None
        return known if known is not None and known.type else None

    def defaults(self) -> dict[str, AttributeProto]:
        """The attributes that have a default, by the operator's schema."""
        found = schema_in_force(self.node.op_type, self.opset, self.node.domain)
        known = {} if found is None else found.attributes
        return {name: said.default_value for name, said in known.items() if said.default_value.type}

    def attribute(self, name: str) -> Any:
        """The value of an attribute, by default that of the schema; None if there is none.

        Raises:
            RefusedError: it is an attribute of the enclosing function, whose value differs between calls.
        """
        given = attribute_of(self.node, name)
        if given is not None:
            refuse_reference(given)
        given = self.default(name) if given is None else given
        value = None if given is None else helper.get_attribute_value(given)
        return value.decode() if isinstance(value, bytes) else value

    def value(self, name: str) -> Array | None:
        """The value of an input, if that is constant, or of an attribute."""
        operand = self._operands.get(name)
        if operand is not None:
            return self.scope.constant(operand) if operand else None
        found = self.attribute(name)
        return None if found is None else np.asarray(found)
