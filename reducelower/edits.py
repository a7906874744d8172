"""What becomes of the nodes of one graph or function body, kept until everything is known and then put in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnx import AttributeProto, GraphProto, NodeProto, TypeProto

from reducelower.build import copy_marks
from reducelower.names import Names
from reducelower.scope import Scope

__all__ = ["Edit", "Recipe", "Template"]


@dataclass(eq=False)
class Edit:
    """One graph or function body and what becomes of its nodes.

    `replaced` holds, by position of the source node, the nodes that come in its place; the source node itself may be
    among them.
    """

    scope: Scope
    replaced: dict[int, list[NodeProto]] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)

    def splice(self) -> dict[int, tuple[int, int]]:
        """Put replacements in place without moving any other node; positions of sites: first node and count."""
        nodes = self.scope.holder.node
        count = len(nodes)
        if self.scope.added_nodes:
            self.replaced[-1] = self.scope.added_nodes
        if not self.replaced:
            return {index: (index, 1) for index in self.sites}
        # Sorting moves pointers, not messages: new nodes are appended, then every node is given its place.
        places = [index << 20 for index in range(count)]
        removed = 0
        for index, replacement in self.replaced.items():
            source = nodes[index] if index >= 0 else None
            kept = False
            for number, node in enumerate(replacement):
                if node is source:
                    places[index] = (index << 20) + number
                    kept = True
                else:
                    nodes.add().CopyFrom(node)
                    places.append((index << 20) + number)
            if source is not None and not kept:
                places[index] = count << 20
                removed += 1
        order = iter(places)
        nodes.sort(key=lambda _: next(order))
        if removed:
            del nodes[len(nodes) - removed :]
        return self._positions()

    def _positions(self) -> dict[int, tuple[int, int]]:
        positions: dict[int, tuple[int, int]] = {}
        shift = 0
        for index in sorted({*self.replaced, *self.sites}):
            count = len(self.replaced[index]) if index in self.replaced else 1
            if index in self.sites:
                positions[index] = (index + shift, count)
            shift += count - (index >= 0)
        return positions

    def state_types(self, types: Mapping[str, TypeProto]) -> None:
        """Add value_info for new values of a graph."""
        holder = self.scope.holder
        if not types or not isinstance(holder, GraphProto):
            return
        for index in sorted(self.replaced):
            for node in self.replaced[index]:
                for name in node.output:
                    if name in types:
                        stated = holder.value_info.add(name=name)
                        stated.type.CopyFrom(types[name])
                        for dim in stated.type.tensor_type.shape.dim:
                            # Symbols that inference makes up mean nothing outside the body it looked at.
                            if dim.dim_param.startswith("unk__"):
                                dim.Clear()


@dataclass(frozen=True)
class Template:
    """What comes in place of a node, to be used again for nodes that are the same up to names.

    Attributes:
        label: what the report calls it.
        nodes: the nodes that came in place of the first node of the kind.
        source: that node, as it was.
        derived: names that were derived from its own on the way: stem, tail, name.
        released: constants it ceases to read.
        types: types of the new values that are known.
    """

    label: str
    nodes: list[NodeProto]
    source: NodeProto
    derived: list[tuple[str, str, str]]
    released: list[tuple[Scope, str]]
    types: list[tuple[str, TypeProto]]

    def nodes_for(self, node: NodeProto, names: Names) -> tuple[list[NodeProto], list[tuple[str, TypeProto]]]:
        """The nodes that come in place of another node of the kind, and the types of their values."""
        first = self.source
        renamed = {first.input[0]: node.input[0], **dict(zip(first.output, node.output, strict=True)), "": ""}
        stems = {first.name or first.output[0]: node.name or node.output[0]}
        for stem, tail, name in self.derived:
            # A replacement of a replacement takes its stem from a name that was itself derived.
            renamed[name] = stems[name] = names.fresh(stems.get(stem, stem), tail)
        made = []
        for pattern in self.nodes:
            copy = NodeProto()
            copy.CopyFrom(pattern)
            copy.input[:] = [renamed.get(name, name) for name in pattern.input]
            copy.output[:] = [renamed.get(name, name) for name in pattern.output]
            copy.name = renamed.get(pattern.name, pattern.name)
            if node.output[0] in copy.output:
                copy_marks(node, copy)
            made.append(copy)
        return made, [(renamed[name], known) for name, known in self.types]


@dataclass(frozen=True)
class Recipe:
    """What becomes of a node that changes where it stands, by nothing but its attributes and its constant inputs.

    Attributes:
        label: what the report calls it; empty if the node stays as it is.
        attributes: its attributes afterwards.
        inputs: its inputs from the second on afterwards.
        released: constants it ceases to read.
    """

    label: str
    attributes: list[AttributeProto]
    inputs: list[str]
    released: list[tuple[Scope, str]]
