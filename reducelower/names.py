"""Fresh value and node names that collide with nothing in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from onnx import FunctionProto, GraphProto, ModelProto

from reducelower.inference import subgraphs

__all__ = ["Names"]


class Names:
    """Gives out names that no value of the model bears, in any graph or function, nor any name given before.

    Collecting every name of a large model takes longer than converting it. So where the model's serialized bytes are
    at hand they are searched instead, once per kind of name: a tail that occurs nowhere in them is part of no name.
    """

    def __init__(self, source: Callable[[], ModelProto], serialized: bytes | None) -> None:
        """Prepare to name what comes into a model.

        Args:
            source: gives the model as it was.
            serialized: its bytes, where they are at hand.
        """
        self._source = source
        self._serialized = serialized
        self._free_tails: dict[str, bool] = {}
        self._taken: set[str] | None = None
        self._given: set[bytes] = set()
        self.derived: list[tuple[str, str, str]] = []
        """Names made from a stem, in order: the stem, the tail, the name."""

    def fresh(self, stem: str, tail: str) -> str:
        """A name made of a stem, such as the name of a node, and a tail, such as ``/ReduceL2/square``."""
        name = stem + tail
        if self._is_taken(name, tail):
            number = 2
            while self._is_taken(f"{name}_{number}", tail):
                number += 1
            name = f"{name}_{number}"
        self._given.add(name.encode())
        if stem:
            self.derived.append((stem, tail, name))
        return name

    def is_new(self, name: str) -> bool:
        """Whether the name was given out here rather than found in the model."""
        return name.encode() in self._given

    def are_free(self, tails: Iterable[str]) -> bool:
        """Whether names with any of these tails collide with nothing but names given before."""
        return all(map(self._tail_is_free, tails))

    def take(self, names: Sequence[bytes]) -> bool:
        """Give out names, in UTF-8, whose tails are free; False if one was given before, and then none is given."""
        if not self._given.isdisjoint(names):
            return False
        self._given.update(names)
        return True

    def _is_taken(self, name: str, tail: str) -> bool:
        if self.is_new(name):
            return True
        if self._tail_is_free(tail):
            return False
        if self._taken is None:
            self._taken = _names_of(self._source())
        return name in self._taken

    def _tail_is_free(self, tail: str) -> bool:
        if tail not in self._free_tails:
            data = self._serialized
            self._free_tails[tail] = data is not None and tail.encode() not in data
        return self._free_tails[tail]


def _names_of(model: ModelProto) -> set[str]:
    names: set[str] = set()
    _add_graph(names, model.graph)
    for function in model.functions:
        names.update(function.input)
        names.update(function.output)
        _add_nodes(names, function)
    return names


def _add_graph(names: set[str], graph: GraphProto) -> None:
    for values in (graph.input, graph.output, graph.value_info, graph.initializer):
        names.update(value.name for value in values)
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    _add_nodes(names, graph)


def _add_nodes(names: set[str], holder: GraphProto | FunctionProto) -> None:
    for node in holder.node:
        names.add(node.name)
        names.update(node.input)
        names.update(node.output)
        for _, _, graph in subgraphs(node):
            _add_graph(names, graph)
