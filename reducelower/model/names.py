"""Fresh names of values and nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from onnx import FunctionProto, GraphProto, ModelProto

from reducelower.model.graph import subgraphs
from reducelower.model.wire import varint

__all__ = ["Names", "Searchable"]

_BYTES_PER_NODE = 12_000
"""Bytes that can be searched in the time it takes to collect the names of one node."""


class Searchable(NamedTuple):
    """Bytes that contain every name of a model with its length before it, and the number of nodes."""

    text: bytes
    nodes: int


class Names:
    """Gives out names that occur nowhere in the model and were not given out before.

    Collecting all names of a large model takes longer than converting it. So its bytes are searched instead, if they
    exist, once per tail: one that does not occur in the bytes is part of no name.
    """

    def __init__(self, source: Callable[[], ModelProto], searchable: Searchable | None) -> None:
        """Take the model, and its bytes if they may be searched."""
        self._source = source
        self._searchable = searchable
        self._searched = 0
        self._free_tails: dict[str, bool] = {}
        self._taken: set[str] | None = None
        self._given: set[str] = set()
        self._last: dict[str, int] = {}

    def fresh(self, stem: str, tail: str) -> str:
        """A fresh name made of a stem, such as a node name, and a tail, such as ``/ReduceL2/square``."""
        name = stem + tail
        if stem and self._free_tails.get(tail) and name not in self._given:
            self._given.add(name)
            return name
        # Names without a stem are few. Searching for each is faster than collecting all names.
        is_taken = self._is_taken if stem else self._stands_in_model
        if is_taken(name, tail):
            # Names are never released, so a candidate that was taken once need not be tried again.
            number = self._last.get(name, 1) + 1
            while is_taken(f"{name}_{number}", tail):
                number += 1
            self._last[name] = number
            name = f"{name}_{number}"
        self._given.add(name)
        return name

    def _is_taken(self, name: str, tail: str) -> bool:
        if name in self._given:
            return True
        if self._taken is None:
            if self._tail_is_free(tail):
                return False
            self._taken = _names_of(self._source())
        return name in self._taken

    def _stands_in_model(self, name: str, tail: str) -> bool:
        """As `_is_taken`. Protobuf writes the length before a name, which tells it from longer names."""
        if self._taken is None and (
            self._searchable is None or self._searched > _BYTES_PER_NODE * self._searchable.nodes
        ):
            self._taken = _names_of(self._source())
        if self._taken is not None:
            return self._is_taken(name, tail)
        text = name.encode()
        is_nowhere = self._occurs_nowhere(varint(len(text)) + text)
        return name in self._given if is_nowhere else self._is_taken(name, tail)

    def _tail_is_free(self, tail: str) -> bool:
        if tail not in self._free_tails:
            self._free_tails[tail] = self._occurs_nowhere(tail.encode())
        return self._free_tails[tail]

    def _occurs_nowhere(self, text: bytes) -> bool:
        if self._searchable is None:
            return False
        self._searched += len(self._searchable.text)
        # rfind takes less than half the time of find.
        return self._searchable.text.rfind(text) < 0


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
