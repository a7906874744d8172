"""The engine: one pass over a model that makes every node legal for the target, or collects why it cannot.

A node crosses the boundaries between the opset version it is written for and the target's (`crossings`), or is
replaced by the body of a rule; nodes that come in its place are made legal in turn, from the opset version they were
written for. Source nodes are edited where they stand; replacements are put in place at the very end, so that positions
mean the same all along. What changes only in the element types an operator takes is decided last, and only for the
types that can occur in the model at all.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from onnx import FunctionProto, GraphProto, NodeProto, TypeProto, defs

from reducelower import absent, bodies, casts, constants, operators, reductions
from reducelower.crossings import Replacement, crossings
from reducelower.draft import Draft
from reducelower.dynamic_axes import BodyWantedError
from reducelower.edits import Edit
from reducelower.errors import Refusal, RefusedError
from reducelower.inference import function_key, subgraphs
from reducelower.occurring import Occurring
from reducelower.plan import Label, Site
from reducelower.schemas import (
    DEFAULT_DOMAINS,
    element_type_name,
    parse_element_type,
    schema,
    taken_types,
)
from reducelower.scope import BodyScope, Ground, Scope
from reducelower.sole_type import reads_and_yields_one_type
from reducelower.target import Target
from reducelower.templates import SerializedNode, Template, coded_text, read_node
from reducelower.treatments import HOLDING_GRAPHS, Treatment, Treatments

if TYPE_CHECKING:
    from reducelower.rulebook import Rule
    from reducelower.targets import Fact
    from reducelower.targets.fitting import Misfit, Way

__all__ = ["Legalizer"]

_REGISTERING = (constants, operators, reductions)
"""Modules that register rewrites when they are imported."""


_TAKEN_EVERYWHERE = frozenset(f"tensor({name})" for name in ("float", "double", "float16", "int64", "bool"))
"""Types that an operator which ever took them, or the like of them, always took."""


_STEPS = 3
"""How many equivalent forms may follow one from the other until one is right on a runtime."""


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
        self.rules = rules
        self.refusals: list[Refusal] = []
        self.occurring = Occurring()
        self.nodes = 0
        self._tables: dict[int, Treatments] = {}
        self._edits: list[Edit] = []
        self._expanding: list[str] = []
        self.unmended: dict[str, None] = {}
        self._further_steps = _STEPS
        self._excused: dict[str, None] | None = None
        self._refused: list[tuple[Edit, int, Refusal]] = []
        self._new_types: dict[Scope, dict[str, TypeProto]] = {}
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

    # One pass over the nodes

    def _walk(self, scope: Scope) -> None:
        edit = Edit(scope)
        self._edits.append(edit)
        nodes, table = scope.node_list, self._table(scope.opset)
        self.nodes += len(nodes)
        positions = nodes.positions(lambda op_type: table[op_type] is not None)
        for index, data in edit.shortcuts.walk(positions, edit.replaced, edit.sites, self.ground.released):
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
        treatment = self._table(scope.opset)[op_type]
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
        released, derived = len(ground.released), len(ground.names.derived)
        self._apply(node, index, treatment, edit)
        nodes = list(edit.replaced.get(index, [node]))
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
            released=ground.released[released:],
            types=self._new_types.get(edit.scope, {}),
        )
        is_any_type = ground.asked_types.issubset(tail)
        known = None if is_any_type else self._data_type(source.input[0], edit.scope)
        self._templates.setdefault(read.kind(edit), {})[known] = template
        if not known:
            edit.shortcuts.add(template, read, needs_no_type_at_hand=not is_any_type)

    def _repeat(self, node: SerializedNode, index: int, edit: Edit) -> bool:
        """Do to a node what was done to one of its kind; False if there was none."""
        templates = self._templates.get(node.kind(edit))
        if templates is None:
            return False
        template = templates.get(None)
        if template is None:
            template = templates.get(self._data_type(coded_text(node.inputs[0]), edit.scope))
        if template is None:
            return False
        if template.label:
            made = template.replacement(node)
            if template.in_place:
                edit.scope.node_list.overwrite(index, made.data[0])
            else:
                edit.replaced[index] = made
            edit.sites[index] = template.site
            self.ground.released.extend(template.released)
        return True

    def _data_type(self, name: str, scope: Scope) -> bytes:
        """The type of the data that a node reads, where it is at hand; replacements may depend on it."""
        if not scope.has_type_at_hand(name):
            return b""
        found = scope.type(name)
        return b"" if found is None else found.SerializeToString()

    def _apply(self, node: NodeProto, index: int, treatment: Treatment, edit: Edit) -> None:
        scope = edit.scope
        outcome, label = self._settle(node, scope.opset, scope, treatment)
        if isinstance(outcome, list) and self.target.without_types:
            self._check_added(node, outcome, scope)
        if outcome is not False:
            edit.sites[index] = (node.op_type, label)
            if isinstance(outcome, list):
                edit.replaced[index] = outcome

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

    def _table(self, opset: int) -> Treatments:
        if opset not in self._tables:
            self._tables[opset] = Treatments(opset, self.target)
        return self._tables[opset]

    # One node

    def _settle(
        self, node: NodeProto, opset: int, scope: Scope, treatment: Treatment, *, mistyped: bool = False
    ) -> tuple[bool | list[NodeProto], str]:
        """Make one node legal: whether it changed, or what replaces it, and the name of what did it.

        `mistyped` says that the node came in place of one of an element type which its version may not take.
        """
        if treatment.refusal:
            raise RefusedError(treatment.refusal)
        if treatment.expand:
            before = node.SerializeToString()
            try:
                return self._expand(node, opset, scope, self.rules.find(node, scope))
            except RefusedError as refused:
                raise self._naming_a_book(refused, before, opset, scope) from None
        if treatment.absent:
            return self._replace_absent(node, opset, scope)
        changed, labels = False, ""
        for crossing in treatment.crossings:
            inputs = list(node.input)
            try:
                outcome = crossing.cross(node, scope)
            except BodyWantedError:
                rule = self.rules.find_simpler(node, scope)
                nodes, label = self._expand(node, crossing.boundary, scope, rule)
                return nodes, f"{label}, for axes known at run time"
            if outcome is False:
                continue
            label = outcome.label if isinstance(outcome, Replacement) else crossing.label
            labels = f"{labels}; {label}" if labels else label
            if isinstance(outcome, list):
                lost = self._table(opset).dropped.get(node.op_type)
                mistyped = mistyped or any(scope.type_string(name) in lost for name in inputs if lost and name)
                return self._settle_all(outcome, crossing.opset, scope, mistyped=mistyped), labels
            changed = True
        if treatment.facts:
            outcome, label = self._fit_runtime(node, scope, treatment.facts)
            if outcome:
                return outcome, _joined(labels, label)
        return changed, labels

    def _fit_runtime(
        self, node: NodeProto, scope: Scope, facts: tuple[Fact, ...]
    ) -> tuple[bool | list[NodeProto], str]:
        """Replace a node that the runtime gets wrong or refuses by what it gets right, if it is such a node.

        Raises:
            RefusedError: nothing equivalent will do either; the reason is the fact in the way.
        """
        from reducelower.targets.fitting import misfit

        runtime = self.target.runtime
        assert runtime is not None
        found = misfit(node, scope, facts)
        if found is None:
            return False, ""
        if self._further_steps < _STEPS:
            return self._mended(node, scope, found)  # It is part of something that is being tried.
        try:
            return self._mended(node, scope, found)
        except RefusedError:
            self._excused = {}
        try:
            outcome = self._mended(node, scope, found)
            self.unmended.update(self._excused)
        finally:
            self._excused = None
        return outcome

    def _mended(self, node: NodeProto, scope: Scope, found: Misfit) -> tuple[bool | list[NodeProto], str]:
        """What comes in place of a node, or False where it stays because only its overflow cannot be mended."""
        runtime = self.target.runtime
        assert runtime is not None
        reasons: list[str] = []
        data = node.SerializeToString()
        nodes = self._way_round(data, scope, found, reasons)
        if nodes is None and found.overflows and self._excused is not None:
            self._excused[f"on {runtime}, {found.says}"] = None
            if found.only_overflows:
                return False, ""
            nodes = self._way_round(data, scope, found.without_overflow(), reasons)
        if nodes is None:
            raise found.refusal(runtime, reasons)
        return nodes, Label(f"{nodes.label} for {runtime.name}", found.says)

    def _way_round(self, node: bytes, scope: Scope, found: Misfit, reasons: list[str]) -> Replacement | None:
        """The first equivalent form that is right on the runtime; why others are not is added to the reasons."""
        from reducelower.targets.fitting import ways_out

        runtime = self.target.runtime
        assert runtime is not None
        allowed, excused = self._further_steps, self._excused
        try:
            # What takes one step is tried before what takes two, so that the simplest way is found.
            for self._further_steps in range(allowed):
                for way in ways_out(NodeProto.FromString(node), scope, found, self.rules, runtime):
                    if way.caveat and excused is None:
                        continue
                    mark = scope.mark()
                    self._excused = None if excused is None else dict(excused)
                    try:
                        nodes = self._go(way, NodeProto.FromString(node), scope)
                    except RefusedError as refused:
                        scope.roll_back(mark)
                        reasons.append(f"{way.name}: {refused.reason}")
                        continue
                    if nodes is not None:
                        if way.caveat and self._excused is not None:
                            self._excused[f"on {runtime}, {way.caveat}"] = None
                        excused = self._excused
                        return Replacement(nodes, way.name)
        finally:
            self._further_steps, self._excused = allowed, excused
        return None

    def _go(self, way: Way, node: NodeProto, scope: Scope) -> list[NodeProto] | None:
        if way.rule is not None:
            return self._expand(node, self.goal, scope, way.rule)[0]
        assert way.remedy is not None
        written = way.remedy(node, scope)
        return None if written is None else self._settle_all(*written, scope)

    def _settle_all(
        self, nodes: list[NodeProto], opset: int, around: Scope, *, mistyped: bool = False
    ) -> list[NodeProto]:
        """Make nodes that replace another legal, from the opset version they are written for."""
        if not nodes:
            return nodes
        scope = BodyScope(around, nodes, opset)
        table = self._table(opset)
        settled: list[NodeProto] = []
        for node in nodes:
            treatment = table[node.op_type]
            if node.domain not in DEFAULT_DOMAINS:
                settled.append(node)
                continue
            outcome: bool | list[NodeProto] = False
            if treatment is not None:
                if node.op_type in HOLDING_GRAPHS:
                    self._settle_subgraphs(node, scope, mistyped=mistyped)
                outcome, _ = self._settle(node, opset, scope, treatment, mistyped=mistyped)
            if isinstance(outcome, list):
                settled.extend(outcome)
            elif mistyped or node.op_type in table.dropped:
                settled.extend(self._fit(node, scope, strict=node.op_type in table.dropped) or [node])
            else:
                settled.append(node)
        self._note_types(scope)
        return settled

    def _note_types(self, body: BodyScope) -> None:
        """Keep the types of new values, for the graph to state, where they are to be had for little."""
        home: Scope = body
        while isinstance(home, BodyScope) and home.parent is not None:
            home = home.parent
        read = {name for node in body.nodes for name in node.input if name and not body.defines(name)}
        if not isinstance(home.holder, GraphProto) or not all(map(home.has_type_at_hand, read)):
            return
        noted = self._new_types.setdefault(home, {})
        for node in body.nodes:
            for name in filter(self.ground.names.is_new, node.output):
                found = body.type(name)
                if found is not None:
                    noted[name] = found

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

    def _settle_subgraphs(self, node: NodeProto, scope: BodyScope, *, mistyped: bool = False) -> None:
        for number, _, graph in subgraphs(node):
            stated = len(graph.value_info)
            graph.value_info.extend(scope.types_inside(node, number))
            nodes = [NodeProto.FromString(inner.SerializeToString()) for inner in graph.node]
            inner_scope = Scope(self.ground, graph, scope.opset, scope.path, scope)
            settled = self._settle_all(nodes, scope.opset, inner_scope, mistyped=mistyped)
            del graph.value_info[stated:]
            del graph.node[:]
            graph.node.extend([*inner_scope.added_nodes, *settled])

    def _expand(self, node: NodeProto, opset: int, scope: Scope, rule: Rule) -> tuple[list[NodeProto], str]:
        """Replace a node by the body of a rule, moved first to the opset version the rule is written for."""
        if node.op_type in self._expanding:
            raise RefusedError(f"the rule for {node.op_type} leads back to {node.op_type}", "change the rule")
        label = rule.name
        for crossing in crossings(node.op_type, opset, rule.opset):
            if crossing.is_plain:
                continue
            outcome = crossing.cross(node, scope)
            if isinstance(outcome, list):
                return self._settle_all(outcome, crossing.opset, scope), label
        self._expanding.append(node.op_type)
        try:
            body = bodies.instantiate(rule, node, scope)
            return self._settle_all(body, rule.opset, scope), label
        finally:
            self._expanding.pop()

    def _naming_a_book(self, refused: RefusedError, node: bytes, opset: int, scope: Scope) -> RefusedError:
        """The refusal of a rule with a shipped rule book in its hint that can do what the chosen one cannot."""
        for name in bodies.SHIPPED:
            copy = NodeProto.FromString(node)
            try:
                self._expand(copy, opset, scope, bodies.Rules(name).find(copy, scope))
            except RefusedError:
                continue
            hint = f"--rules {name} works here"
            return RefusedError(refused.reason, f"{refused.hint}; {hint}" if refused.hint else hint)
        return refused

    def _replace_absent(self, node: NodeProto, opset: int, scope: Scope) -> tuple[list[NodeProto], str]:
        # They are written for an opset version that may not take all the types which the operator takes at its own.
        mistyped = any(scope.type_string(name) not in _TAKEN_EVERYWHERE for name in node.input if name)
        nodes, written, label = absent.replacement(node, opset, scope)
        return self._settle_all(nodes, written, scope, mistyped=mistyped), label

    # Element types, decided last

    def _fit_types(self) -> None:
        tables = list(self._tables.values())
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
        return f"tensor({element_type_name(sole)})" not in self._table(scope.opset).dropped[op_type]

    def _fit_edit(self, edit: Edit, suspects: set[str]) -> None:
        scope = edit.scope
        for index, node in scope.node_list.of(suspects.__contains__):
            if index in edit.replaced or node.domain not in DEFAULT_DOMAINS:
                continue
            try:
                fitted = self._fit(node, scope)
            except RefusedError as refused:
                self._refuse(edit, node, index, refused)
                continue
            if fitted is not None:
                label = edit.sites.get(index, ("", ""))[1]
                edit.sites[index] = (node.op_type, f"{label}; element type" if label else "element type")
                edit.replaced[index] = fitted

    def _fit(self, node: NodeProto, scope: Scope, *, strict: bool = True) -> list[NodeProto] | None:
        """Cast around a node whose element type the target's version does not take; None if it takes it.

        What is of unknown type is refused where `strict`, else trusted to be taken.
        """
        goal = schema(node.op_type, self.goal)
        if goal is None:
            return None
        misfit = _misfit(node, scope, goal, strict=strict)
        if misfit is None:
            return None
        before, inner, after = casts.retype(node, scope, misfit, goal)
        # Node and casts are written for different opset versions, and the casts' types are known to be taken.
        return [
            *self._settle_all(before, casts.CAST_OPSET, scope),
            *([] if inner is None else [inner]),
            *self._settle_all(after, casts.CAST_OPSET, scope),
        ]

    # After the pass

    def _treat_constants(self) -> None:
        for edit in self._edits:
            treatment = self._table(edit.scope.opset)["Constant"]
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
            edit.state_types(self._new_types.get(edit.scope, {}))
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


def _joined(label: str, further: str) -> str:
    """Both labels in one, with the reason that the further one has."""
    if not label:
        return further
    return Label(f"{label}; {further}", further.because) if isinstance(further, Label) else f"{label}; {further}"


def _site(graph: str, node: str, op_type: str, label: str, index: int, position: tuple[int, int]) -> Site:
    because = label.because if isinstance(label, Label) else ""
    return Site(graph, node, op_type, str(label), index, *position, because)


def _can_be_template(source: NodeProto, nodes: list[NodeProto]) -> bool:
    """Whether what came of a node can be told apart from its names, and none are inside graphs."""
    if not source.input or not source.input[0] or source.input[0] in (*source.input[1:], *source.output):
        return False
    return bool(nodes) and not any(True for node in nodes for _ in subgraphs(node))


def _misfit(node: NodeProto, scope: Scope, goal: defs.OpSchema, *, strict: bool) -> str | None:
    """The first type among inputs and outputs that a schema does not take, as schemas spell it."""
    for names, formals in ((node.input, goal.inputs), (node.output, goal.outputs)):
        for index, name in enumerate(names):
            if not name or not formals:
                continue
            formal = formals[min(index, len(formals) - 1)]
            found = scope.type_string(name)
            if found is None:
                if formals is goal.outputs or not strict:
                    continue
                raise RefusedError(
                    f"the element type of {name!r} is not known, and opset {scope.ground.opset} takes fewer types",
                    f"declare it with --type {name}=float32",
                )
            if found not in taken_types(goal, formal):
                return found
    return None
