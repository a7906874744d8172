"""The engine: one pass over a model that makes every node legal for the target, or collects why it cannot.

What becomes of one node is settled by `settling`, once for all nodes of its kind. Source nodes are edited where they
stand; replacements are put in place at the very end, so that positions mean the same all along. What changes only in
the element types an operator takes is decided last, and only for the types that can occur in the model at all.
"""

from __future__ import annotations

from collections.abc import Hashable

from onnx import FunctionProto, NodeProto

from reducelower.adapters import constants, reductions
from reducelower.adapters import ops as operators
from reducelower.errors import Refusal, RefusedError
from reducelower.legalization.draft import Draft
from reducelower.legalization.edits import Edit
from reducelower.legalization.legality import HOLDING_GRAPHS, Treatment
from reducelower.legalization.occurring_types import Occurring
from reducelower.legalization.settling import Settler
from reducelower.legalization.templates import SerializedNode, Template, coded_text, read_node
from reducelower.model.census import graph_from
from reducelower.model.inference import function_key, subgraphs
from reducelower.model.nodelist import nodes_of
from reducelower.model.schemas import (
    DEFAULT_DOMAINS,
    element_type_name,
    parse_element_type,
)
from reducelower.model.sole_type import reads_and_yields_one_type
from reducelower.options import Target
from reducelower.plan import Label, Site
from reducelower.rulebook import bodies
from reducelower.scope.ground import Ground
from reducelower.scope.scope import Scope

__all__ = ["Legalizer"]

_REGISTERING = (constants, operators, reductions)
"""Modules that register rewrites when they are imported."""


class Legalizer:
    """One run over one model."""

    def __init__(self, draft: Draft, target: Target, ground: Ground, rules: bodies.Rules) -> None:
        """Prepare a run.

        Args:
            draft: the model, edited in place.
            target: what to make it legal for; its opset is a number here.
            ground: what all scopes share.
            rules: the rule book.
        """
        assert target.opset is not None
        self.draft = draft
        self.target = target
        self.goal: int = target.opset
        self.ground = ground
        self._settler = Settler(target, ground, rules)
        self.refusals: list[Refusal] = []
        self.occurring = Occurring()
        self.nodes = 0
        self._edits: list[Edit] = []
        self._refused: list[tuple[Edit, int, Refusal]] = []
        self._owing: dict[tuple[Scope, str], tuple[Edit, str, str]] = {}
        self._templates: dict[Hashable, dict[bytes | None, Template]] = {}

    def run(self, source_opset: int) -> None:
        """Make the model legal; `refusals` says what cannot be, and the model is of no use then."""
        draft = self.draft
        self._walk(Scope(self.ground, draft.model.graph, source_opset, "graph", key=(), nodes=draft.nodes))
        for number, function in enumerate(draft.model.functions):
            self._walk_function(function, number)
        constants.remove_unused(self.ground.released, self.ground.folded, self._edits)
        self._treat_constants()
        self._fit_types()
        # A node that went, because nothing reads it any more, need not be legal.
        self.refusals += [refusal for edit, index, refusal in self._refused if edit.replaced.get(index) != []]
        # What is owed to a node that was refused has been said.
        for owed in [key for key in self.ground.owed if key in self._owing]:
            edit, name, op_type = self._owing[owed]
            refused = self.ground.owed[owed]
            self.refusals.append(Refusal(edit.scope.path, name, op_type, refused.reason, refused.hint))

    def _walk_function(self, function: FunctionProto, number: int) -> None:
        overload = f":{function.overload}" if function.overload else ""
        path = f"functions/{function.domain}::{function.name}{overload}"
        opset = None
        for entry in function.opset_import:
            if entry.domain in DEFAULT_DOMAINS:
                opset = entry.version
                entry.version = self.goal
        if function.domain in DEFAULT_DOMAINS:
            reason = "the function stands in the default domain, where it would shadow or be taken for an operator"
            self.refusals.append(Refusal(path, "", "", f"{path}: {reason}", "give the function a domain of its own"))
        elif opset is not None:
            self._walk(Scope(self.ground, function, opset, path, key=function_key(number)))

    @property
    def unmended(self) -> tuple[str, ...]:
        """What overflows on the runtime that the model is for, and cannot be mended there."""
        return self._settler.unmended

    # One pass over the nodes

    def _walk(self, scope: Scope) -> None:
        edit = Edit(scope)
        self._edits.append(edit)
        nodes, table = scope.node_list, self._settler.table(scope.opset)
        self.nodes += len(nodes)
        positions = nodes.positions(lambda op_type: table[op_type] is not None)
        for index, data in edit.shortcuts.walk(positions):
            # However it is laid out, protobuf itself writes names first.
            read = read_node(NodeProto.FromString(data).SerializeToString())
            if self._repeat(read, index, edit):
                continue
            node = nodes[index]
            try:
                if node.domain and node.domain not in DEFAULT_DOMAINS:
                    self.occurring.foreign.add((node.domain, node.op_type))
                    self._walk_subgraphs(node, index, scope)
                else:
                    self._treat(node, index, edit, read)
            except RefusedError as refused:
                self._refuse(edit, node, index, refused)

    def _treat(self, node: NodeProto, index: int, edit: Edit, read: SerializedNode) -> None:
        scope = edit.scope
        op_type = node.op_type
        if node.domain:
            node.domain = ""
        treatment = self._settler.table(scope.opset)[op_type]
        if treatment is None:
            return
        if op_type == "Constant":
            # It waits until it is known which constants are still read.
            self._note_constant(node, index, scope)
            return
        if op_type in HOLDING_GRAPHS:
            self._walk_subgraphs(node, index, scope)
        if not treatment.is_nothing:
            self._treat_and_learn(node, index, treatment, edit, read)

    # Nodes of the same kind

    def _treat_and_learn(
        self, node: NodeProto, index: int, treatment: Treatment, edit: Edit, read: SerializedNode
    ) -> None:
        """Treat the first node of a kind, and keep what came of it for the others."""
        ground, source = self.ground, NodeProto.FromString(node.SerializeToString())
        ground.asked_values.clear()
        ground.asked_types.clear()
        derived = len(ground.names.derived)
        self._apply(node, index, treatment, edit)
        nodes = list(nodes_of(edit.replaced.get(index, [node])))
        if index not in edit.sites and node != source:
            return  # names that say nothing were left out at its end, which is no rewrite to tell of
        tail = source.input[1:]
        if not _can_be_template(source, nodes) or not all(
            name in tail or ground.names.is_new(name) for name in ground.asked_values
        ):
            return
        template = Template(
            edit.sites[index][1] if index in edit.sites else "",
            nodes,
            source,
            ground.names,
            in_place=index not in edit.replaced,
            derived=ground.names.derived[derived:],
            types=self._settler.new_types.get(edit.scope, {}),
        )
        is_any_type = ground.asked_types.issubset(tail)
        data_type = None if is_any_type else edit.scope.type_at_hand(source.input[0])
        self._templates.setdefault(read.kind(edit), {})[data_type] = template
        edit.shortcuts.add(template, read, data_type)

    def _repeat(self, node: SerializedNode, index: int, edit: Edit) -> bool:
        """Do to a node what was done to one of its kind; False if there was none."""
        templates = self._templates.get(node.kind(edit))
        if templates is None:
            return False
        template = templates.get(None)
        if template is None:
            template = templates.get(edit.scope.type_at_hand(coded_text(node.inputs[0])))
        if template is None:
            return False
        if template.label:
            made, types = template.replacement(node)
            if template.in_place:
                edit.scope.node_list.overwrite(index, graph_from(made).node[0])
            else:
                edit.replaced[index] = made
                if types:
                    edit.types[index] = types
            edit.sites[index] = template.site
        return True

    def _apply(self, node: NodeProto, index: int, treatment: Treatment, edit: Edit) -> None:
        scope = edit.scope
        outcome, label = self._settler.settle(node, scope.opset, scope, treatment)
        self._note_owed(node, index, edit)
        if isinstance(outcome, list) and self.target.without_types:
            self._check_added(node, outcome, scope)
        if outcome is not False:
            edit.sites[index] = (node.op_type, label)
            if isinstance(outcome, list):
                edit.replaced[index] = outcome

    def _note_owed(self, node: NodeProto, index: int, edit: Edit) -> None:
        """Keep which node wants the constants that nothing can hold here."""
        for owed in [key for key in self.ground.owed if key not in self._owing]:
            self._owing[owed] = (edit, node.name or f"{node.op_type}#{index}", node.op_type)

    def _walk_subgraphs(self, node: NodeProto, index: int, scope: Scope) -> None:
        for number, attribute, graph in subgraphs(node):
            path = f"{scope.path}/{node.name or f'{node.op_type}#{index}'}.{attribute}"
            key = None if scope.key is None else (*scope.key, index, number)
            self._walk(Scope(self.ground, graph, scope.opset, path, scope, key))

    def _note_constant(self, node: NodeProto, index: int, scope: Scope) -> None:
        if node.output:
            scope.constant_nodes[node.output[0]] = (index, node)
        self.occurring.note_constant(node)

    def _refuse(self, edit: Edit, node: NodeProto, index: int, refused: RefusedError) -> None:
        name = node.name or f"{node.op_type}#{index}"
        refusal = Refusal(edit.scope.path, name, node.op_type, refused.reason, refused.hint)
        self._refused.append((edit, index, refusal))

    def _check_added(self, node: NodeProto, added: list[NodeProto], scope: Scope) -> None:
        """Refuse replacements that bring in an element type the target does without."""
        own = {scope.element_type(name) for name in (*node.input, *node.output) if name}
        forbidden = {parse_element_type(name) for name in self.target.without_types} - own
        for made in added:
            used = {scope.element_type(name) for name in made.input if self.ground.names.is_new(name)}
            if made.op_type == "Cast":
                used |= {attribute.i for attribute in made.attribute if attribute.name == "to"}
            for element_type in sorted(forbidden & used):
                name = element_type_name(element_type)
                raise RefusedError(
                    f"its replacement computes in {name}, which the target does without",
                    f"allow {name}, or choose other rules with --rules",
                )

    # Element types, decided last

    def _fit_types(self) -> None:
        tables = list(self._settler.tables.values())
        if not any(table.dropped for table in tables):
            return
        self.occurring.note_holders((edit.scope.holder, edit.scope.node_list) for edit in self._edits)
        possible = self.occurring.types({(op_type, table.opset) for table in tables for op_type in table})
        asked = {
            table.opset: {op for op, dropped in table.dropped.items() if possible is None or dropped & possible}
            for table in tables
        }
        for edit in self._edits:
            suspects = {op for op in asked[edit.scope.opset] if not self._is_fit(op, edit.scope)}
            if suspects:
                self._fit_edit(edit, suspects)

    def _is_fit(self, op_type: str, scope: Scope) -> bool:
        """Whether every node of an operator in a graph is of an element type that the target takes."""
        sole = self.ground.source.sole_element_type if scope.key == () and not self.ground.element_types else None
        if sole is None or not reads_and_yields_one_type(op_type, scope.opset):
            return False
        return f"tensor({element_type_name(sole)})" not in self._settler.table(scope.opset).dropped[op_type]

    def _fit_edit(self, edit: Edit, suspects: set[str]) -> None:
        scope = edit.scope
        for index, node in scope.node_list.of(suspects.__contains__):
            if index in edit.replaced or node.domain not in DEFAULT_DOMAINS:
                continue
            try:
                fitted = self._settler.fit(node, scope)
                self._note_owed(node, index, edit)
            except RefusedError as refused:
                self._refuse(edit, node, index, refused)
                continue
            if fitted is not None:
                label = edit.sites.get(index, ("", ""))[1]
                edit.sites[index] = (node.op_type, f"{label}; element type" if label else "element type")
                edit.replaced[index] = fitted

    # After the pass

    def _treat_constants(self) -> None:
        for edit in self._edits:
            treatment = self._settler.table(edit.scope.opset)["Constant"]
            if treatment is None or treatment.is_nothing:
                continue
            for index, node in list(edit.scope.constant_nodes.values()):
                if index >= 0 and index not in edit.replaced:
                    try:
                        self._apply(node, index, treatment, edit)
                    except RefusedError as refused:
                        self._refuse(edit, node, index, refused)

    def splice(self, *, report: bool) -> list[Site]:
        """Put every replacement in place; returns all sites if a report is wanted, else nothing."""
        sites: list[Site] = []
        found: list[list[Site]] = []
        # Subgraphs come after the graph around them, and must be done before their node is copied anywhere.
        for edit in reversed(self._edits):
            path, nodes = edit.scope.path, edit.scope.node_list
            names = {index: nodes.name(index) for index in edit.sites} if report else {}
            edit.state_types(self._settler.new_types.get(edit.scope, {}))
            edit.splice()
            if not report:
                continue
            positions = edit.positions()
            found.append(
                [
                    _site(path, names[index] or f"{op_type}#{index}", op_type, label, index, positions[index])
                    for index, (op_type, label) in sorted(edit.sites.items())
                ]
            )
        for group in reversed(found):
            sites.extend(group)
        return sites


def _site(graph: str, node: str, op_type: str, label: str, index: int, position: tuple[int, int]) -> Site:
    because = label.because if isinstance(label, Label) else ""
    return Site(graph, node, op_type, str(label), index, *position, because)


def _can_be_template(source: NodeProto, nodes: list[NodeProto]) -> bool:
    """Whether what came of a node can be told apart from its names, and none are inside graphs."""
    if not source.input or not source.input[0] or source.input[0] in (*source.input[1:], *source.output):
        return False
    return bool(nodes) and not any(True for node in nodes for _ in subgraphs(node))
