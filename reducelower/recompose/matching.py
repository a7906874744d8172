"""Finding a pattern in a graph: from the node that yields the result back to the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, helper

from reducelower.model.graph import read_by
from reducelower.model.schemas import DEFAULT_DOMAINS, schema
from reducelower.recompose.forms import AXES, DATA, Pattern
from reducelower.scope.graph import GraphScope

__all__ = ["COMMUTATIVE", "Match", "Surroundings", "attributes_of", "constant_axes", "find"]

COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min"})


class Surroundings:
    """Who yields and who reads each value of one graph or function body."""

    def __init__(self, holder: GraphProto | FunctionProto) -> None:
        """Look through the nodes of a graph or function body, and through what they hold."""
        self.nodes: Sequence[NodeProto] = holder.node
        self.producers: dict[str, int] = {}
        self.readers: dict[str, set[int]] = {}
        for index, node in enumerate(holder.node):
            self.producers.update((name, index) for name in node.output if name)
            for name in read_by(node):
                self.readers.setdefault(name, set()).add(index)
        self.named = set(_names_outside_nodes(holder))
        """Values that the graph yields, or that an annotation speaks of."""

    def is_inside(self, region: set[int], last: int) -> bool:
        """Whether nothing but the last node of a region is known outside of it."""
        for index in region - {last}:
            for name in self.nodes[index].output:
                if name in self.named or not self.readers.get(name, set()) <= region:
                    return False
        return True


def _names_outside_nodes(holder: GraphProto | FunctionProto) -> Iterator[str]:
    if isinstance(holder, FunctionProto):
        yield from holder.output
        return
    yield from (value.name for value in holder.output)
    for annotation in holder.quantization_annotation:
        yield annotation.tensor_name
        yield from (entry.value for entry in annotation.quant_parameter_tensor_names)


@dataclass
class Match:
    """Where a pattern was found.

    Attributes:
        region: positions of the nodes.
        values: value of the graph for each value of the pattern.
        constants: values of the graph that are what the pattern asks for.
    """

    region: set[int] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)

    def copy(self) -> Match:
        """A match that can go wrong without this one."""
        return Match(set(self.region), dict(self.values), set(self.constants))

    def become(self, other: Match) -> None:
        """Take over what another attempt found."""
        self.region, self.values, self.constants = other.region, other.values, other.constants


def find(pattern: Pattern, last: int, surroundings: Surroundings, scope: GraphScope) -> Match | None:
    """Match a pattern whose result the node at a position yields.

    Two nodes of a pattern that compute the same may be one node of the graph. Everything in between is read by the
    matched nodes only.
    """
    search = _Search(pattern, surroundings, scope)
    match = Match()
    if not search.node(pattern.last, last, match) or DATA not in match.values:
        return None
    outside = {surroundings.producers.get(match.values[name]) for name in (DATA, AXES) if name in match.values}
    if match.region & outside or not surroundings.is_inside(match.region, last):
        return None
    return match


def constant_axes(name: str, scope: GraphScope) -> tuple[int, ...] | None:
    """Axes that are an input, where they are constant."""
    value = scope.constant(name)
    if value is None or value.dtype != np.int64 or value.ndim > 1:
        return None
    return tuple(value.reshape(-1).tolist())


@dataclass(frozen=True)
class _Search:
    pattern: Pattern
    surroundings: Surroundings
    scope: GraphScope

    def node(self, wanted: NodeProto, index: int, match: Match) -> bool:
        """Whether the node at a position is the one wanted, and what it reads is what that reads."""
        node = self.surroundings.nodes[index]
        if node.op_type != wanted.op_type or node.domain not in DEFAULT_DOMAINS or len(node.output) != 1:
            return False
        if not self._same_attributes(wanted, node):
            return False
        match.region.add(index)
        match.values[wanted.output[0]] = node.output[0]
        names, given = _trimmed(wanted.input), _trimmed(node.input)
        if len(names) != len(given):
            return False
        if node.op_type in COMMUTATIVE and len(given) == 2 and given[0] != given[1]:
            attempt = match.copy()
            if self._values(wanted, given, attempt):
                match.become(attempt)
                return True
            given.reverse()
        return self._values(wanted, given, match)

    def _values(self, reader: NodeProto, names: Sequence[str], match: Match) -> bool:
        return all(self._value(reader, at, name, match) for at, name in enumerate(names))

    def _value(self, reader: NodeProto, at: int, name: str, match: Match) -> bool:
        """Whether a value is what the pattern's node reads as its input number `at`."""
        wanted = reader.input[at]
        if not wanted or not name:
            return wanted == name
        known = match.values.get(wanted)
        if known is not None:
            return known == name or (wanted == AXES and self._same_axes(known, name))
        if wanted in self.pattern.constants:
            if not self._is_constant(reader, at, name):
                return False
            match.constants.add(name)
            return True
        if wanted in self.pattern.producers:
            index = self.surroundings.producers.get(name)
            return index is not None and self.node(self.pattern.producers[wanted], index, match)
        match.values[wanted] = name
        return True

    def _same_axes(self, name: str, other: str) -> bool:
        axes = constant_axes(name, self.scope)
        return axes is not None and axes == constant_axes(other, self.scope)

    def _is_constant(self, reader: NodeProto, at: int, name: str) -> bool:
        """Whether a value is constant and the same as the pattern's: an exponent in any type, the rest in its own."""
        wanted, found = self.pattern.constants[reader.input[at]], self.scope.constant(name)
        if found is None:
            return False
        if reader.op_type == "Pow" and at == 1 and found.size == 1:
            return self._is_scalar(found, name) and bool(found.reshape(()) == wanted.reshape(()))
        if found.dtype != wanted.dtype or found.size != wanted.size or found.tobytes() != wanted.tobytes():
            return False
        return found.shape == wanted.shape or (wanted.ndim == 0 and self._is_scalar(found, name))

    def _is_scalar(self, value: np.ndarray[Any, Any], name: str) -> bool:
        """Whether a value of one element adds no dimension to what it is combined with."""
        if value.ndim == 0:
            return True
        ranks = [
            self.scope.rank(other)
            for index in self.surroundings.readers.get(name, ())
            for other in self.surroundings.nodes[index].input
            if other != name
        ]
        return all(rank is not None and rank >= value.ndim for rank in ranks) and bool(ranks)

    def _same_attributes(self, wanted: NodeProto, node: NodeProto) -> bool:
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return False
        return attributes_of(wanted, self.scope.opset) == attributes_of(node, self.scope.opset)


def attributes_of(node: NodeProto, opset: int) -> dict[str, Any]:
    """The attributes of a node, with the schema's defaults for those it does not state."""
    values = dict(_defaults(node.op_type, opset))
    values.update((attribute.name, helper.get_attribute_value(attribute)) for attribute in node.attribute)
    return values


@cache
def _defaults(op_type: str, opset: int) -> Mapping[str, Any]:
    known = schema(op_type, opset)
    return {
        name: helper.get_attribute_value(attribute.default_value)
        for name, attribute in (known.attributes.items() if known is not None else ())
        if attribute.default_value.type
    }


def _trimmed(names: Sequence[str]) -> list[str]:
    """Names of inputs without absent ones at the end."""
    trimmed = list(names)
    while trimmed and not trimmed[-1]:
        trimmed.pop()
    return trimmed
