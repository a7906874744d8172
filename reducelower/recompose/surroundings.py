"""Who yields and who reads each value of one graph or function body, and what its nodes are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any

from onnx import AttributeProto, NodeProto, helper

from reducelower.model.graph import may_hold_graphs, read_by, read_outside_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, schema
from reducelower.scope.graph import GraphScope

__all__ = ["Kind", "Surroundings", "attributes_of"]


@dataclass(frozen=True, eq=False)
class Kind:
    """What a node is, apart from what it reads; there is one of each.

    Attributes:
        op_type: the operator; empty where no form is made of such nodes: of another domain, of several outputs, or
            with an attribute that only a call tells.
        attributes: its attributes, with the schema's defaults for those it does not state.
    """

    op_type: str
    attributes: Mapping[str, Any]


_NO_KIND = Kind("", {})

_TOLD_BY_SHAPES = frozenset({"Shape", "Size"})


class Surroundings:
    """The nodes of one graph or function body and how they hang together.

    Attributes:
        nodes: the nodes.
        op_types: their operators.
        inputs: what each reads itself; absent operands at the end are left out.
        producers: position of the node that yields a value.
        reads: how often each value is read by nodes, and by what these hold.
        named: values that the graph yields, or that an annotation speaks of.
    """

    def __init__(self, scope: GraphScope, kinds: dict[Any, Kind]) -> None:
        """Look through the nodes of a graph or function body, and through what they hold.

        Args:
            scope: the graph or function body.
            kinds: the kinds of nodes that are known at its opset version; new ones are added.
        """
        self._scope = scope
        self.nodes: Sequence[NodeProto] = list(scope.holder.node)
        self.op_types: Sequence[str] = list(map(attrgetter("op_type"), self.nodes))
        self.inputs: Sequence[Sequence[str]] = [list(node.input) for node in self.nodes]
        for names in self.inputs:
            while names and not names[-1]:
                names.pop()  # type: ignore[attr-defined]  # these are lists until here
        self.producers: dict[str, int] = {}
        outputs = [list(node.output) for node in self.nodes]
        for index, names in enumerate(outputs):
            for name in names:
                if name:
                    self.producers[name] = index
        self._with_inside = {
            index: list(read_by(node)) for index, node in enumerate(self.nodes) if may_hold_graphs(node)
        }
        self._constants: dict[str, int] = {}
        self._ranks: dict[str, int | None] = {}
        self.reads = Counter(chain.from_iterable(map(self.reads_of, range(len(self.nodes)))))
        self.named = set(read_outside_nodes(scope.holder))
        self._known_kinds = kinds
        self._kinds: dict[int, Kind] = {}
        self._varying = self._find_varying(outputs)

    def reads_of(self, index: int) -> Sequence[str]:
        """What a node reads, and what it holds reads."""
        return self._with_inside.get(index) or self.inputs[index]

    def is_inside(self, region: Collection[int], last: int) -> bool:
        """Whether nothing but the last node of a region is known outside of it."""
        names = [name for index in region if index != last for name in self.nodes[index].output]
        read = Counter(chain.from_iterable(map(self.reads_of, region)))
        return all(name not in self.named and self.reads[name] == read[name] for name in names)

    def kind(self, index: int) -> Kind:
        """What a node is."""
        found = self._kinds.get(index)
        if found is None:
            node = self.nodes[index]
            stated = tuple(map(AttributeProto.SerializeToString, node.attribute))
            key = (self.op_types[index], node.domain, len(node.output), stated)
            found = self._known_kinds.get(key)
            if found is None:
                found = self._known_kinds[key] = _kind_of(node, self._scope.opset)
            self._kinds[index] = found
        return found

    def operators_around(self, index: int) -> tuple[str, ...]:
        """The operator of a node, and of the nodes that yield its operands; nothing for what no node here yields."""
        op_types, producers = self.op_types, self.producers
        return (
            op_types[index],
            *[op_types[producers[name]] if name in producers else "" for name in self.inputs[index]],
        )

    def constant_number(self, name: str) -> int:
        """The number of a constant's value (see `GraphScope`); 0 for what depends on the inputs of the model."""
        if name in self._varying:
            return 0
        if name not in self._constants:
            self._constants[name] = self._scope.constant_number(name)
        return self._constants[name]

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a value; None where it is not known."""
        if name not in self._ranks:
            self._ranks[name] = self._scope.rank(name)
        return self._ranks[name]

    def positions(self, *op_types: str) -> list[int]:
        """Positions of the nodes of some operators."""
        return [index for index, op_type in enumerate(self.op_types) if op_type in op_types]

    @property
    def holding(self) -> Iterable[int]:
        """Positions of the nodes that may hold graphs."""
        return self._with_inside.keys()

    def _find_varying(self, outputs: Sequence[Sequence[str]]) -> set[str]:
        """What is no constant: the inputs of a graph or function, and what is made of them but shapes."""
        holder = self._scope.holder
        given = {value if isinstance(value, str) else value.name for value in holder.input}
        varying = given - {tensor.name for tensor in getattr(holder, "initializer", ())}
        for names, read, op_type in zip(outputs, self.inputs, self.op_types, strict=True):
            # Of the second operand of CastLike it is the type alone that counts.
            made_of = read[:1] if op_type == "CastLike" else read
            if not varying.isdisjoint(made_of) and op_type not in _TOLD_BY_SHAPES:
                varying.update(names)
        return varying


def _kind_of(node: NodeProto, opset: int) -> Kind:
    is_plain = node.domain in DEFAULT_DOMAINS and len(node.output) == 1
    if not is_plain or any(attribute.ref_attr_name for attribute in node.attribute):
        return _NO_KIND
    return Kind(node.op_type, attributes_of(node, opset))


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
