"""What is asked of each output of one node does not go over all of its outputs every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from onnx import NodeProto, helper, parser

from reducelower.types import Resolver
from reducelower.types.graphs import Graph

COUNT = 500


class _Watched(Sequence[str]):
    """Names of outputs that count how often one of them is read."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.reads = 0

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return self.names[at]

    def __iter__(self) -> Iterator[str]:
        return (self[at] for at in range(len(self)))


class _Node:
    """A node with watched outputs."""

    def __init__(self, node: NodeProto) -> None:
        self.node = node
        self.output = _Watched(node.output)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)


class _Graph(Graph):
    """A graph of one watched node."""

    def __init__(self, text: str) -> None:
        super().__init__(parser.parse_graph(text), None, imports=[helper.make_opsetid("", 18)])
        self.watched = _Node(self.holder.node[0])

    def producer(self, name: str) -> Any:
        return self.watched if super().producer(name) is not None else None


@pytest.mark.parametrize("attribute", [f"num_outputs = {COUNT}", f"num_outputs = {COUNT}, axis = 1"])
def test_types_and_shapes_of_outputs(attribute: str) -> None:
    names = [f"o{at}" for at in range(COUNT)]
    # Along axis 0 the last part is smaller, so onnx's inference is asked; along axis 1 all are alike.
    text = f"g (float[{2 * COUNT - 1},{COUNT}] x) => () {{ {', '.join(names)} = Split <{attribute}> (x) }}"
    graph = _Graph(text)
    resolver = Resolver()
    found = [resolver.known(name, graph) for name in names]
    assert {resolver.ask(graph, "element_type", name) for name in names} == {1}
    sizes = [each.shape for each in found]
    last = (2 * COUNT - 1, 1) if "axis" in attribute else (1, COUNT)
    assert sizes == [(2 * COUNT - 1, 1) if "axis" in attribute else (2, COUNT)] * (COUNT - 1) + [last]
    assert graph.watched.output.reads < 30 * COUNT
