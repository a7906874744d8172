"""Finding an expression in a graph: from the value that a form yields back to the values it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.recompose.expressions import AnyOf, Application, Expression, Literal, Variable, is_near
from reducelower.recompose.matching import COMMUTATIVE, Surroundings, attributes_of, constant_axes
from reducelower.scope.graph import GraphScope

__all__ = ["Found", "found_at"]

_REDUCED = "axes"
"""The variable that stands for what a Reduce operator reduces over: an input or an attribute, absent for all."""


@dataclass(frozen=True)
class Found:
    """Where an expression was found.

    Attributes:
        nodes: positions of the nodes, those included that only hand a value on.
        values: what each variable is: the name of a value, axes counted as the model has them, or an attribute.
        seen: which value of the graph an application is, by identity.
        doubts: what differs from the operator's form, as sentences.
        most_dimensions: the most dimensions that a constant of one element has.
    """

    nodes: frozenset[int] = frozenset()
    values: dict[str, Any] = field(default_factory=dict)
    seen: dict[int, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    most_dimensions: int = 0


def found_at(expression: Expression, name: str, surroundings: Surroundings, scope: GraphScope) -> Iterator[Found]:
    """The ways in which a value of the graph is what an expression says."""
    yield from _Search(surroundings, scope).value(expression, name, Found())


@dataclass(frozen=True)
class _Search:
    surroundings: Surroundings
    scope: GraphScope

    def value(self, wanted: Expression, name: str, found: Found) -> Iterator[Found]:
        if isinstance(wanted, Variable):
            yield from self._bound(wanted.name, name, found)
        elif isinstance(wanted, Literal):
            yield from self._literal(wanted, name, found)
        elif isinstance(wanted, AnyOf):
            for way in wanted.alternatives:
                yield from self.value(way, name, found)
        elif found.seen.get(id(wanted)) == name:
            yield found
        else:
            yield from self._application(wanted, name, found)

    def _bound(self, variable: str, name: str, found: Found) -> Iterator[Found]:
        known = found.values.get(variable)
        if known is None:
            yield replace(found, values={**found.values, variable: name})
        elif known == name or self._is_same_constant(known, name):
            yield found

    def _is_same_constant(self, name: str, other: str) -> bool:
        left, right = self.scope.constant(name), self.scope.constant(other)
        if left is None or right is None:
            return False
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()

    def _literal(self, wanted: Literal, name: str, found: Found) -> Iterator[Found]:
        value = self.scope.constant(name)
        if value is not None and value.size == 1 and is_near(float(value.reshape(-1)[0]), wanted.value, value.dtype):
            yield replace(found, most_dimensions=max(found.most_dimensions, value.ndim))

    def _application(self, wanted: Application, name: str, found: Found) -> Iterator[Found]:
        index = self.surroundings.producers.get(name)
        if index is None:
            return
        node = self.surroundings.nodes[index]
        if node.domain not in DEFAULT_DOMAINS or len(node.output) != 1:
            return
        if self._hands_on(node):
            yield from self.value(wanted, node.input[0], replace(found, nodes=found.nodes | {index}))
            return
        if node.op_type != wanted.op_type:
            return
        agreed = self._attributes(wanted, node, found)
        if agreed is None:
            return
        agreed = replace(agreed, nodes=agreed.nodes | {index}, seen={**agreed.seen, id(wanted): name})
        operands, names = wanted.operands, list(node.input)
        if operands and isinstance(operands[-1], Variable) and operands[-1].name == _REDUCED:
            reduced = self._reduced(node, agreed)
            if reduced is None:
                return
            agreed, operands, names = reduced, operands[:-1], names[:1]
        while names and not names[-1]:
            names.pop()
        if len(names) != len(operands):
            return
        orders: Sequence[Sequence[str]] = [names]
        if node.op_type in COMMUTATIVE and len(names) == 2 and names[0] != names[1]:
            orders = list(permutations(names))
        for order in orders:
            yield from self._operands(operands, order, agreed)

    def _operands(self, wanted: Sequence[Expression], names: Sequence[str], found: Found) -> Iterator[Found]:
        if not wanted:
            yield found
            return
        for first in self.value(wanted[0], names[0], found):
            yield from self._operands(wanted[1:], names[1:], first)

    def _hands_on(self, node: NodeProto) -> bool:
        """Whether a node yields what it reads: Identity, or a Cast to the type that its input has."""
        if node.op_type == "Identity":
            return True
        if node.op_type != "Cast":
            return False
        goal = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
        return self.scope.element_type(node.input[0]) == goal

    def _attributes(self, wanted: Application, node: NodeProto, found: Found) -> Found | None:
        """The find with what a node's attributes tell; None where they are not those of the form."""
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return None
        given = attributes_of(node, self.scope.opset)
        for name, value in wanted.attributes.items():
            if isinstance(value, Variable):
                found = replace(found, values={**found.values, value.name: given.get(name)})
            elif name == "keepdims" and given.get(name) != value:
                found = replace(found, doubts=(*found.doubts, f"its {node.op_type} drops the axes it reduces"))
            elif given.get(name) != value:
                return None
        return found

    def _reduced(self, node: NodeProto, found: Found) -> Found | None:
        """The find with the axes of a Reduce node; None where they are not constant."""
        given = attributes_of(node, self.scope.opset)
        if "axes" in given:
            axes = tuple(given["axes"])
        elif len(node.input) > 1 and node.input[1]:
            constant = constant_axes(node.input[1], self.scope)
            if constant is None:
                return None
            axes = constant
        else:
            axes = ()
        if not axes and given.get("noop_with_empty_axes"):
            return None
        rank = self.scope.rank(node.input[0])
        if rank is not None:
            axes = tuple(sorted(axis % rank for axis in axes)) if axes else tuple(range(rank))
        known = found.values.get(_REDUCED)
        if known is not None and known != axes:
            return replace(found, doubts=(*found.doubts, "its reductions go over different axes"))
        return replace(found, values={**found.values, _REDUCED: axes})
