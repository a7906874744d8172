"""The scope of the few nodes that replace one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from reducelower.model.inference import infer_body, subgraphs
from reducelower.model.schemas import type_string
from reducelower.scope.scope import Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

__all__ = ["BodyScope"]

# Inference reads shapes and axes, which are smaller still.
_LARGEST_SHAPE = 64


class BodyScope(Scope):
    """The few nodes that replace one node, standing in the scope of the node they replace.

    What they add goes to the graph around them; the types of what they compute come from inference over just them.
    """

    def __init__(self, around: Scope, nodes: list[NodeProto], opset: int) -> None:
        """Open the scope of replacement nodes written for an opset version."""
        super().__init__(around.ground, FunctionProto(), opset, around.path, around)
        # As they were written: making them legal edits them in place.
        self.nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        self._defined = {name for node in nodes for name in node.output if name}
        self._body: GraphProto | None = None
        self._body_types: Mapping[str, TypeProto] = {}
        self.constant_nodes = {node.output[0]: (-1, node) for node in nodes if node.op_type == "Constant"}

    def _writing(self) -> Scope:
        assert self.parent is not None
        return self.parent._writing()

    def _source_nodes(self) -> Iterable[NodeProto]:
        return self.nodes

    def add_constant(self, value: Array, tail: str) -> str:
        """Add the constant to the graph around the nodes."""
        assert self.parent is not None
        return self.parent.add_constant(value, tail)

    def add_reference(self, attribute: AttributeProto, value: str, tail: str) -> str:
        """Add the Constant node to the function around the nodes."""
        assert self.parent is not None
        return self.parent.add_reference(attribute, value, tail)

    def _type(self, name: str) -> TypeProto | None:
        assert self.parent is not None
        self._inferred()
        # The last nodes yield the outputs of the node they replace, whose types the graph around knows.
        found = self._body_types.get(name)
        return found if found is not None else self.parent.type(name)

    def how_to_declare(self, name: str, what: Literal["type", "rank"]) -> str:
        """The hint for a value of the model: what the nodes compute follows from what they read."""
        assert self.parent is not None
        if name not in (self._defined or ()):
            return self.parent.how_to_declare(name, what)
        for outer in self._read_outside():
            known = self.parent.element_type(outer) if what == "type" else self.parent.rank(outer)
            if known is None:
                return self.parent.how_to_declare(outer, what)
        return "state the types and shapes of what the node reads"

    def _read_outside(self) -> list[str]:
        read = {name for node in self.nodes for name in _read_by(node)}
        return sorted(read - {"", *(self._defined or ())})

    def types_inside(self, node: NodeProto, number: int) -> list[ValueInfoProto]:
        """The types of what a subgraph of one of the nodes, by its number among them, takes and computes."""
        graph = self._graph_inside(node, number)
        # An input may be stated without a type, which the values then tell.
        return [] if graph is None else [*filter(_has_type, graph.input), *graph.value_info]

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of one of the nodes."""
        graph = self._graph_inside(node, number)
        values = () if graph is None else (*graph.value_info, *graph.input, *graph.output)
        return next((value.type for value in values if value.name == name), None)

    def _graph_inside(self, node: NodeProto, number: int) -> GraphProto | None:
        for inferred in self._inferred().node:
            if inferred.op_type == node.op_type and list(inferred.output) == list(node.output):
                return next(graph for index, _, graph in subgraphs(inferred) if index == number)
        return None

    def _type_outside(self, name: str) -> TypeProto | None:
        """The type of a value around the nodes; a rank that the user declared is part of it."""
        assert self.parent is not None
        found = self.parent.type(name)
        if found is None or not found.HasField("tensor_type") or found.tensor_type.HasField("shape"):
            return found
        rank = self.parent.rank(name)
        if rank is None:
            return found
        ranked = TypeProto.FromString(found.SerializeToString())
        ranked.tensor_type.shape.dim.extend(TensorShapeProto.Dimension() for _ in range(rank))
        ranked.tensor_type.shape.SetInParent()
        return ranked

    def _inferred(self) -> GraphProto:
        assert self.parent is not None
        if self._body is None:
            read = self._read_outside()
            known = {outer: found for outer in read if (found := self._type_outside(outer)) is not None}
            constants = []
            for outer in sorted(known):
                # Inference reads the values of shapes and axes, which are integers.
                if known[outer].tensor_type.elem_type not in (TensorProto.INT32, TensorProto.INT64):
                    continue
                value = self.parent.constant(outer)
                if value is not None and value.size <= _LARGEST_SHAPE:
                    constant = NodeProto(op_type="Constant", output=[outer])
                    tensor = numpy_helper.from_array(value)
                    constant.attribute.add(name="value", type=AttributeProto.TENSOR, t=tensor)
                    constants.append(constant)
                    del known[outer]
            self._body = infer_body([*constants, *self.nodes], known, self.opset)
            self._body_types = {value.name: value.type for value in self._body.value_info}
        return self._body


def _has_type(value: ValueInfoProto) -> bool:
    return type_string(value.type) is not None


def _read_by(node: NodeProto) -> set[str]:
    """The names of what a node reads, in its subgraphs as well, from outside."""
    read = set(node.input)
    for _, _, graph in subgraphs(node):
        inside = {value.name for value in graph.input} | {name for inner in graph.node for name in inner.output}
        read |= {value.name for value in graph.output} - inside
        for inner in graph.node:
            read |= _read_by(inner) - inside
    return read
