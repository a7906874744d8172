"""One pass over a model that composes the operators it spells out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from onnx import ModelProto

from reducelower.legalization.dead_code import remove_named, remove_unused
from reducelower.legalization.edits import Edit, splice
from reducelower.model.attributes import copy_marks
from reducelower.plan import Site
from reducelower.recompose.composing import Left, compose
from reducelower.recompose.expansions import Manner, expanded_forms
from reducelower.recompose.expressions import Form
from reducelower.recompose.place import Place
from reducelower.recompose.search import Search
from reducelower.recompose.surroundings import Surroundings
from reducelower.rulebook import RuleBook
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground

__all__ = ["Raiser"]


class Raiser:
    """One run over one model."""

    def __init__(
        self, ground: Ground, ops: Collection[str], books: Sequence[RuleBook], by_hand: Sequence[Form]
    ) -> None:
        self._ground = ground
        self._ops = ops
        self._books = books
        self._by_hand = by_hand
        self.left: list[Left] = []
        self.nodes = 0
        self._edits: list[Edit] = []

    def run(self, model: ModelProto, opset: int) -> tuple[Site, ...]:
        """Compose everything; return the sites in graph order."""
        self._walk(GraphScope(self._ground, model.graph, opset))
        remove_unused(self._edits)
        return tuple(splice(self._edits, report=True))

    def _walk(self, scope: GraphScope) -> None:
        edit = Edit(scope, drops_operands=True)
        self._edits.append(edit)
        surroundings = Surroundings(scope)
        nodes = surroundings.nodes
        self.nodes += len(nodes)
        removed: set[int] = set()
        manners, present = _manners(surroundings, scope), frozenset(surroundings.op_types)
        by_hand = self._by_hand if manners or not _SIGNS.isdisjoint(present) else ()
        composites = [form for form in by_hand if form.is_reported]
        reductions = [*expanded_forms(self._ops, self._books, scope.opset, manners, present)]
        reductions += [form for form in by_hand if not form.is_reported]
        search = Search(surroundings, (*composites, *reductions))
        for forms in (composites, reductions):
            operators, left = compose(scope, surroundings, forms, search, removed)
            self.left += left
            for place in operators:
                self._replace(edit, place, surroundings)
                removed |= place.region
        gone = {name for index in removed - edit.sites.keys() for name in nodes[index].output}
        remove_named(scope.edited.value_info, gone)
        for index in surroundings.holding:
            for inner in scope.edited_inside(index):
                self._walk(inner)

    def _replace(self, edit: Edit, place: Place, surroundings: Surroundings) -> None:
        op_type = place.form.op_type
        for index in place.region:
            edit.replaced[index] = []
        nodes = place.settle(edit.scope)
        copy_marks(surroundings.nodes[place.last], next(node for node in nodes if node.op_type == op_type))
        edit.replaced[place.last] = nodes
        edit.sites[place.last] = (op_type, f"raised from {place.form.name}")
        edit.regions[place.last] = tuple(sorted(place.form_nodes))


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
