"""One pass over a model that folds every form it finds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, helper

from reducelower.adapters.constants import remove_unused
from reducelower.legalization.edits import Edit
from reducelower.model.build import copy_marks
from reducelower.model.graph import function_path, inner_path, subgraphs
from reducelower.model.inference import GraphKey, function_key
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.plan import Site
from reducelower.recompose.candidates import manner_of, nodes_after, with_count
from reducelower.recompose.composing import FormTable, Left, compose
from reducelower.recompose.forms import AXES, DATA
from reducelower.recompose.index import FormIndex, Shape
from reducelower.recompose.matching import Match, Surroundings, find
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground

__all__ = ["Raiser"]


class Raiser:
    """One run over one model."""

    def __init__(self, ground: Ground, index: FormIndex, table: FormTable) -> None:
        """Prepare a run.

        Args:
            ground: what all scopes share.
            index: the forms of Reduce operators to look for.
            table: the forms of normalizations and activations to look for.
        """
        self._ground = ground
        self._index = index
        self._table = table
        self.left: list[Left] = []
        self._edits: list[Edit] = []
        self._regions: dict[int, dict[int, tuple[int, ...]]] = {}

    def run(self, model: ModelProto, opset: int) -> tuple[Site, ...]:
        """Fold what there is to fold; the sites in graph order."""
        self._walk(GraphScope(self._ground, model.graph, opset, "graph", key=()))
        for number, function in enumerate(model.functions):
            self._walk_function(function, number)
        remove_unused(self._ground.released, self._ground.folded, self._edits)
        return tuple(self._splice())

    def _walk_function(self, function: FunctionProto, number: int) -> None:
        path = function_path(function)
        imported = [entry.version for entry in function.opset_import if entry.domain in DEFAULT_DOMAINS]
        if imported:
            self._walk(GraphScope(self._ground, function, imported[0], path, key=function_key(number)))

    def _walk(self, scope: GraphScope) -> None:
        edit = Edit(scope)
        self._edits.append(edit)
        nodes = scope.holder.node
        for index, node in enumerate(nodes):
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
                scope.constant_nodes[node.output[0]] = (index, node)
        reductions = [
            index
            for index, node in enumerate(nodes)
            if node.op_type in self._index.reductions and node.domain in DEFAULT_DOMAINS
        ]
        surroundings = Surroundings(scope.holder)
        taken = self._compose(edit, surroundings)
        if reductions:
            self._fold(edit, [index for index in reductions if index not in taken], surroundings, taken)
        for index, node in enumerate(nodes):
            for number, attribute, graph in subgraphs(node):
                path = inner_path(scope.path, node, index, attribute)
                key: GraphKey | None = None if scope.key is None else (*scope.key, index, number)
                self._walk(GraphScope(self._ground, graph, scope.opset, path, scope, key))

    # One graph

    def _compose(self, edit: Edit, surroundings: Surroundings) -> set[int]:
        """Put normalizations and activations together; the positions of the nodes that they were spelled out with."""
        scope, nodes = edit.scope, surroundings.nodes
        found, left = compose(scope, surroundings, self._table)
        self.left += left
        taken: set[int] = set()
        for composed in found:
            op_type = composed.form.op_type
            for index in composed.region:
                edit.replaced[index] = []
                for name in nodes[index].input:
                    if name and scope.constant(name) is not None:
                        scope.release(name)
            made = next(node for node in composed.nodes if node.op_type == op_type)
            copy_marks(nodes[composed.last], made)
            edit.replaced[composed.last] = composed.nodes
            edit.sites[composed.last] = (op_type, f"raised from {composed.form.name}")
            self._regions.setdefault(id(edit), {})[composed.last] = tuple(sorted(composed.spelled))
            taken |= composed.region
        lasts = {composed.last for composed in found}
        _forget(scope.holder, {name for index in taken - lasts for name in nodes[index].output})
        return taken

    def _fold(
        self, edit: Edit, reductions: Iterable[int], surroundings: Surroundings, composed: Collection[int]
    ) -> None:
        scope = edit.scope
        taken = set(composed)
        for last, reduction, shape in self._candidates(reductions, surroundings, scope):
            if last in taken or reduction in taken:
                continue
            match = find(shape.pattern, last, surroundings, scope)
            if match is None or match.region & taken or reduction not in match.region:
                continue
            if scope.element_type(match.values[DATA]) != shape.manner.element_type:
                continue
            taken |= match.region
            self._replace(edit, last, match, shape)
        _forget(
            scope.holder,
            {name for index in taken - edit.sites.keys() for name in surroundings.nodes[index].output},
        )

    def _candidates(
        self, reductions: Iterable[int], surroundings: Surroundings, scope: GraphScope
    ) -> list[tuple[int, int, Shape]]:
        """What could be a form: its last node, a reduction in it, and what it would look like; the largest first.

        From the results back, so that a form inside another is not taken out of it.
        """
        found: list[tuple[int, int, Shape]] = []
        for reduction in reductions:
            for last in nodes_after(reduction, surroundings, self._index.farthest):
                found += [(last, reduction, shape) for shape in self._shapes(reduction, last, surroundings, scope)]
        found.sort(key=lambda item: (item[0], item[2].pattern.size), reverse=True)
        return found

    def _shapes(self, reduction: int, last: int, surroundings: Surroundings, scope: GraphScope) -> Iterable[Shape]:
        node, end = surroundings.nodes[reduction], surroundings.nodes[last]
        if end.domain not in DEFAULT_DOMAINS:
            return
        element_type = scope.element_type(end.output[0])
        manner = None if element_type is None else manner_of(node, scope, element_type)
        if manner is None:
            return
        yield from self._index.ending_in(end.op_type, manner)
        if self._index.may_take_count(end.op_type):
            counting = with_count(manner, node, scope)
            if counting is not None:
                yield from self._index.ending_in(end.op_type, counting)

    def _replace(self, edit: Edit, last: int, match: Match, shape: Shape) -> None:
        scope, nodes = edit.scope, edit.scope.holder.node
        form, manner = shape.form, shape.manner
        made = NodeProto(op_type=form.op_type, input=[match.values[DATA]], output=nodes[last].output)
        copy_marks(nodes[last], made)
        if manner.takes_axes_as_input:
            if AXES in match.values:
                made.input.append(match.values[AXES])
        elif manner.axes is not None:
            made.attribute.append(helper.make_attribute("axes", manner.axes))
        made.attribute.append(helper.make_attribute("keepdims", manner.keepdims))
        if manner.noop:
            made.attribute.append(helper.make_attribute("noop_with_empty_axes", manner.noop))
        for index in match.region:
            edit.replaced[index] = []
        for name in {name for index in match.region for name in nodes[index].input if name} - set(made.input):
            if name in match.constants or scope.constant(name) is not None:
                scope.release(name)
        edit.replaced[last] = [made]
        edit.sites[last] = (form.op_type, f"raised from {form.rule.name}")
        self._regions.setdefault(id(edit), {})[last] = tuple(sorted(match.region))

    def _splice(self) -> Iterator[Site]:
        groups: list[list[Site]] = []
        for edit in reversed(self._edits):
            nodes, path = edit.scope.holder.node, edit.scope.path
            names = {index: nodes[index].name or f"{nodes[index].op_type}#{index}" for index in edit.sites}
            edit.splice()
            positions = edit.positions()
            groups.append(
                [
                    Site(path, names[index], *edit.sites[index], index, *positions[index], raised_from=region)
                    for index, region in sorted(self._regions.get(id(edit), {}).items())
                ]
            )
        for group in reversed(groups):
            yield from group


def _forget(holder: GraphProto | FunctionProto, names: Collection[str]) -> None:
    """Remove what is stated about values that are no more."""
    kept = [value for value in holder.value_info if value.name not in names]
    if len(kept) < len(holder.value_info):
        del holder.value_info[:]
        holder.value_info.extend(kept)
