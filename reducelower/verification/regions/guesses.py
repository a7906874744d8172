"""Guesses which values of two graphs correspond: by name, and by the order of like nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from onnx import NodeProto

from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.claims import Level
from reducelower.verification.regions.numbering import Numbers, Table
from reducelower.verification.regions.places import Place

__all__ = ["Guesses", "Names", "is_constant"]

Names = Literal["hints", "kept", "ignored"]
"""What equal names of values mean."""


@dataclass(frozen=True)
class Guesses:
    """Guesses counterparts, except those of claims that were dropped."""

    _table: Table
    _dropped: frozenset[Hashable]
    _names: Names

    def of(self, level: Level, outputs: Mapping[str, str]) -> dict[str, str]:
        """Counterparts in the first model of values in the second: first by name, then by order.

        Once a guess was dropped, names may mislead, and come last.
        """
        left = {name for node in level.left.holder.node for name in node.output if name}
        right = [name for node in level.right.holder.node for name in node.output if name]
        named = {name: name for name in right if name in left and (level.path, name, name) not in self._dropped}
        if self._names == "kept":
            return {**named, **outputs}  # a conversion keeps names
        guesses = {**({} if self._dropped or self._names == "ignored" else named), **outputs}
        if any(name not in guesses for name in right):
            in_order = list(self._by_order(level, guesses.keys(), set(guesses.values())))
            guesses |= {name: other for name, other in in_order if (level.path, other, name) not in self._dropped}
        taken = set(guesses.values())
        return {name: name for name in named if self._names == "hints" and name not in taken} | guesses

    def _by_order(self, level: Level, known: Set[str], taken: Set[str]) -> Iterator[tuple[str, str]]:
        """Pairs of values by order, from like nodes, if both sides have as many of them."""
        left = self._kinds(level.left, level.left_numbers, taken)
        right = self._kinds(level.right, level.right_numbers, known) if left else {}
        for kind, nodes in right.items():
            others = left.get(kind, [])
            if len(others) == len(nodes):
                for other, node in zip(others, nodes, strict=True):
                    yield from ((b, a) for a, b in zip(other.output, node.output, strict=True) if a and b)

    def _kinds(self, place: Place, numbers: Numbers, named: Set[str]) -> dict[object, list[NodeProto]]:
        """The nodes that compute no value of these names, grouped by operator, attributes and constants.

        What is inside a node may differ.
        """
        unnamed = [node for node in place.holder.node if named.isdisjoint(node.output) and not is_constant(node)]
        constants = self._constants(place, numbers) if unnamed else {}
        found: dict[object, list[NodeProto]] = {}
        for node in unnamed:
            kind: Hashable = node.domain, node.op_type, len(node.input)
            if not any(subgraphs(node)):
                kind = self._table.signature(node, constants, place.opsets)
            found.setdefault(self._table.of(("kind", kind, len(node.output))), []).append(node)
        return found

    def _constants(self, place: Place, known: Numbers) -> Numbers:
        """The numbers of constants only, which distinguish like nodes wherever they stand."""
        numbers: Numbers = {}
        inputs = {value.name for value in place.holder.input}
        names = (tensor.name for tensor in place.holder.initializer)
        numbers.update((name, known[name]) for name in names if name not in inputs and name in known)
        for node in place.holder.node:
            if is_constant(node):
                self._table.add(node, numbers, place.opsets)
        return numbers


def is_constant(node: NodeProto) -> bool:
    """Whether a node is a Constant."""
    return node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS
