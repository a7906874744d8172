"""Which sizes are not zero whenever a node is of use, because another node would have no result.

A Gather with constant indices reads an element of its axis, and a Reshape with allowzero can compute a missing size
only if no other is zero. If all outputs of the model that depend on a node also depend on such a witness, the
size is not zero in any run in which the node matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.graph import read_by
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.types.known import Known
from reducelower.types.sizes import Polynomial, Size, is_never_negative

__all__ = ["Witnesses"]


class Witnesses:
    """The witnesses of one graph."""

    def __init__(self, nodes: Sequence[NodeProto], known: Callable[[str], Known], outputs: Sequence[str]) -> None:
        """Take the nodes of the graph, a function for the facts about its values, and the names of its outputs."""
        self._reached = _outputs_reached(nodes, outputs)
        self._witnesses = [
            (size.atoms, place)
            for place, node in enumerate(nodes)
            for size in _not_zero(node, known)
            if isinstance(size, Polynomial) and len(size.terms) == 1
        ]

    def never_zero(self, place: int) -> frozenset[int]:
        """The atoms that are not zero whenever a node's outputs matter."""
        reached = self._reached[place]
        atoms_of_witnesses = (
            atoms for atoms, witness in self._witnesses if witness != place and not reached & ~self._reached[witness]
        )
        return frozenset().union(*atoms_of_witnesses)


def _outputs_reached(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[int]:
    """For each node, the outputs that depend on it, as bits."""
    reached = [0] * len(nodes)
    by_name = {name: 1 << place for place, name in enumerate(outputs)}
    for place in range(len(nodes) - 1, -1, -1):
        for name in nodes[place].output:
            reached[place] |= by_name.get(name, 0)
        for name in read_by(nodes[place]):
            by_name[name] = by_name.get(name, 0) | reached[place]
    return reached


def _not_zero(node: NodeProto, known: Callable[[str], Known]) -> Iterator[Size]:
    """The sizes that are not zero if a node has a result."""
    if node.domain not in DEFAULT_DOMAINS or node.op_type not in ("Gather", "Reshape"):
        return
    try:
        if node.op_type == "Gather":
            data, indices = (known(name) for name in node.input)
            axis = value_of(node, "axis", 0)
            if data.shape is not None and data.elements is None and indices.numbers and axis < len(data.shape):
                yield data.shape[axis]
        elif value_of(node, "allowzero", 0):
            target = known(node.input[1]).elements or ()
            if -1 in target:
                yield from (size for size in target if size is not None and is_never_negative(size))
    except (IndexError, RefusedError, TypeError, ValueError):  # of a broken model
        return
