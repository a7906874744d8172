"""Fresh names of values and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from onnx import GraphProto, ModelProto, NodeProto

from reducelower.model.graph import HOLDING_GRAPHS, subgraphs
from reducelower.model.nodelist import NodeList

__all__ = ["Names"]


class Names:
    """Gives out names that occur nowhere in the model and were not given out before."""

    def __init__(self, model: Callable[[], ModelProto], nodes: NodeList | None = None) -> None:
        """Take the model, and the nodes of its main graph where they are not in it. Neither is looked at yet."""
        self._model = model
        self._nodes = nodes
        self._taken: set[bytes] | None = None
        self._last: dict[str, int] = {}

    def fresh(self, stem: str, tail: str) -> str:
        """A fresh name made of a stem, such as a node name, and a tail, such as ``/ReduceL2/square``."""
        if self._taken is None:
            self._taken = _taken(self._model(), self._nodes)
        taken, name = self._taken, stem + tail
        coded = name.encode()
        if coded in taken:
            # Names are never released, so a candidate that was taken once need not be tried again.
            number = self._last.get(name, 1) + 1
            while (coded := f"{name}_{number}".encode()) in taken:
                number += 1
            self._last[name] = number
            name = f"{name}_{number}"
        taken.add(coded)
        return name


def _taken(model: ModelProto, nodes: NodeList | None) -> set[bytes]:
    """Every name of a model. Those of its main graph come as columns: looking at each node takes many times as long."""
    nodes = NodeList.of_holder(model.graph) if nodes is None else nodes
    census = nodes.census
    names = {*census.inputs, *census.outputs, *census.names}
    holding = census.positions(HOLDING_GRAPHS.__contains__) if census.is_plain else range(len(census.nodes))
    others = [_of_nodes(map(nodes.source, holding)), _outside_nodes(model.graph)]
    for function in model.functions:
        others += [iter(function.input), iter(function.output), _of_nodes(function.node)]
    names.update(name.encode() for each in others for name in each)
    return names


def _outside_nodes(graph: GraphProto) -> Iterator[str]:
    for values in (graph.input, graph.output, graph.value_info, graph.initializer):
        for value in values:
            yield value.name
    for tensor in graph.sparse_initializer:
        yield tensor.values.name


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield node.name
        yield from node.input
        yield from node.output
        for _, _, graph in subgraphs(node):
            yield from _outside_nodes(graph)
            yield from _of_nodes(graph.node)
