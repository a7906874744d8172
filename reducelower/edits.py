"""What becomes of the nodes of one graph or function body, kept until everything is known and then put in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from onnx import GraphProto, NodeProto, TypeProto

from reducelower.scope import Scope
from reducelower.templates import Patches

__all__ = ["Edit"]


@dataclass(eq=False)
class Edit:
    """One graph or function body and what becomes of its nodes.

    `replaced` holds, by position of the source node, the nodes that come in its place; the source node itself may be
    among them.
    """

    scope: Scope
    replaced: dict[int, list[NodeProto]] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)
    patches: Patches = field(default_factory=dict)

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
        # `next` takes a default as its second argument: here the node, whose turn it is and which is not looked at.
        nodes.sort(key=partial(next, iter(places)))
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
