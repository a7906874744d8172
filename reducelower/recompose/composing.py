"""Finding normalizations and activations that one graph spells out, and deciding which of them to put together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.recompose.composites import Place, replacement
from reducelower.recompose.expressions import Form, anchors, forms_of, known_composites
from reducelower.recompose.matching import Surroundings
from reducelower.recompose.unify import found_at
from reducelower.scope.graph import GraphScope

__all__ = ["Composed", "FormTable", "Left", "compose"]

_MOST = 64
"""Values behind one anchor that may be the result of a form."""

_SHARED = frozenset({"Cast", "Identity"})
"""What stays where something else reads it as well, and is no reason to leave the rest."""


@dataclass(frozen=True)
class Left:
    """Something that looks like an operator and was left as it is.

    Attributes:
        op_type: the operator.
        node: name of the node that yields the result, or its operator and position.
        graph: path of its graph.
        why: what is in the way.
        by_opset: whether another opset version would do.
    """

    op_type: str
    node: str
    graph: str
    why: str
    by_opset: bool = False


@dataclass(frozen=True)
class Composed:
    """What becomes one operator.

    Attributes:
        form: the form that it had.
        last: position of the node that yields the result.
        spelled: positions of the nodes that it was spelled out with.
        region: positions of those that go.
        nodes: what comes in their place.
    """

    form: Form
    last: int
    spelled: frozenset[int]
    region: frozenset[int]
    nodes: list[NodeProto] = field(repr=False)


class FormTable:
    """The forms that are looked for.

    Attributes:
        by_end: those whose result a node of an operator may yield.
        anchors: operators without which there is no form.
        inner: all operators that forms are made of.
        farthest: the most nodes from an anchor to a result.
    """

    def __init__(self, ops: Collection[str] | None) -> None:
        """Gather the forms of some operators; None means all."""
        wanted = [op_type for op_type in known_composites() if ops is None or op_type in ops]
        forms = [form for op_type in wanted for form in forms_of(op_type)]
        self.by_end: dict[str, list[Form]] = {}
        for form in forms:
            for end in form.ends:
                self.by_end.setdefault(end, []).append(form)
        found = [anchors(form) for form in forms]
        self.anchors = frozenset(op_type for each in found for op_type in each.operators)
        self.inner = frozenset(op_type for each in found for op_type in each.inner)
        self.farthest = max((each.farthest for each in found), default=0)


def compose(scope: GraphScope, surroundings: Surroundings, table: FormTable) -> tuple[list[Composed], list[Left]]:
    """Find what is spelled out in one graph.

    Where several forms overlap the largest is taken, from the results back. A value that is read elsewhere as well
    keeps its form from being taken, unless all that read it go.
    """
    accepted: list[tuple[Place, Composed]] = []
    refused: list[tuple[frozenset[int], Left]] = []
    taken: set[int] = set()
    blocked: set[int] = set()
    lasts: set[int] = set()
    for last in _results(surroundings, table):
        if last in taken or last in blocked:
            continue
        chosen = _chosen(last, scope, surroundings, table, refused, blocked)
        if chosen is not None and not lasts & chosen[1].region:
            accepted.append(chosen)
            lasts.add(last)
            taken |= chosen[1].region
    refused += _settle(accepted, scope, surroundings)
    gone = {index for _, composed in accepted for index in composed.region}
    for place, composed in accepted:
        place.settle(composed.nodes)
    return [composed for _, composed in accepted], _told(refused, gone)


def _results(surroundings: Surroundings, table: FormTable) -> list[int]:
    """Positions of the nodes that may yield the result of a form, the last first."""
    found: set[int] = set()
    for index, node in enumerate(surroundings.nodes):
        if node.op_type in table.anchors and node.domain in DEFAULT_DOMAINS:
            found.update(_behind(index, surroundings, table))
    return sorted((index for index in found if surroundings.nodes[index].op_type in table.by_end), reverse=True)


def _behind(anchor: int, surroundings: Surroundings, table: FormTable) -> Iterable[int]:
    """Positions of what is made of the result of an anchor by operators of which forms are made."""
    found, border = {anchor: None}, [anchor]
    for _ in range(table.farthest):
        names = [name for index in border for name in surroundings.nodes[index].output]
        readers = {reader for name in names for reader in surroundings.readers.get(name, ())} - found.keys()
        border = sorted(reader for reader in readers if surroundings.nodes[reader].op_type in table.inner)
        found.update(dict.fromkeys(border))
        if not border or len(found) > _MOST:
            break
    return found


def _chosen(
    last: int,
    scope: GraphScope,
    surroundings: Surroundings,
    table: FormTable,
    refused: list[tuple[frozenset[int], Left]],
    blocked: set[int],
) -> tuple[Place, Composed] | None:
    """The largest form that ends in a node and is the operator; the others are noted as refused."""
    node = surroundings.nodes[last]
    if node.domain not in DEFAULT_DOMAINS or len(node.output) != 1:
        return None
    places = [
        Place(form, found, node.output[0], scope, surroundings)
        for form in table.by_end[node.op_type]
        for found in found_at(form.result, node.output[0], surroundings, scope)
    ]
    for place in sorted(places, key=lambda place: len(place.found.nodes), reverse=True):
        answer = replacement(place)
        if answer.nodes:
            return place, Composed(place.form, last, place.found.nodes, place.found.nodes, answer.nodes)
        refused.append((place.found.nodes, _left(place, last, answer.why, by_opset=answer.by_opset)))
        if answer.wholly:
            blocked.update(place.found.nodes)
    return None


def _left(place: Place, last: int, why: str, *, by_opset: bool = False) -> Left:
    node = place.surroundings.nodes[last]
    return Left(place.form.op_type, node.name or f"{node.op_type}#{last}", place.scope.path, why, by_opset)


def _settle(
    accepted: list[tuple[Place, Composed]], scope: GraphScope, surroundings: Surroundings
) -> Iterator[tuple[frozenset[int], Left]]:
    """Give up what computes a value on the way that something reads which stays; keep casts that are read elsewhere."""
    while True:
        gone = {index for _, composed in accepted for index in composed.region}
        needed = {name for _, composed in accepted for node in composed.nodes for name in node.input}
        for at, (place, composed) in enumerate(accepted):
            read = _read_elsewhere(composed, gone, needed, surroundings)
            kept = frozenset(index for index in read if _may_stay(index, composed, surroundings))
            if kept == read:
                if kept:
                    accepted[at] = (place, replace(composed, region=composed.region - kept))
                    break
                continue
            del accepted[at]
            name = surroundings.nodes[min(read - kept)].output[0]
            yield (
                composed.region,
                _left(place, composed.last, f"{name!r}, which it computes on the way, is read elsewhere"),
            )
            break
        else:
            return


def _may_stay(index: int, composed: Composed, surroundings: Surroundings) -> bool:
    """Whether a node of a region only hands on what comes from outside."""
    node = surroundings.nodes[index]
    return node.op_type in _SHARED and surroundings.producers.get(node.input[0]) not in composed.region


def _read_elsewhere(composed: Composed, gone: set[int], needed: set[str], surroundings: Surroundings) -> frozenset[int]:
    """Positions of the nodes of a region that yield what a node that stays reads, or the graph."""
    return frozenset(
        index
        for index in composed.region - {composed.last}
        for name in surroundings.nodes[index].output
        if name in surroundings.named or name in needed or not surroundings.readers.get(name, set()) <= gone
    )


def _told(refused: list[tuple[frozenset[int], Left]], gone: set[int]) -> list[Left]:
    """What to say was left: of what overlaps, what another opset version would make good, or else the largest.

    Nothing is said of what became part of something else.
    """
    told: list[Left] = []
    seen = set(gone)
    for region, left in sorted(refused, key=lambda item: (item[1].by_opset, len(item[0])), reverse=True):
        if not region & seen:
            told.append(left)
            seen |= region
    return told
