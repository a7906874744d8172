"""Making one node legal, and then whatever comes in its place.

A node crosses the boundaries between the opset version it is written for and the target's, or is replaced: by the body
of a rule, by other operators where the target has not got its own, by an equivalent form where the runtime gets it
wrong. Nodes that come in its place are settled in turn, from the opset version they were written for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto, defs

from reducelower.adapters.dynamic_axes import BodyWantedError
from reducelower.adapters.registry import Replacement, crossings
from reducelower.errors import RefusedError
from reducelower.legalization.legality import Treatment, Treatments
from reducelower.model.graph import HOLDING_GRAPHS, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, schema, taken_types
from reducelower.options import Target
from reducelower.plan import Label
from reducelower.rulebook.rules import SHIPPED, Rules
from reducelower.scope.body import AnyScope, BodyScope, InnerScope

if TYPE_CHECKING:
    from reducelower.legalization.runtime import Mender
    from reducelower.rulebook import Rule
    from reducelower.runtimes import Fact

__all__ = ["Settler"]

_TAKEN_EVERYWHERE = frozenset(f"tensor({name})" for name in ("float", "double", "float16", "int64"))
"""Types that an operator which ever took them, or the like of them, always took."""


_OFTEN = 8
"""Times that an operator is expressed by others within its own expression; simpler forms of itself take two or three,
and operators that are expressed by each other take no end."""


class Settler:
    """What settles the nodes of one run; by opset version, its tables say what the nodes of each operator need."""

    def __init__(self, target: Target, rules: Rules) -> None:
        """Prepare a run."""
        assert target.opset is not None
        self.target = target
        self.goal: int = target.opset
        self.rules = rules
        self.tables: dict[int, Treatments] = {}
        self._expanding: list[str] = []
        self._expressing: list[str] = []
        self._mender: Mender | None = None

    def take_unmended(self) -> tuple[str, ...]:
        """What overflows on the runtime that the model is for, and could not be mended since this was last asked."""
        return () if self._mender is None else self._mender.take_unmended()

    @property
    def underway(self) -> tuple[str, ...]:
        """The operators whose rules or expressions are being written out, which none within may lead back to."""
        return (*self._expanding, *self._expressing)

    def table(self, opset: int) -> Treatments:
        """What operators need whose nodes are written for an opset version."""
        if opset not in self.tables:
            self.tables[opset] = Treatments(opset, self.target)
        return self.tables[opset]

    def settle(
        self, node: NodeProto, opset: int, scope: AnyScope, treatment: Treatment, *, mistyped: bool = False
    ) -> tuple[list[NodeProto] | None, str]:
        """Make one node legal: what replaces it, or None, and the name of what did that or edited the node.

        `mistyped` says that the node came in place of one of an element type which its version may not take.
        """
        if treatment.refusal:
            raise RefusedError(treatment.refusal)
        if treatment.expand:
            before = node.SerializeToString()
            try:
                return self.expand(node, opset, scope, self.rules.find(node, scope))
            except RefusedError as refused:
                raise self._naming_a_book(refused, before, opset, scope) from None
        if treatment.absent:
            return self._replace_absent(node, opset, scope)
        labels = ""
        for crossing in treatment.crossings:
            crossing.leave_out_empty_ends(node)
            inputs, before = list(node.input), node.SerializeToString()
            try:
                outcome = crossing.cross(node, scope)
            except BodyWantedError:
                rule = self.rules.find_simpler(node, scope)
                nodes, label = self.expand(node, crossing.boundary, scope, rule)
                return nodes, f"{label}, for axes known at run time"
            if outcome is None and node.SerializeToString() == before:
                continue
            label = outcome.label if isinstance(outcome, Replacement) else crossing.label
            labels = f"{labels}; {label}" if labels else label
            if outcome is not None:
                lost = self.table(opset).dropped.get(node.op_type)
                mistyped = mistyped or any(scope.type_string(name) in lost for name in inputs if lost and name)
                return self.settle_all(outcome, crossing.opset, scope, mistyped=mistyped), labels
        if treatment.facts:
            outcome, label = self._mend(node, scope, treatment.facts)
            if outcome is not None:
                return outcome, _joined(labels, label)
        return None, labels

    def _mend(self, node: NodeProto, scope: AnyScope, facts: tuple[Fact, ...]) -> tuple[list[NodeProto] | None, str]:
        if self._mender is None:
            from reducelower.legalization.runtime import Mender

            self._mender = Mender(self)
        return self._mender.mend(node, scope, facts)

    def settle_all(
        self, nodes: list[NodeProto], opset: int, around: AnyScope, *, mistyped: bool = False
    ) -> list[NodeProto]:
        """Make nodes that replace another legal, from the opset version they are written for."""
        if not nodes:
            return nodes
        scope = BodyScope(around, nodes, opset)
        table = self.table(opset)
        if self._mender is not None and self._mender.is_trying:
            self._mender.refuse_hopeless(((node, table[node.op_type]) for node in nodes), scope)
        settled: list[NodeProto] = []
        for node in nodes:
            treatment = table[node.op_type]
            if node.domain not in DEFAULT_DOMAINS:
                settled.append(node)
                continue
            outcome: list[NodeProto] | None = None
            if treatment is not None:
                if node.op_type in HOLDING_GRAPHS:
                    self._settle_subgraphs(node, scope, mistyped=mistyped)
                outcome, _ = self.settle(node, opset, scope, treatment, mistyped=mistyped)
            if outcome is not None:
                settled.extend(outcome)
            elif mistyped or node.op_type in table.dropped:
                settled.extend(self.fit(node, scope, strict=node.op_type in table.dropped) or [node])
            else:
                settled.append(node)
        return settled

    def _settle_subgraphs(self, node: NodeProto, scope: BodyScope, *, mistyped: bool = False) -> None:
        for number, _, graph in subgraphs(node):
            nodes = [NodeProto.FromString(inner.SerializeToString()) for inner in graph.node]
            inside = InnerScope(scope, graph, scope.types_inside(node, number))
            settled = self.settle_all(nodes, scope.opset, inside, mistyped=mistyped)
            del graph.node[:]
            graph.node.extend(settled)

    def expand(self, node: NodeProto, opset: int, scope: AnyScope, rule: Rule) -> tuple[list[NodeProto], str]:
        """Replace a node by the body of a rule, moved first to the opset version the rule is written for."""
        if node.op_type in self._expanding:
            raise RefusedError(f"the rule for {node.op_type} leads back to {node.op_type}", "change the rule")
        label = rule.name
        for crossing in crossings(node.op_type, opset, rule.opset):
            if crossing.is_plain:
                continue
            outcome = crossing.cross(node, scope)
            if outcome is not None:
                return self.settle_all(outcome, crossing.opset, scope), label
        from reducelower.rulebook.bodies import instantiate

        self._expanding.append(node.op_type)
        try:
            body = instantiate(rule, node, scope)
            return self.settle_all(body, rule.opset, scope), label
        finally:
            self._expanding.pop()

    def _naming_a_book(self, refused: RefusedError, node: bytes, opset: int, scope: AnyScope) -> RefusedError:
        """The refusal of a rule with a shipped rule book in its hint that can do what the chosen one cannot."""
        for name in SHIPPED:
            copy = NodeProto.FromString(node)
            try:
                self.expand(copy, opset, scope, Rules(name).find(copy, scope))
            except RefusedError:
                continue
            hint = f"--rules {name} works here"
            return RefusedError(refused.reason, f"{refused.hint}; {hint}" if refused.hint else hint)
        return refused

    def _replace_absent(self, node: NodeProto, opset: int, scope: AnyScope) -> tuple[list[NodeProto], str]:
        from reducelower.adapters import decompose

        known = self.target.runtime and self.target.runtime.against(f"{node.op_type} by other operators", node.op_type)
        if known:
            raise RefusedError(
                f"on {self.target.runtime}, no equivalent form comes out better: {known.says}",
                f"keep to an opset version that has {node.op_type}",
            )
        # They are written for an opset version that may not take all the types which the operator takes at its own.
        mistyped = any(scope.type_string(name) not in _TAKEN_EVERYWHERE for name in node.input if name)
        if self._expressing.count(node.op_type) == _OFTEN:
            raise RefusedError(f"opset {self.goal} has neither {' nor '.join(dict.fromkeys(self._expressing))}")
        self._expressing.append(node.op_type)
        try:
            nodes, written, label = decompose.replacement(node, opset, scope)
            return self.settle_all(nodes, written, scope, mistyped=mistyped), label
        finally:
            self._expressing.pop()

    def fit(self, node: NodeProto, scope: AnyScope, *, strict: bool = True) -> list[NodeProto] | None:
        """Cast around a node whose element type the target's version does not take; None if it takes it.

        What is of unknown type is refused where `strict`, else trusted to be taken.
        """
        goal = schema(node.op_type, self.goal)
        if goal is None:
            return None
        misfit = _misfit(node, scope, goal, strict=strict)
        if misfit is None:
            return None
        from reducelower.adapters import casts

        before, inner, after = casts.retype(node, scope, misfit, goal)
        # Node and casts are written for different opset versions, and the casts' types are known to be taken.
        around = (self.settle_all(before, casts.CAST_OPSET, scope), self.settle_all(after, casts.CAST_OPSET, scope))
        middle = [] if inner is None else [inner]
        if inner is not None and _misfit(inner, scope, goal, strict=False) not in (None, misfit):
            middle = self.fit(inner, scope, strict=False) or middle  # it has a second type that is not taken
        return [*around[0], *middle, *around[1]]


def _joined(label: str, further: str) -> str:
    """Both labels in one, with the reason that the further one has."""
    if not label:
        return further
    return Label(f"{label}; {further}", further.because) if isinstance(further, Label) else f"{label}; {further}"


def _misfit(node: NodeProto, scope: AnyScope, goal: defs.OpSchema, *, strict: bool) -> str | None:
    """The first type among inputs and outputs that a schema does not take, as schemas spell it."""
    # The type of an output that shares a type variable with an input follows from what is read.
    tied = {formal.type_str for formal in goal.inputs}
    for names, formals, are_inputs in ((node.input, goal.inputs, True), (node.output, goal.outputs, False)):
        for index, name in enumerate(names):
            if not name or not formals:
                continue
            formal = formals[min(index, len(formals) - 1)]
            found = scope.type_string(name)
            if found is None:
                if not strict or (not are_inputs and formal.type_str in tied):
                    continue
                raise RefusedError(
                    f"the element type of {name!r} is not known, and opset {scope.target_opset} takes fewer types",
                    scope.how_to_declare(name, "type"),
                )
            if found not in taken_types(goal, formal):
                return found
    return None
