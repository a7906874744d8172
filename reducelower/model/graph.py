"""Walk a model: subgraphs, function bodies, and the graph paths shown to users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS

__all__ = [
    "HOLDING_GRAPHS",
    "UNLIKE_BRANCHES_SINCE",
    "all_nodes",
    "bodies",
    "function_path",
    "graphs",
    "inner_path",
    "may_hold_graphs",
    "node_label",
    "nodes_needed",
    "read_by",
    "read_from_outside",
    "read_outside_nodes",
    "rename",
    "subgraphs",
    "walk",
]

HOLDING_GRAPHS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators of the default domain with graph attributes."""

UNLIKE_BRANCHES_SINCE = 11
"""From this opset version on, the branches of an If may have outputs of different shapes."""


def subgraphs(node: NodeProto) -> Iterator[tuple[int, str, GraphProto]]:
    """Yield every graph attribute of a node: index of the attribute, its name, the graph."""
    number = 0
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield number, attribute.name, attribute.g
            number += 1
        elif attribute.type == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield number, attribute.name, graph
                number += 1


def may_hold_graphs(node: NodeProto) -> bool:
    """Whether a node may have subgraphs; any node outside the default domain may."""
    return node.op_type in HOLDING_GRAPHS or node.domain not in DEFAULT_DOMAINS


def walk(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes and the nodes of their subgraphs."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node
            if node.op_type in HOLDING_GRAPHS or node.domain not in DEFAULT_DOMAINS:  # a call takes as long as the rest
                pending.extend(graph.node for _, _, graph in subgraphs(node))


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Yield every node of a model: main graph, subgraphs and function bodies."""
    return walk(chain(model.graph.node, *(function.node for function in model.functions)))


def bodies(model: ModelProto) -> Iterator[tuple[str, GraphProto | FunctionProto]]:
    """Yield main graph, functions and their subgraphs, outer before inner, each with its path."""
    pending: list[tuple[str, GraphProto | FunctionProto]] = [("graph", model.graph)]
    pending += [(function_path(function), function) for function in model.functions]
    pending.reverse()
    while pending:
        path, holder = pending.pop()
        yield path, holder
        inner = [
            (inner_path(path, node, index, attribute), graph)
            for index, node in enumerate(holder.node)
            for _, attribute, graph in subgraphs(node)
        ]
        pending.extend(reversed(inner))


def graphs(model: ModelProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs among `bodies`: the main graph and all subgraphs, those of functions included."""
    return ((path, holder) for path, holder in bodies(model) if isinstance(holder, GraphProto))


def function_path(function: FunctionProto) -> str:
    """The path of a function body, such as ``functions/local::Norm:fast``."""
    overload = f":{function.overload}" if function.overload else ""
    return f"functions/{function.domain}::{function.name}{overload}"


def inner_path(path: str, node: NodeProto, index: int, attribute: str) -> str:
    """The path of a subgraph, such as ``graph/If_3.then_branch``, with the node's position if it has no name."""
    return f"{path}/{node_label(node, index)}.{attribute}"


def node_label(node: NodeProto, index: int) -> str:
    """What users see of a node: its name, or ``ReduceSum#4`` (operator and position) if it has none."""
    return node.name or f"{node.op_type}#{index}"


def read_by(node: NodeProto) -> Iterator[str]:
    """The names that a node reads, and those that the nodes and outputs of its subgraphs read, wherever defined."""
    yield from node.input
    for _, _, graph in subgraphs(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from read_by(inner)


def nodes_needed(nodes: Sequence[NodeProto], wanted: Iterable[str]) -> list[NodeProto]:
    """The nodes, in order, that the wanted values depend on."""
    read, kept = set(wanted), []
    for node in reversed(nodes):
        if not read.isdisjoint(node.output):
            kept.append(node)
            read.update(filter(None, read_by(node)))
    return kept[::-1]


def rename(node: NodeProto, called: Callable[[str], str]) -> None:
    """Give other names to the values that a node and the graphs inside it read and compute."""
    for values in (node.input, node.output):
        for index, name in enumerate(values):
            values[index] = called(name)
    for _, _, graph in subgraphs(node):
        for listed in (graph.input, graph.output, graph.value_info, graph.initializer):
            for value in listed:
                value.name = called(value.name)
        for inner in graph.node:
            rename(inner, called)


def read_outside_nodes(holder: GraphProto) -> list[str]:
    """The names that the outputs or quantization annotations of a graph read."""
    names = [value.name for value in holder.output]
    for annotation in holder.quantization_annotation:
        names += [annotation.tensor_name, *(entry.value for entry in annotation.quant_parameter_tensor_names)]
    return names


def read_from_outside(node: NodeProto) -> set[str]:
    """The names that a node and its subgraphs read from the enclosing graphs."""
    read = set(filter(None, node.input))
    for _, _, graph in subgraphs(node):
        inside = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        inside |= {name for inner in graph.node for name in inner.output}
        read |= {value.name for value in graph.output}.union(*map(read_from_outside, graph.node)) - inside
    return read
