"""Legalize one node, and then the nodes that replace it.

A node crosses the boundaries between its opset version and the target's, or it is replaced: by the body of a rule, by
other operators if the target lacks its own, or by an equivalent form if the runtime gets it wrong. Replacements are
legalized in turn, from the opset version for which they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto

from reducelower.adapters.absent import expressions, is_expressible, replacement
from reducelower.adapters.allowed import refuse_disallowed
from reducelower.adapters.builder import Writer
from reducelower.adapters.casts import retypings
from reducelower.adapters.crossings import moved
from reducelower.adapters.rules import AnyRule, first
from reducelower.errors import RefusedError, RuleError, UnknownValueError
from reducelower.legalization.element_types import first_type_not_taken, may_not_be_taken
from reducelower.legalization.legality import Treatments
from reducelower.model.graph import HOLDING_GRAPHS, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, REDUCTIONS, first_version, schema, versions
from reducelower.options import Target
from reducelower.plan import joined
from reducelower.rulebook import Rule
from reducelower.rulebook.boundaries import Boundaries
from reducelower.rulebook.occasions import NeedsBodyError
from reducelower.rulebook.rules import Rules
from reducelower.scope.body import AnyScope, BodyScope

if TYPE_CHECKING:
    from reducelower.legalization.form_search import Trial
    from reducelower.runtimes.remedy import Remedy

__all__ = ["NodeRewriter"]

_MOST_NESTED = 8
"""How often an operator may occur within its own expansion. Simpler forms of itself take two or three levels; operators
that are expanded into each other would never end."""


class NodeRewriter:
    """Legalizes the nodes of one run, with a table of treatments per opset version.

    The fields that say what a node is part of never change: for the nodes of an expansion, or of a form that is tried,
    there is a copy of the rewriter with other values in them. It shares everything else.
    """

    def __init__(self, target: Target, rules: Rules, *, repairs: bool = False) -> None:
        """Prepare a run. If it `repairs`, it moves nodes written for another opset version than the target's only."""
        assert target.opset is not None
        self.target = target
        self.repairs = repairs
        self.goal: int = target.opset
        self.rules = rules
        self.tables: dict[int, Treatments] = {}
        self._trial: Trial | None = None
        """Where the search is that tries a form with these nodes; None for nodes of the model."""
        self._nested: tuple[str, ...] = ()
        """The operators that are replaced by these nodes, from the outside in."""

    @property
    def _own(self) -> Boundaries | None:
        """The user's own rules of version boundaries."""
        return self.rules.book.boundaries

    def table(self, opset: int) -> Treatments:
        """The treatments of operators at an opset version."""
        if opset not in self.tables:
            self.tables[opset] = Treatments(opset, self.target, self._own)
        return self.tables[opset]

    def settle(self, node: NodeProto, scope: AnyScope, *, mistyped: bool = False) -> tuple[list[NodeProto] | None, str]:
        """Legalize one node; return its replacement, or None, and the label of what replaced or edited it.

        `mistyped`: it belongs to a replacement written for an opset version that may lack the element type of the data.
        """
        opset = scope.opset
        treatment = self.table(opset)[node.op_type]
        if treatment.is_nothing:
            return None, ""
        if treatment.refusal:
            if scope.is_made and scope.node_scope.applied and schema(node.op_type, opset) is None:
                reason = f"what it writes is for opset {opset}, which does not have {node.op_type}"
                raise RuleError(reason, *scope.node_scope.applied[-1])
            raise RefusedError(treatment.refusal, treatment.hint)
        refuse_disallowed(node)
        if treatment.expand:
            return self.expand(node, opset, scope, self._rule(node, scope))
        if treatment.absent:
            return self._by_other_operators(node, first_version(node.op_type, opset) or opset, scope)
        inputs = list(node.input)
        try:
            written, label = moved(node, treatment.crossings, scope)
        except NeedsBodyError as lost:
            if node.op_type not in REDUCTIONS:
                return self._by_other_operators(node, lost.opset, scope)
            nodes, label = self.expand(node, lost.opset, scope, self.rules.find_simpler(node, scope))
            return nodes, f"{label}, for axes known at run time"
        if written is not None:
            dropped = treatment.dropped
            mistyped = mistyped or any(scope.type_string(name) in dropped for name in inputs if dropped and name)
            return self.settle_all(written.nodes, written.opset, scope, mistyped=mistyped), label
        if treatment.facts:
            from reducelower.legalization.form_search import Search

            assert self.target.runtime is not None
            search = Search(self.target.runtime, self.rules, self._apply)
            form, form_label = search.form_that_suits(node, scope, treatment.facts, self._trial)
            if form is not None:
                return form, joined(label, form_label)
        return None, label

    def _apply(self, remedy: Remedy, node: NodeProto, scope: AnyScope, trial: Trial) -> list[NodeProto] | None:
        """The nodes of a form that a search tries; None if it does not apply."""
        inner = copy(self)
        inner._trial = trial
        if isinstance(remedy.by, Rule):
            return inner.expand(node, self.goal, scope, remedy.by)[0]
        written = remedy.by(Writer(node, scope))
        return None if written is None else inner.settle_all(*written, scope)

    def settle_other(self, node: NodeProto, scope: AnyScope) -> tuple[list[NodeProto] | None, str]:
        """As `settle`, for a node of another domain that is not wanted."""
        rules = self._own.of_domains.get(node.domain) if self._own is not None else None
        written = None if rules is None else first(rules.rules(node.op_type), node, scope, 1)
        if written is None:
            raise RefusedError(
                f"the target has nothing of {node.domain}, and no rule says what this {node.op_type} becomes",
                f"write a rule for 'absent' into the folder versions/{node.domain} of your rules",
            )
        return self.settle_all(written.nodes, written.opset, scope), written.label

    def is_unwanted(self, node: NodeProto) -> bool:
        """Whether a node is of a domain of which nothing may remain."""
        return node.domain in self.target.without_domains

    def settle_all(
        self,
        nodes: list[NodeProto],
        opset: int,
        around: AnyScope,
        inside: tuple[NodeProto, GraphProto] | None = None,
        *,
        mistyped: bool = False,
    ) -> list[NodeProto]:
        """Legalize replacement nodes, from the opset version for which they were written.

        `inside` is the node around them and its subgraph, if they are in one; see `BodyScope`.
        """
        if not nodes:
            return nodes
        scope = BodyScope(around, nodes, opset, inside)
        settled: list[NodeProto] = []
        for node in nodes:
            if node.domain not in DEFAULT_DOMAINS:
                settled.append(node)
                continue
            op_type = node.op_type
            try:
                settled += self._settle_written(node, scope, mistyped=mistyped)
            except UnknownValueError:
                raise
            except RefusedError as refused:
                refused.operator = refused.operator or op_type
                raise
        return settled

    def _settle_written(self, node: NodeProto, scope: BodyScope, *, mistyped: bool) -> list[NodeProto]:
        """Legalize one replacement node."""
        if node.op_type in HOLDING_GRAPHS:
            self._settle_subgraphs(node, scope, mistyped=mistyped)
        outcome, _ = self.settle(node, scope, mistyped=mistyped)
        if outcome is not None:
            return outcome
        is_dropped = bool(self.table(scope.opset)[node.op_type].dropped)
        return (self.fit(node, scope, strict=is_dropped) if mistyped or is_dropped else None) or [node]

    def _settle_subgraphs(self, node: NodeProto, scope: BodyScope, *, mistyped: bool) -> None:
        for _, _, graph in subgraphs(node):
            nodes = [NodeProto.FromString(inner.SerializeToString()) for inner in graph.node]
            settled = self.settle_all(nodes, scope.opset, scope, (node, graph), mistyped=mistyped)
            del graph.node[:]
            graph.node.extend(settled)

    def expand(self, node: NodeProto, opset: int, scope: AnyScope, rule: Rule) -> tuple[list[NodeProto], str]:
        """Replace a node by the body of a rule, after moving it to the rule's opset version."""
        nodes, _ = self._replaced(node, opset, scope, (rule,))
        return nodes, rule.name

    def _by_other_operators(self, node: NodeProto, opset: int, scope: AnyScope) -> tuple[list[NodeProto], str]:
        if self.target.runtime is not None:
            from reducelower.legalization.form_search import refuse_other_operators

            refuse_other_operators(self.target.runtime, node, scope)
        # The replacement is written for an opset version that may lack types that the operator takes at its own.
        mistyped = may_not_be_taken(node, scope)
        nodes, label = self._replaced(node, opset, scope, expressions(node.op_type, self._own), mistyped=mistyped)
        return nodes, label or f"{node.op_type} by other operators"

    def _replaced(
        self, node: NodeProto, opset: int, scope: AnyScope, rules: Sequence[AnyRule], *, mistyped: bool = False
    ) -> tuple[list[NodeProto], str]:
        """Replace a node, written for an opset version, by what the first rule that is for it writes.

        Raises:
            RefusedError: none is, or operators of the target are expressed by each other.
            RuleError: the user's own rules lead back to the operator.
        """
        if self._nested.count(node.op_type) == _MOST_NESTED:
            if scope.node_scope.applied:
                raise RuleError(f"it leads back to {node.op_type}, which may not remain", *scope.node_scope.applied[-1])
            circle = list(dict.fromkeys(self._nested))
            raise RefusedError(f"opset {self.goal} has neither {' nor '.join(circle)}", operator=circle[0])
        inner = copy(self)
        inner._nested = (*self._nested, node.op_type)
        written = replacement(node, opset, scope, rules, self._own)
        return inner.settle_all(written.nodes, written.opset, scope, mistyped=mistyped), written.label

    def _rule(self, node: NodeProto, scope: AnyScope) -> Rule:
        try:
            return self.rules.find(node, scope)
        except RefusedError as refused:
            first_opset = versions(node.op_type)[0]
            if first_opset > 1 and is_expressible(node.op_type):
                refused.hint += f", or 'convert --opset {first_opset - 1}', which writes it by other operators"
            raise

    def fit(self, node: NodeProto, scope: AnyScope, *, strict: bool = True) -> list[NodeProto] | None:
        """Replace a node if the target's version does not take its element type; return None if it does.

        An unknown type is refused if `strict`, else accepted.
        """
        goal = schema(node.op_type, self.goal)
        if goal is None or first_type_not_taken(node, scope, goal, strict=strict) is None:
            return None
        rules = retypings(node.op_type, self._own)
        return self._replaced(node, self.goal, scope, rules, mistyped=True)[0]
