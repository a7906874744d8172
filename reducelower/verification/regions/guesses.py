"""Guesses which values of two graphs correspond: by name, and by the order of like nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from onnx import NodeProto

from reducelower.model.graph import subgraphs
from reducelower.verification.regions.claims import Level
from reducelower.verification.regions.numbering import Table, is_constant
from reducelower.verification.regions.places import Place

__all__ = ["Guesses", "Names"]

Names = Literal["only", "first", "ignored"]
"""Whether values are guessed by their names alone, by their names before the order of like nodes, or by order alone."""


@dataclass(frozen=True)
class Guesses:
    """Guesses counterparts, except those of claims that were dropped."""

    _table: Table
    _dropped: frozenset[Hashable]
    _names: Names

    def of(self, level: Level, outputs: Mapping[str, str]) -> dict[str, str]:
        """Counterparts in the first model of values in the second."""
        left = {name for node in level.left.holder.node for name in node.output if name}
        right = [name for node in level.right.holder.node for name in node.output if name]
        guesses = dict(outputs)
        if self._names != "ignored":
            guesses = {name: name for name in right if name in left} | guesses
        if self._names != "only" and any(name not in guesses for name in right):
            in_order = list(self._by_order(level, guesses.keys(), set(guesses.values())))
            guesses |= {name: other for name, other in in_order if (level.path, other, name) not in self._dropped}
        return guesses

    def _by_order(self, level: Level, known: Set[str], taken: Set[str]) -> Iterator[tuple[str, str]]:
        """Pairs of values by order, from like nodes, if both sides have as many of them."""
        left = self._kinds(level.left, taken)
        right = self._kinds(level.right, known) if left else {}
        for kind, nodes in right.items():
            others = left.get(kind, [])
            if len(others) == len(nodes):
                for other, node in zip(others, nodes, strict=True):
                    yield from ((b, a) for a, b in zip(other.output, node.output, strict=True) if a and b)

    def _kinds(self, place: Place, named: Set[str]) -> dict[object, list[NodeProto]]:
        """The nodes that compute no value of these names, grouped by operator and attributes.

        What is inside a node may differ.
        """
        found: dict[object, list[NodeProto]] = {}
        for node in place.holder.node:
            if named.isdisjoint(node.output) and not is_constant(node):
                kind: Hashable = node.domain, node.op_type, len(node.input)
                if not any(True for _ in subgraphs(node)):
                    kind = self._table.signature(node, {}, place.opsets)
                found.setdefault((kind, len(node.output)), []).append(node)
        return found
