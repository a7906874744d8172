"""Repairs of names, of the order of nodes, and of what the model holds in vain."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import count

from onnx import GraphProto, ModelProto, NodeProto

from reducelower.legalization.defects import find_defect
from reducelower.legalization.functions import drop_unused
from reducelower.model.graph import graphs, read_from_outside, subgraphs
from reducelower.repairs.stated_types import listed

__all__ = ["drop_copies", "drop_functions", "name_graphs", "put_in_order", "rename_duplicates"]


def name_graphs(model: ModelProto) -> Iterator[str]:
    """Name graphs without a name, which the checker refuses, after the attribute that holds them."""
    unnamed = [(path, graph) for path, graph in graphs(model) if not graph.name]
    for path, graph in unnamed:
        graph.name = path.rpartition(".")[2]  # the attribute's name, or "graph"
    if unnamed:
        yield "named the graphs that had no name"


def rename_duplicates(model: ModelProto) -> Iterator[str]:
    """Rename nodes that have the name of an earlier node, since onnxruntime does not load such a model."""
    renamed = []
    for _, graph in graphs(model):
        names = {node.name for node in graph.node}
        seen: set[str] = set()
        for node in graph.node:
            if node.name and node.name in seen:
                renamed.append(node.name)
                node.name = next(name for number in count(2) if (name := f"{node.name}_{number}") not in names)
                names.add(node.name)
            seen.add(node.name)
    if renamed:
        yield f"renamed nodes that were called like others: {listed(renamed)}"


def drop_copies(model: ModelProto) -> Iterator[str]:
    """Drop initializers that are the same as an earlier one of the same name."""
    dropped = []
    for _, graph in graphs(model):
        stored: dict[str, list[int]] = {}
        for place, tensor in enumerate(graph.initializer):
            stored.setdefault(tensor.name, []).append(place)
        copies = [
            place
            for first, *others in stored.values()
            for place in others
            if graph.initializer[place] == graph.initializer[first]
        ]
        for place in sorted(copies, reverse=True):
            dropped.append(graph.initializer[place].name)
            del graph.initializer[place]
    if dropped:
        yield f"dropped copies of the initializers {listed(dropped)}"


def drop_functions(model: ModelProto) -> Iterator[str]:
    """Drop functions that nothing calls, if something is wrong with the model: the checker looks at them as well."""
    if model.functions and find_defect(model) and (dropped := drop_unused(model)):
        yield f"dropped the functions {listed(dropped)}, which nothing calls"


def put_in_order(model: ModelProto) -> Iterator[str]:
    """Put the nodes of each graph behind those that they read from."""
    holders = [(f"graph {model.graph.name!r}", model.graph)]
    while holders:
        path, holder = holders.pop(0)
        order = _order(holder.node, _not_computed(holder))
        if order is not None:
            nodes = [NodeProto.FromString(holder.node[index].SerializeToString()) for index in order]
            moved = sum(index != place for place, index in enumerate(order))
            del holder.node[:]
            holder.node.extend(nodes)
            yield f"put {moved} nodes of {path} in order, each behind those it reads from"
        for node in holder.node:
            inside = f"in {node.op_type} {node.name!r}"
            holders += [(f"graph {graph.name!r} {inside}", graph) for _, _, graph in subgraphs(node)]


def _not_computed(holder: GraphProto) -> set[str]:
    """The values of a graph that no node of it computes."""
    stored = [*holder.initializer, *(tensor.values for tensor in holder.sparse_initializer)]
    return {value.name for value in holder.input} | {tensor.name for tensor in stored}


def _order(nodes: Collection[NodeProto], not_computed: Collection[str] = ()) -> list[int] | None:
    """Positions of the nodes, each after those it reads from, otherwise stable; None if they are in order already.

    Also None if nodes form a cycle, which has no order, or if a value is defined twice, since then the order decides
    which definition a node reads.
    """
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in makers or name in not_computed:
                return None
            makers[name] = index
    reads = [sorted({makers[name] for name in read_from_outside(node) if name in makers}) for node in nodes]
    if all(index > maker for index, makers_read in enumerate(reads) for maker in makers_read):
        return None
    sorter = TopologicalSorter(dict(enumerate(reads)))
    try:
        sorter.prepare()
    except CycleError:
        return None
    order: list[int] = []
    ready: list[int] = []
    while sorter.is_active():
        for index in sorter.get_ready():
            heappush(ready, index)
        order.append(heappop(ready))  # the earliest of those that may stand next
        sorter.done(order[-1])
    return order
