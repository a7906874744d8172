"""Finding operators that one graph spells out, and deciding which of them to put together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from reducelower.recompose.composites import replacement
from reducelower.recompose.expressions import Form
from reducelower.recompose.place import Place
from reducelower.recompose.surroundings import Surroundings
from reducelower.recompose.unify import Finder
from reducelower.scope.graph import GraphScope

__all__ = ["Composed", "Left", "compose"]

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


@dataclass(eq=False)
class Composed:
    """What becomes one operator.

    Attributes:
        place: where it stands.
        last: position of the node that yields the result.
        nodes: what comes in its place.
        region: positions of the nodes that go.
    """

    place: Place
    last: int
    nodes: list[NodeProto] = field(repr=False)
    region: frozenset[int]

    @property
    def form(self) -> Form:
        """The form that it had."""
        return self.place.form

    @property
    def spelled(self) -> frozenset[int]:
        """Positions of the nodes that it was spelled out with, those included that stay for others."""
        return self.place.found.nodes


def compose(
    scope: GraphScope, surroundings: Surroundings, finder: Finder, taken: Collection[int] = ()
) -> tuple[list[Composed], list[Left]]:
    """Find what is spelled out in one graph.

    Where several forms overlap the largest is taken, from the results back. A value that is read elsewhere as well
    keeps its form from being taken, unless all that read it go.

    Args:
        scope: the graph.
        surroundings: who yields and reads what there.
        finder: finds the forms that are looked for.
        taken: positions of nodes that are spoken for.
    """
    accepted: list[Composed] = []
    refused: list[tuple[frozenset[int], Left]] = []
    spoken_for = set(taken)
    blocked: set[int] = set()
    lasts: set[int] = set()
    for last in finder.ends(surroundings):
        if last in spoken_for or last in blocked:
            continue
        places = [Place(found, last, scope, surroundings) for found in finder.found_at(last, surroundings, scope)]
        for place in sorted(places, key=lambda place: len(place.found.nodes), reverse=True):
            region = place.found.nodes
            if not region.isdisjoint(taken) or not (place.is_told or surroundings.is_inside(region, last)):
                continue
            answer = replacement(place)
            if answer.nodes:
                if region.isdisjoint(lasts):
                    accepted.append(Composed(place, last, answer.nodes, region))
                    lasts.add(last)
                    spoken_for |= region
                break
            if answer.why:
                refused.append((region, _left(place, answer.why, by_opset=answer.by_opset)))
            if answer.wholly:
                blocked |= region
    settled, given_up = _settle(accepted, surroundings)
    refused += [(composed.region, _left(composed.place, why)) for composed, why in given_up]
    for composed in settled:
        composed.place.settle(composed.nodes)
    return settled, _told(refused, {index for composed in settled for index in composed.region})


def _left(place: Place, why: str, *, by_opset: bool = False) -> Left:
    node = place.surroundings.nodes[place.last]
    return Left(place.form.op_type, node.name or f"{node.op_type}#{place.last}", place.scope.path, why, by_opset)


class _Reads:
    """How often nodes that go read each value."""

    def __init__(self, accepted: Sequence[Composed], surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._going: Counter[int] = Counter()
        self.by_going: Counter[str] = Counter()
        self.by_new = Counter(name for composed in accepted for node in composed.nodes for name in node.input)
        self.owners: dict[int, list[Composed]] = {}
        for composed in accepted:
            for index in composed.region:
                self.owners.setdefault(index, []).append(composed)
                self._going[index] += 1
                if self._going[index] == 1:
                    self.by_going.update(surroundings.reads_of(index))

    def keep(self, nodes: Collection[int]) -> Iterator[Composed]:
        """Let nodes stay, as far as one that takes them is concerned; whom it touches."""
        for index in nodes:
            self._going[index] -= 1
            if not self._going[index]:
                read = self._surroundings.reads_of(index)
                self.by_going.subtract(read)
                for name in read:
                    yield from self.owners.get(self._surroundings.producers.get(name, -1), ())

    def are_elsewhere(self, composed: Composed) -> frozenset[int]:
        """Positions of the nodes of a region that yield what a node that stays reads, or the graph."""
        around = self._surroundings
        return frozenset(
            index
            for index in composed.region
            if index != composed.last
            for name in around.nodes[index].output
            if name in around.named or self.by_new[name] or around.reads[name] > self.by_going[name]
        )


def _settle(
    accepted: Sequence[Composed], surroundings: Surroundings
) -> tuple[list[Composed], list[tuple[Composed, str]]]:
    """Give up what computes a value on the way that something reads which stays; keep casts that are read elsewhere."""
    reads = _Reads(accepted, surroundings)
    given_up: dict[int, tuple[Composed, str]] = {}
    waiting = deque(accepted)
    while waiting:
        composed = waiting.popleft()
        if id(composed) in given_up:
            continue
        read = reads.are_elsewhere(composed)
        kept = frozenset(index for index in read if _may_stay(index, composed, surroundings))
        if kept == read:
            composed.region -= kept
            waiting.extend(reads.keep(kept))
            continue
        name = surroundings.nodes[min(read - kept)].output[0]
        given_up[id(composed)] = composed, f"{name!r}, which it computes on the way, is read elsewhere"
        reads.by_new.subtract(name for node in composed.nodes for name in node.input)
        waiting.extend(reads.keep(composed.region))
    return [composed for composed in accepted if id(composed) not in given_up], list(given_up.values())


def _may_stay(index: int, composed: Composed, surroundings: Surroundings) -> bool:
    """Whether a node of a region only hands on what comes from outside."""
    node = surroundings.nodes[index]
    return node.op_type in _SHARED and surroundings.producers.get(node.input[0]) not in composed.region


def _told(refused: Sequence[tuple[frozenset[int], Left]], gone: set[int]) -> list[Left]:
    """What to say was left: of what overlaps, what another opset version would make good, or else the largest.

    Nothing is said of what became part of something else.
    """
    told: list[Left] = []
    seen = set(gone)
    for region, left in sorted(refused, key=lambda item: (item[1].by_opset, len(item[0])), reverse=True):
        if region.isdisjoint(seen):
            told.append(left)
            seen |= region
    return told
