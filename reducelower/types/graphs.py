"""Graphs, subgraphs and function bodies of a model as the resolver sees them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from math import prod

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from reducelower.model.graph import subgraphs
from reducelower.model.numbers import value_of_tensor
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.types.known import LONGEST, Known
from reducelower.types.resolver import Graph, Held, Source, carried, is_batched

__all__ = ["InnerGraph", "inner_graphs", "sources_outside"]


class InnerGraph:
    """A graph or function body of a message, which is not edited meanwhile."""

    def __init__(
        self,
        holder: GraphProto | FunctionProto,
        around: Graph | None,
        node: NodeProto | None = None,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        """Take a graph, and the graph around it with the node that holds it, if there are such."""
        self.holder = holder
        self.around = around
        self.node = node
        self._versions = versions
        self.opset = self.version("") or 0

    @property
    def place(self) -> Hashable:
        """The graph itself."""
        return self

    def version(self, domain: str) -> int | None:
        """The version of a domain's operators; None if it is not imported."""
        if self._versions is not None:
            return self._versions.get(domain)
        return None if self.around is None else self.around.version(domain)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of the node that computes a value, by its name."""
        return {name: at for at, node in enumerate(self.holder.node) for name in node.output if name}

    @cached_property
    def inputs(self) -> Mapping[str, int]:
        """The positions of inputs by name."""
        given: Sequence[str | ValueInfoProto] = self.holder.input
        return {value if isinstance(value, str) else value.name: at for at, value in enumerate(given)}

    @cached_property
    def _stated(self) -> Mapping[str, TypeProto]:
        values = [*self.holder.value_info]
        if isinstance(self.holder, GraphProto):
            values += [*self.holder.output, *self.holder.input]
        return {value.name: value.type for value in values}

    @cached_property
    def _constants(self) -> Mapping[str, TensorProto]:
        """Initializers, and the tensors of Constant nodes, by name; those of sparse tensors without their values."""
        found: dict[str, TensorProto] = {}
        if isinstance(self.holder, GraphProto):
            found = {tensor.name: tensor for tensor in self.holder.initializer}
            for sparse in self.holder.sparse_initializer:
                found[sparse.values.name] = TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
        for node in self.holder.node:
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
                values = (each.t for each in node.attribute if each.name == "value" and not each.ref_attr_name)
                found.update((node.output[0], tensor) for tensor in values)
        return found

    def home(self, name: str) -> Graph:
        """The graph that defines a value: this one or an enclosing one."""
        if self.around is None or self.node is None or isinstance(self.holder, FunctionProto):
            return self
        is_own = name in self.positions or name in self._constants or name in self.inputs
        return self if is_own else self.around.home(name)

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value."""
        at = self.positions.get(name)
        return None if at is None else self.holder.node[at]

    def readers(self, name: str) -> Sequence[NodeProto]:
        """The nodes of this graph that read a value."""
        return self._readers.get(name, ())

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[NodeProto]]:
        found: dict[str, list[NodeProto]] = {}
        for node in self.holder.node:
            for name in node.input:
                found.setdefault(name, []).append(node)
        return found

    def held(self, name: str) -> Held | None:
        """What is known about a constant, or about the counters of a Loop."""
        tensor = self._constants.get(name)
        if tensor is not None:
            value = value_of_tensor(tensor) if prod(tensor.dims) <= LONGEST else None
            return Known.of_constant(tensor.data_type, tensor.dims, value)
        is_counter = self.node is not None and self.node.op_type == "Loop" and self.inputs.get(name, 2) < 2
        return Known((TensorProto.INT64, TensorProto.BOOL)[self.inputs[name]], ()) if is_counter else None

    def stated_type(self, name: str) -> TypeProto | None:
        """The type that the graph states for a value."""
        return self._stated.get(name)

    def handed(self, name: str) -> Sequence[Source]:
        """The values outside that become an input of this graph."""
        if name not in self.inputs or self.around is None or self.node is None:
            return ()
        return sources_outside(self.node, self.around, self.inputs[name])

    def note_trusted(self, name: str) -> None:
        """Nobody wants to know."""

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        """The subgraphs of a node."""
        return inner_graphs(node, self)


def inner_graphs(node: NodeProto, around: Graph) -> list[tuple[Graph, Sequence[str]]]:
    """The subgraphs of a node of a graph, each with the names of its outputs."""
    return [
        (InnerGraph(graph, around, node), [value.name for value in graph.output]) for _, _, graph in subgraphs(node)
    ]


def sources_outside(node: NodeProto, around: Graph, place: int) -> Sequence[Source]:
    """What a Loop, a Scan or a call hands to an input of its body."""
    is_own = node.domain in DEFAULT_DOMAINS
    is_given = place < len(node.input) and node.input[place] != ""
    if not is_given or is_batched(node, around) or (is_own and node.op_type not in ("Loop", "Scan")):
        return ()
    axes: int | None = 0  # a state of a Scan keeps its shape
    if is_own and node.op_type == "Loop":
        axes = None  # what is carried keeps its element type; its shape may change
    elif is_own and place >= carried(node):
        axes = -1
    return (Source(around, node.input[place], axes),)
