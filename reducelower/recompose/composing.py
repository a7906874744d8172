"""Find the operators that a graph spells out, and decide which of them to compose.

Of equal candidates only one is searched.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain

from onnx import NodeProto, numpy_helper

from reducelower.legalization.memo.template import fill
from reducelower.recompose.composites import replacement
from reducelower.recompose.expressions import Form
from reducelower.recompose.place import Answer, Place
from reducelower.recompose.search import HANDING_ON, Found, search
from reducelower.recompose.surroundings import Surroundings
from reducelower.recompose.view import OUTPUT, Remembered, View
from reducelower.scope.blanks import blank
from reducelower.scope.graph import GraphScope

__all__ = ["Candidate", "Composed", "Finder", "Left", "compose"]


@dataclass(frozen=True)
class Left:
    """Something that looks like an operator but stays; `by_opset` if another opset version would allow it."""

    op_type: str
    node: str
    graph: str
    why: str
    by_opset: bool = False


@dataclass(eq=False, slots=True)
class Composed:
    """Nodes that become one operator; positions are those in the graph.

    Attributes:
        last: the node that computes the result.
        spelled: all nodes of the form, including those that others still need.
        names: the names of the blanks in its answer.
        region: the nodes to remove.
    """

    form: Form
    last: int
    spelled: frozenset[int]
    answer: Answer
    names: dict[str, str]
    region: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        """Start with all nodes; `region` shrinks as other consumers are found."""
        self.region = self.spelled

    @property
    def reads(self) -> Iterator[str]:
        """The existing values that the new nodes read."""
        return (self.names[called] for node in self.answer.nodes for called in node.input if called in self.names)

    def settle(self, scope: GraphScope) -> list[NodeProto]:
        """The new nodes, after their constants were added and their values named."""
        answer, names = self.answer, self.names
        for value in answer.released:
            scope.release(names[blank(value)])
        for called, tail in answer.between.items():
            names[called] = scope.ground.names.fresh(names[blank(OUTPUT)], tail)
        for called, (constant, tail) in answer.constants.items():
            names[called] = scope.add_constant(constant, numpy_helper.from_array(constant), tail)
        return [_in_names(node, names) for node in answer.nodes]


def _in_names(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    made = NodeProto(op_type=node.op_type, attribute=node.attribute, name=names.get(node.name, ""))
    made.input.extend([names[called] for called in node.input])
    made.output.extend([names[called] for called in node.output])
    return made


def compose(
    scope: GraphScope, surroundings: Surroundings, finder: Finder, group: int, taken: Collection[int] = ()
) -> tuple[list[Composed], list[Left]]:
    """Find the operators in one graph.

    Of overlapping forms the largest is taken, starting from the results. A form is not taken if something outside reads
    one of its inner values, unless that consumer goes as well.
    """
    accepted: list[Composed] = []
    refused: list[tuple[frozenset[int], Left]] = []
    spoken_for = set(taken)
    blocked: set[int] = set()
    lasts: set[int] = set()

    def left(last: int, form: Form, why: str, *, by_opset: bool = False) -> Left:
        node = surroundings.nodes[last]
        return Left(form.op_type, node.name or f"{node.op_type}#{last}", scope.path, why, by_opset)

    for last in reversed(surroundings.positions(finder.ends[group])):
        if last in spoken_for or last in blocked:
            continue
        view = View(surroundings.outputs[last][0], surroundings)
        for candidate in finder.found_by(group, view):
            form, region = candidate.form, frozenset(map(view.position, candidate.found.nodes))
            if not region.isdisjoint(taken) or not (form.is_told or surroundings.is_inside(region, last)):
                continue
            answer = candidate.answer.of(view)
            if answer.nodes:
                if region.isdisjoint(lasts):
                    accepted.append(Composed(form, last, region, answer, view.blanks))
                    lasts.add(last)
                    spoken_for |= region
                break
            if answer.why:
                refused.append((region, left(last, form, fill(answer.why, view.blanks), by_opset=answer.by_opset)))
            if answer.wholly:
                blocked |= region
    settled, given_up = _settle(accepted, surroundings)
    refused += [(composed.region, left(composed.last, composed.form, why)) for composed, why in given_up]
    return settled, _told(refused, {index for composed in settled for index in composed.region})


class _Reads:
    """How often each value is read by nodes that are to be removed."""

    def __init__(self, accepted: Sequence[Composed], surroundings: Surroundings) -> None:
        self._accepted, self._surroundings = accepted, surroundings
        self._going = Counter(chain.from_iterable(composed.region for composed in accepted))
        self.by_going = Counter(chain.from_iterable(map(surroundings.reads_of, self._going)))
        self.by_new = Counter(chain.from_iterable(composed.reads for composed in accepted))

    @cached_property
    def _owners(self) -> Mapping[int, Sequence[Composed]]:
        owners: dict[int, list[Composed]] = {}
        for composed in self._accepted:
            for index in composed.spelled:
                owners.setdefault(index, []).append(composed)
        return owners

    def keep(self, nodes: Collection[int]) -> Iterator[Composed]:
        """Keep nodes that one composed operator wanted to remove; yield the operators whose regions this affects."""
        for index in nodes:
            self._going[index] -= 1
            if not self._going[index]:
                read = self._surroundings.reads_of(index)
                self.by_going.subtract(read)
                for name in read:
                    yield from self._owners.get(self._surroundings.producers.get(name, -1), ())

    def are_elsewhere(self, composed: Composed) -> frozenset[int]:
        """Positions of the region's nodes whose outputs are read by remaining nodes or the graph."""
        around = self._surroundings
        return frozenset(
            index
            for index in composed.region
            if index != composed.last
            for name in around.outputs[index]
            if name in around.named or name in self.by_new or around.reads.get(name, 0) > self.by_going.get(name, 0)
        )


def _settle(
    accepted: Sequence[Composed], surroundings: Surroundings
) -> tuple[list[Composed], list[tuple[Composed, str]]]:
    """Give up operators with an inner value that something else reads; keep casts that are read elsewhere."""
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
        reads.by_new -= Counter(composed.reads)
        waiting.extend(reads.keep(composed.region))
    return [composed for composed in accepted if id(composed) not in given_up], list(given_up.values())


def _may_stay(index: int, composed: Composed, surroundings: Surroundings) -> bool:
    """Whether a node of a region only passes on a value from outside."""
    node = surroundings.nodes[index]
    return node.op_type in HANDING_ON and surroundings.producers.get(node.input[0]) not in composed.region


def _told(refused: Sequence[tuple[frozenset[int], Left]], gone: set[int]) -> list[Left]:
    """What to report as left: of overlapping candidates the one that another opset version allows, else the largest.

    Candidates that became part of something else are not reported.
    """
    told: list[Left] = []
    seen = set(gone)
    for region, left in sorted(refused, key=lambda item: (item[1].by_opset, len(item[0])), reverse=True):
        if region.isdisjoint(seen):
            told.append(left)
            seen |= region
    return told


@dataclass(frozen=True)
class Candidate:
    """A form that was found, shared by all equal places, and its replacement."""

    form: Form
    found: Found
    answer: Remembered[Answer]


class Finder:
    """Finds groups of forms in graphs of one opset version.

    Attributes:
        ends: per group, the operators that one of its forms may end with.
    """

    def __init__(self, groups: Sequence[Sequence[Form]], opset: int, *, memo: bool) -> None:
        """Take the forms to find; each group is searched by itself. With a memo, equal places are looked at once."""
        self.ends = [frozenset(end for form in forms for end in form.ends) for forms in groups]
        self._found = [Remembered(partial(_search, forms, opset, memo), memo=memo) for forms in groups]

    def found_by(self, group: int, view: View) -> Sequence[Candidate]:
        """The forms of a group that end in this value, the largest first."""
        return self._found[group].of(view)


def _search(forms: Sequence[Form], opset: int, memo: bool, view: View) -> list[Candidate]:
    made = view.made(OUTPUT)
    end = "" if made is None else made[0].op_type
    found = [(form, state) for form in forms if end in form.ends for state in search(form.result, view)]
    found.sort(key=lambda pair: len(pair[1].nodes), reverse=True)
    return [
        Candidate(form, state, Remembered(partial(_answer, form, state, opset), memo=memo)) for form, state in found
    ]


def _answer(form: Form, found: Found, opset: int, view: View) -> Answer:
    return replacement(Place(form, found, view, opset))
