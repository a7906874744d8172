"""Fresh value and node names that collide with nothing in the model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from onnx import FunctionProto, GraphProto, ModelProto

from reducelower.model.graph import subgraphs
from reducelower.model.wire import varint

__all__ = ["Names", "Searchable"]

_BYTES_PER_NODE = 12_000
"""As many bytes are searched in the time it takes to collect the names of a node."""

_COMMONEST = "/Reduce"
"""What the tails of most names begin with."""


class Searchable(NamedTuple):
    """Bytes in which every name of a model stands, its length in front of it, and how many nodes it has."""

    text: bytes
    nodes: int


class Names:
    """Gives out names that no value of the model bears, in any graph or function, nor any name given before.

    Collecting every name of a large model takes longer than converting it. So where bytes with all names are at
    hand they are searched instead, once per kind of name: a tail that occurs nowhere in them is part of no name.
    """

    def __init__(self, source: Callable[[], ModelProto], searchable: Searchable | None) -> None:
        """Prepare to name what comes into a model."""
        self._source = source
        self._searchable = searchable
        self._searched = 0
        self._free_tails: dict[str, bool] = {}
        self._taken: set[str] | None = None
        self._given: set[str] = set()
        self._last: dict[str, int] = {}
        self._families: dict[str, dict[bytes, Collection[bytes]]] = {}

    def fresh(self, stem: str, tail: str) -> str:
        """A name made of a stem, such as the name of a node, and a tail, such as ``/ReduceL2/square``."""
        name = stem + tail
        # There are few names without a stem, so that a search for each takes less time than to collect all names.
        is_taken = self._is_taken if stem else self._stands_in_model
        if is_taken(name, tail):
            # No name is ever given back, so that none needs to be asked for twice.
            number = self._last.get(name, 1) + 1
            while is_taken(f"{name}_{number}", tail):
                number += 1
            self._last[name] = number
            name = f"{name}_{number}"
        self._given.add(name)
        for family in self._families:
            self._note(name, family)
        return name

    # Names by the thousand

    def family(self, tails: Collection[str]) -> str:
        """The beginning that tails share, such as ``/ReduceL2/``, if it occurs nowhere in the model; else nothing.

        Whatever contains it is then a name given here, and what stands in front of it is the stem.
        """
        first = next(iter(tails), "")
        family = first[: first.find("/", 1) + 1]
        # Where the family comes once in a tail, what stands in front of its last occurrence in a name is the stem.
        if not family.startswith("/") or any(tail.rfind(family) for tail in tails):
            return ""
        if not self._tail_is_free(family):
            return ""
        if family not in self._families:
            self._families[family] = {}
            for name in self._given:
                self._note(name, family)
        return family

    def claim(self, family: str, stem: bytes, tails: Collection[bytes]) -> bool:
        """Give out the names of a stem with some tails; none, and False, where one may have been given before."""
        known = self._families[family]
        if stem in known:
            return False
        known[stem] = tails
        return True

    def disclaim(self, family: str, stem: bytes) -> None:
        """Take back what was just claimed."""
        del self._families[family][stem]

    def _note(self, name: str, family: str) -> None:
        """Note the stem of a name, if it is of a family, so that nobody takes it again without asking."""
        stem, found, _ = name.rpartition(family)
        if found:
            self._families[family].setdefault(stem.encode(), ())

    def _was_taken(self, name: str, family: str) -> bool:
        stem, found, rest = name.rpartition(family)
        return bool(found) and (family + rest).encode() in self._families[family].get(stem.encode(), ())

    # Names one by one

    def _is_taken(self, name: str, tail: str) -> bool:
        if name in self._given or any(self._was_taken(name, family) for family in self._families):
            return True
        if self._taken is None:
            if self._tail_is_free(tail):
                return False
            self._taken = _names_of(self._source())
        return name in self._taken

    def _stands_in_model(self, name: str, tail: str) -> bool:
        """As `_is_taken`: protobuf writes the length in front of every name, so a search tells it from longer ones."""
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
            # Tails come in families, /ReduceL2/square and /ReduceL2/sum: one search often answers for all of them.
            family = _family(tail)
            is_free = (bool(family) and self._tail_is_free(family)) or self._occurs_nowhere(tail.encode())
            self._free_tails[tail] = is_free
        return self._free_tails[tail]

    def _occurs_nowhere(self, text: bytes) -> bool:
        if self._searchable is None:
            return False
        self._searched += len(self._searchable.text)
        # Python searches backwards in less than half the time.
        return self._searchable.text.rfind(text) < 0


def _family(tail: str) -> str:
    """What the tails of a family have in common: of ``/ReduceL2/square`` first ``/ReduceL2/``, then ``/Reduce``."""
    family = tail[: tail.rfind("/", 0, -1) + 1]
    return _COMMONEST if family == "/" and tail.startswith(_COMMONEST) and tail != _COMMONEST else family


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
