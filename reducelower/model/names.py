"""Fresh names of values and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter

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
    names.update(map(str.encode, chain.from_iterable(others)))
    return names


def _outside_nodes(graph: GraphProto) -> Iterator[str]:
    values = chain(graph.input, graph.output, graph.value_info, graph.initializer)
    return chain(map(_NAME, values), map(_NAME_OF_SPARSE, graph.sparse_initializer))


_NAME, _NAME_OF_SPARSE = attrgetter("name"), attrgetter("values.name")


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield node.name
        yield from node.input
        yield from node.output
        for _, _, graph in subgraphs(node):
            yield from _outside_nodes(graph)
            yield from _of_nodes(graph.node)
