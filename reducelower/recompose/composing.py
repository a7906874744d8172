"""Find the operators that a graph spells out, and decide which of them to compose.

Of equal places only one is searched.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain

from onnx import NodeProto, numpy_helper

from reducelower.recompose.composites import replacement
from reducelower.recompose.expressions import Form
from reducelower.recompose.place import Answer, Place
from reducelower.recompose.search import PASSING_ON, Match, search
from reducelower.recompose.surroundings import Surroundings
from reducelower.recompose.view import OUTPUT, Memoized, View
from reducelower.scope.blanks import blank, fill
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
        form_nodes: all nodes of the form, including those that other nodes still need.
        names: the names of the blanks in its answer.
        region: the nodes to remove.
    """

    form: Form
    last: int
    form_nodes: frozenset[int]
    answer: Answer
    names: dict[str, str]
    region: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        """Start with all nodes; `region` shrinks as other consumers are found."""
        self.region = self.form_nodes

    @property
    def reads(self) -> Iterator[str]:
        """The existing values that the new nodes read."""
        return (self.names[called] for node in self.answer.nodes for called in node.input if called in self.names)

    def settle(self, scope: GraphScope) -> list[NodeProto]:
        """The new nodes; this adds their constants and names their values."""
        answer, names = self.answer, self.names
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
    scope: GraphScope, surroundings: Surroundings, finder: Finder, group: int, removed: Collection[int] = ()
) -> tuple[list[Composed], list[Left]]:
    """Find the operators in one graph.

    Of overlapping matches the largest is taken, starting from the results. A match is not taken if something outside
    reads one of its inner values, unless that reader is removed as well.
    """
    accepted: list[Composed] = []
    refused: list[tuple[frozenset[int], Left]] = []
    covered = set(removed)
    blocked: set[int] = set()
    ends: set[int] = set()

    def left(last: int, form: Form, why: str, *, by_opset: bool = False) -> Left:
        node = surroundings.nodes[last]
        return Left(form.op_type, node.name or f"{node.op_type}#{last}", scope.path, why, by_opset)

    for last in reversed(surroundings.positions(finder.ends[group])):
        if last in covered or last in blocked:
            continue
        view = View(surroundings.outputs[last][0], surroundings)
        for candidate in finder.candidates(group, view):
            form, region = candidate.form, frozenset(map(view.position, candidate.match.nodes))
            if not region.isdisjoint(removed) or not (form.is_reported or surroundings.is_inside(region, last)):
                continue
            answer = candidate.answer.of(view)
            if answer.nodes:
                if region.isdisjoint(ends):
                    accepted.append(Composed(form, last, region, answer, view.blanks))
                    ends.add(last)
                    covered |= region
                break
            if answer.why:
                refused.append((region, left(last, form, fill(answer.why, view.blanks), by_opset=answer.by_opset)))
            if answer.blocks_parts:
                blocked |= region
    settled, given_up = _settle(accepted, surroundings)
    refused += [(composed.region, left(composed.last, composed.form, why)) for composed, why in given_up]
    return settled, _reported(refused, {index for composed in settled for index in composed.region})


class _Reads:
    """How often each value is read, by nodes to be removed and by new nodes."""

    def __init__(self, accepted: Sequence[Composed], surroundings: Surroundings) -> None:
        self._accepted, self._surroundings = accepted, surroundings
        self._removed = Counter(chain.from_iterable(composed.region for composed in accepted))
        self.by_removed = Counter(chain.from_iterable(map(surroundings.reads_of, self._removed)))
        self.by_new = Counter(chain.from_iterable(composed.reads for composed in accepted))

    @cached_property
    def _owners(self) -> Mapping[int, Sequence[Composed]]:
        owners: dict[int, list[Composed]] = {}
        for composed in self._accepted:
            for index in composed.form_nodes:
                owners.setdefault(index, []).append(composed)
        return owners

    def keep(self, nodes: Collection[int]) -> Iterator[Composed]:
        """Keep nodes that one composed operator would remove; yield the operators whose regions this affects."""
        for index in nodes:
            self._removed[index] -= 1
            if not self._removed[index]:
                read = self._surroundings.reads_of(index)
                self.by_removed.subtract(read)
                for name in read:
                    yield from self._owners.get(self._surroundings.producers.get(name, -1), ())

    def read_elsewhere(self, composed: Composed) -> frozenset[int]:
        """Positions of the region's nodes whose outputs remaining nodes, new nodes or the graph read."""
        around = self._surroundings
        return frozenset(
            index
            for index in composed.region
            if index != composed.last
            for name in around.outputs[index]
            if name in around.named or name in self.by_new or around.reads.get(name, 0) > self.by_removed.get(name, 0)
        )


def _settle(
    accepted: Sequence[Composed], surroundings: Surroundings
) -> tuple[list[Composed], list[tuple[Composed, str]]]:
    """Give up operators with an inner value that something else reads, but keep nodes that only pass on a value."""
    reads = _Reads(accepted, surroundings)
    given_up: dict[int, tuple[Composed, str]] = {}
    waiting = deque(accepted)
    while waiting:
        composed = waiting.popleft()
        if id(composed) in given_up:
            continue
        read = reads.read_elsewhere(composed)
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
    return node.op_type in PASSING_ON and surroundings.producers.get(node.input[0]) not in composed.region


def _reported(refused: Sequence[tuple[frozenset[int], Left]], removed: set[int]) -> list[Left]:
    """The matches to report as left: of overlapping ones that which another opset version allows, else the largest.

    Matches with removed nodes are not reported.
    """
    reported: list[Left] = []
    seen = set(removed)
    for region, left in sorted(refused, key=lambda item: (item[1].by_opset, len(item[0])), reverse=True):
        if region.isdisjoint(seen):
            reported.append(left)
            seen |= region
    return reported


@dataclass(frozen=True)
class Candidate:
    """A match of a form and its replacement, shared by all equal places."""

    form: Form
    match: Match
    answer: Memoized[Answer]


class Finder:
    """Finds matches of groups of forms in graphs of one opset version.

    Attributes:
        ends: per group, the operators that one of its forms may end with.
    """

    def __init__(self, groups: Sequence[Sequence[Form]], opset: int, *, memo: bool) -> None:
        """Each group of forms is searched by itself. With a memo, equal places are searched once."""
        self.ends = [frozenset(end for form in forms for end in form.ends) for forms in groups]
        self._candidates = [Memoized(partial(_search, forms, opset, memo), memo=memo) for forms in groups]

    def candidates(self, group: int, view: View) -> Sequence[Candidate]:
        """The matches of a group that end in this value, the largest first."""
        return self._candidates[group].of(view)


def _search(forms: Sequence[Form], opset: int, memo: bool, view: View) -> list[Candidate]:
    made = view.made(OUTPUT)
    end = "" if made is None else made[0].op_type
    matches = [(form, match) for form in forms if end in form.ends for match in search(form.result, view)]
    matches.sort(key=lambda pair: len(pair[1].nodes), reverse=True)
    return [
        Candidate(form, match, Memoized(partial(_answer, form, match, opset), memo=memo)) for form, match in matches
    ]


def _answer(form: Form, match: Match, opset: int, view: View) -> Answer:
    return replacement(Place(form, match, view, opset))
