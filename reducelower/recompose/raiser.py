"""One pass over a model: find the operators that its graphs spell out, decide which of them to compose, and do it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from onnx import ModelProto

from reducelower.legalization.dead_code import remove_named, remove_unused
from reducelower.legalization.edits import REMOVED, Edit, Rewrite, sites_of, splice
from reducelower.model.attributes import copy_marks
from reducelower.model.graph import node_label
from reducelower.plan import Site
from reducelower.recompose.composites import TooOldError, replacement
from reducelower.recompose.expansions import Manner, expanded_forms
from reducelower.recompose.expressions import PASSING_ON, Form, forms_of, written_operators
from reducelower.recompose.operands import NotItError
from reducelower.recompose.place import Place
from reducelower.recompose.search import Search
from reducelower.recompose.surroundings import Surroundings
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground

__all__ = ["Left", "Raiser"]


class Left(NamedTuple):
    """Something that would be an operator at another opset version."""

    op_type: str
    node: str
    graph: str
    why: str


def compose(
    scope: GraphScope, graph: Surroundings, forms: Sequence[Form], search: Search, removed: Collection[int] = ()
) -> tuple[list[Place], list[Left]]:
    """Find the operators that some forms spell out in one graph.

    Of overlapping matches the largest is taken, starting from the results. A match is not taken if something outside
    reads one of its inner values, unless that reader is removed as well.
    """
    accepted: list[Place] = []
    too_old: list[tuple[Place, str]] = []
    covered = set(removed)
    ends: set[int] = set()
    by_end: dict[str, list[Form]] = {}
    for form in forms:
        for end in form.ends:
            by_end.setdefault(end, []).append(form)
    for last in reversed(range(len(graph.nodes))):
        ending = by_end.get(graph.op_types[last])
        if not ending or last in covered or not graph.outputs[last]:
            continue
        for place in _places(ending, search, graph, last, scope.opset):
            region = place.region
            if not region.isdisjoint(removed) or (place.form.is_reduction and not graph.is_inside(region, last)):
                continue
            try:
                place.nodes = replacement(place)
            except TooOldError as reason:
                too_old.append((place, str(reason)))
                continue
            except NotItError:
                continue
            if region.isdisjoint(ends):
                accepted.append(place)
                ends.add(last)
                covered |= region
            break
    settled = _settle(accepted, graph)
    return settled, list(_left(too_old, scope, {index for place in settled for index in place.region}))


def _places(forms: Sequence[Form], search: Search, graph: Surroundings, last: int, opset: int) -> list[Place]:
    """The matches of forms that end in a node, the largest first."""
    output = graph.outputs[last][0]
    possible = [form for form in forms if search.may_match(form.result, output)]
    found = ((form, match) for form in possible for match in search.matches(form, output))
    places = [Place(form, match, last, graph, opset) for form, match in found]
    return sorted(places, key=lambda place: len(place.match.nodes), reverse=True)


def _settle(accepted: Sequence[Place], graph: Surroundings) -> list[Place]:
    """Give up operators with an inner value that something else reads, but keep nodes that only pass on a value."""
    settled = list(accepted)
    is_settled = False
    while not is_settled:  # what is kept or given up reads values that others compute on the way
        is_settled = True
        removed = frozenset().union(*(place.region for place in settled))
        read = graph.named.union(*(place.reads for place in settled))
        for place in list(settled):
            inner = {name: index for index in place.region - {place.last} for name in graph.outputs[index]}
            outer = {index for name, index in inner.items() if name in read or not graph.readers[name] <= removed}
            kept = frozenset(index for index in outer if _may_stay(index, place, graph))
            is_settled &= not outer
            if kept == outer:
                place.region -= kept
            else:
                settled.remove(place)
    return settled


def _may_stay(index: int, place: Place, graph: Surroundings) -> bool:
    """Whether a node of a region only passes on a value from outside."""
    node = graph.nodes[index]
    return node.op_type in PASSING_ON and graph.producers.get(node.input[0]) not in place.region


def _left(too_old: Iterable[tuple[Place, str]], scope: GraphScope, removed: set[int]) -> Iterator[Left]:
    """What another opset version would allow: of overlapping matches the largest, and none with removed nodes."""
    seen = set(removed)
    for place, why in sorted(too_old, key=lambda item: len(item[0].region), reverse=True):
        if place.region.isdisjoint(seen):
            yield Left(place.form.op_type, node_label(place.graph.nodes[place.last], place.last), scope.path, why)
            seen |= place.region


class Raiser:
    """One run over one model."""

    def __init__(self, ground: Ground, ops: Collection[str]) -> None:
        self._ground = ground
        self._ops = ops
        self.left: list[Left] = []
        self.nodes = 0
        self._edits: list[Edit] = []

    def run(self, model: ModelProto, opset: int) -> tuple[Site, ...]:
        """Compose everything; return the sites in graph order."""
        self._walk(GraphScope(self._ground, model.graph, opset))
        remove_unused(self._edits)
        sites = sites_of(self._edits)
        splice(self._edits)
        return sites

    def _walk(self, scope: GraphScope) -> None:
        edit = Edit(scope, drops_operands=True)
        self._edits.append(edit)
        surroundings = Surroundings(scope)
        nodes = surroundings.nodes
        self.nodes += len(nodes)
        removed: set[int] = set()
        manners, present = _manners(surroundings, scope), frozenset(surroundings.op_types)
        names = self._ops if manners or not _SIGNS.isdisjoint(present) else ()
        by_hand = [form for name in written_operators() if name in names for form in forms_of(name)]
        composites = [form for form in by_hand if not form.is_reduction]
        reductions = [*expanded_forms(self._ops, scope.opset, manners, present)]
        reductions += [form for form in by_hand if form.is_reduction]
        search = Search(surroundings)
        for forms in (composites, reductions):
            operators, left = compose(scope, surroundings, forms, search, removed)
            self.left += left
            for place in operators:
                self._replace(edit, place, surroundings)
                removed |= place.region
        gone = {name for index in removed if edit.rewrites[index] is REMOVED for name in nodes[index].output}
        remove_named(scope.edited.value_info, gone)
        for index in surroundings.holding:
            for inner in edit.inside(index):
                self._walk(inner)

    def _replace(self, edit: Edit, place: Place, surroundings: Surroundings) -> None:
        op_type = place.form.op_type
        for index in place.region:
            edit.rewrites[index] = REMOVED
        nodes = place.settle(edit.scope)
        copy_marks(surroundings.nodes[place.last], next(node for node in nodes if node.op_type == op_type))
        stands_for = tuple(sorted(place.form_nodes))
        edit.rewrites[place.last] = Rewrite(nodes, op_type, f"raised from {place.form.name}", stands_for)


_SIGNS = frozenset({"Erf", "GlobalAveragePool", "InstanceNormalization", "Tanh"})
"""Without one of these or a Reduce operator, a graph spells out no normalization and no activation."""


def _manners(surroundings: Surroundings, scope: GraphScope) -> set[Manner]:
    """The manners of the Reduce operators that the graph may spell out: those of its Reduce nodes, with the element
    types of these and of its casts."""
    element_types: set[int | None] = set()
    keepdims: set[int] = set()
    for index, op_type in enumerate(surroundings.op_types):
        for name in surroundings.outputs[index] if op_type.startswith(("Reduce", "Cast")) else ():
            element_types.add(scope.element_type(name))
            made = surroundings.made(name)
            if made is not None and made.op_type.startswith("Reduce"):
                keepdims.add(made.attributes.get("keepdims", 1))
    return {Manner(element_type, keeps) for element_type in element_types if element_type for keeps in keepdims}
