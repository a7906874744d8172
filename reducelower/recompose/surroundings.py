"""The nodes of one graph: their producers and readers, and what is known about values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from onnx import NodeProto, helper

from reducelower.model.graph import may_hold_graphs, read_by, read_outside_nodes
from reducelower.model.numbers import Array
from reducelower.model.schemas import DEFAULT_DOMAINS, default_attributes
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Stored

__all__ = ["Made", "Surroundings", "attributes_of"]


class Made(NamedTuple):
    """How a node computes its value.

    The operator is empty if no form can have the node, because of another domain, several outputs, or an attribute that
    depends on the function call. Attributes include schema defaults.
    """

    op_type: str
    attributes: Mapping[str, Any]
    operands: Sequence[str]


class Surroundings:
    """The nodes of one graph and their connections.

    Attributes:
        producers: position of the node that computes a value.
        readers: positions of the nodes that read a value, perhaps in their subgraphs.
        named: graph outputs and values with quantization annotations.
        holding: positions of the nodes that may have subgraphs.
        element_type, shape: questions about a value; the answer is None if it is unknown.
    """

    def __init__(self, scope: GraphScope) -> None:
        """Analyze the nodes of a graph and their subgraphs."""
        self._scope = scope
        written = list(scope.edited.node)
        self.nodes: Sequence[NodeProto] = [_without_like(node, scope) for node in written]
        self.op_types: Sequence[str] = list(map(attrgetter("op_type"), self.nodes))
        self.outputs = [_without_absent_ends(node.output[:]) for node in self.nodes]
        self.producers = {name: index for index, names in enumerate(self.outputs) for name in names if name}
        self.holding = [index for index, node in enumerate(self.nodes) if may_hold_graphs(node)]
        self.readers: dict[str, set[int]] = defaultdict(set)
        for index, node in enumerate(written):
            for name in read_by(node):
                self.readers[name].add(index)
        self.named = set(read_outside_nodes(scope.edited))
        self.element_type, self.shape = scope.element_type, scope.shape
        self._made: dict[str, Made] = {}

    def is_inside(self, region: frozenset[int], last: int) -> bool:
        """Whether only the output of the region's last node is used outside the region."""
        names = [name for index in region if index != last for name in self.nodes[index].output]
        return all(name not in self.named and self.readers[name] <= region for name in names)

    def made(self, name: str) -> Made | None:
        """How a value is computed; None if no node of this graph does."""
        if name not in self._made:
            index = self.producers.get(name)
            if index is None:
                return None
            node = self.nodes[index]
            operands = _without_absent_ends(node.input[:])
            is_plain = node.domain in DEFAULT_DOMAINS and len(node.output) == 1
            if not is_plain or any(attribute.ref_attr_name for attribute in node.attribute):
                self._made[name] = Made("", {}, operands)
            else:
                self._made[name] = Made(node.op_type, attributes_of(node, self._scope.opset), operands)
        return self._made[name]

    def stored(self, name: str) -> Stored | None:
        """The value of a constant; None if it depends on model inputs or cannot be read."""
        return self._scope.readable_constant(name) if name else None

    def constant(self, name: str | None) -> Array | None:
        """The same as an array; None if the operand is absent."""
        stored = self.stored(name or "")
        return None if stored is None else stored.array

    def rank(self, name: str) -> int | None:
        """The rank of a value; None if it is unknown."""
        shape = self.shape(name)  # most forms ask for it anyway
        return None if shape is None else len(shape)

    def has_same_sizes(self, name: str, other: str) -> bool:
        """Whether all sizes of two values are known, by their names at least, and are the same."""
        sizes = self._scope.known(name).shape
        return sizes is not None and None not in sizes and sizes == self._scope.known(other).shape


def _without_like(node: NodeProto, scope: GraphScope) -> NodeProto:
    """A CastLike to a known element type as a Cast, which is what rules write."""
    is_like = node.op_type == "CastLike" and node.domain in DEFAULT_DOMAINS
    element_type = scope.element_type(node.input[1]) if is_like else None
    if element_type is None:
        return node
    cast = NodeProto()
    cast.CopyFrom(node)
    cast.op_type = "Cast"
    del cast.input[1]
    cast.attribute.append(helper.make_attribute("to", element_type))
    return cast


def _without_absent_ends(names: list[str]) -> list[str]:
    """The names without absent ones at the end."""
    while names and not names[-1]:
        names.pop()
    return names


def attributes_of(node: NodeProto, opset: int) -> dict[str, Any]:
    """The attributes of a node, with schema defaults for those it does not state."""
    values = dict(default_attributes(node.op_type, opset))
    values.update((attribute.name, helper.get_attribute_value(attribute)) for attribute in node.attribute)
    return values
