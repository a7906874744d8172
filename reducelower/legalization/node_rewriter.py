"""Legalize one node, and then the nodes that replace it.

A node crosses the boundaries between its opset version and the target's, or it is replaced: by the body of a rule, by
other operators if the target lacks its own, or by an equivalent form if the runtime gets it wrong. Replacements are
legalized in turn, from the opset version for which they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from onnx import GraphProto, NodeProto

from reducelower.adapters.absent import expressions, is_expressible, replacement
from reducelower.adapters.allowed import refuse_disallowed
from reducelower.adapters.casts import lacking, retypings
from reducelower.adapters.crossings import moved
from reducelower.adapters.rules import AnyRule, first
from reducelower.errors import RefusedError, RuleError, UnknownValueError
from reducelower.legalization.legality import Treatment, Treatments
from reducelower.legalization.written_for import written_for
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, REDUCTIONS, first_version, schema
from reducelower.options import Target
from reducelower.plan import joined
from reducelower.rulebook import Rule, RuleBook
from reducelower.rulebook.boundaries import Alternatives
from reducelower.rulebook.occasions import NeedsBodyError
from reducelower.rulebook.rules import no_rule, simpler_rule
from reducelower.scope.body import AnyScope, BodyScope

if TYPE_CHECKING:
    from reducelower.runtimes.remedy import Remedy
    from reducelower.runtimes.search import Trial

__all__ = ["NodeRewriter"]

_MOST_NESTED = 8
"""How often an operator may occur within its own expansion. Simpler forms of itself take two or three levels; operators
that are expanded into each other would never end."""


class NodeRewriter:
    """Legalizes the nodes of one run, with a table of treatments per opset version.

    The fields that say what a node is part of never change: for the nodes of an expansion, or of a form that is tried,
    there is a copy of the rewriter with other values in them. It shares everything else.
    """

    def __init__(self, target: Target, book: RuleBook, source: Document, opset: int, *, repairs: bool = False) -> None:
        """Prepare a run for a model of an opset version.

        If it `repairs`, it only moves nodes that are written for another opset version to that of the import.
        """
        assert target.opset is not None
        self.target = target
        self.repairs = repairs
        self.goal: int = target.opset
        self.book = book
        self._own = book.boundaries
        self.tables: dict[int, Treatments] = {opset: Treatments(opset, target, self._own, source, repairs=repairs)}
        self._trial: Trial | None = None
        """Where the search is that tries a form with these nodes; None for nodes of the model."""
        self._nested: tuple[str, ...] = ()
        """The operators that are replaced by these nodes, from the outside in."""
        self._mistyped = False
        """Whether the nodes are written for an opset version that may lack the element type of the data."""

    def _within(self, **fields: Any) -> NodeRewriter:
        """A rewriter for nodes that are part of something else."""
        inner = copy(self)
        inner.__dict__.update(fields)
        return inner

    def table(self, opset: int) -> Treatments:
        """The treatments of operators at an opset version."""
        if opset not in self.tables:
            self.tables[opset] = Treatments(opset, self.target, self._own)
        return self.tables[opset]

    def legalize(self, node: NodeProto, scope: AnyScope) -> tuple[list[NodeProto] | None, str]:
        """Legalize one node; return what replaces it, or None if it stays, perhaps edited, and a label for reports.

        Raises:
            RefusedError: it cannot be legalized.
        """
        if node.domain in self.target.without_domains:
            return self._by_rule_of_domain(node, scope)
        if node.domain not in DEFAULT_DOMAINS:
            return None, ""
        treatment = self.table(scope.opset)[node.op_type]
        if treatment.doubtful and not scope.is_made:
            scope.opset = self._opset_of_form(node, scope.opset)
            treatment = self.table(scope.opset)[node.op_type]
        if self.repairs and scope.opset == self.goal:
            return None, ""
        replaced, label = self._treated(node, scope, treatment)
        may_lack_type = self._mistyped or bool(treatment.dropped) if scope.is_made else treatment.occurs
        if replaced is None and may_lack_type and any(node.output):
            replaced = self._fit(node, scope, strict=bool(treatment.dropped))
            label = label if replaced is None else joined(label, "element type")
        return replaced, label

    def _opset_of_form(self, node: NodeProto, opset: int) -> int:
        """The opset version that a node of the model is written for."""
        written = written_for(node, opset)
        if written is not None and not self.repairs:
            reason = f"it is written for opset {written}, and the model imports opset {opset}"
            raise RefusedError(reason, "repair moves it: --repair, or reducelower.repair")
        return written or opset

    def _treated(self, node: NodeProto, scope: AnyScope, treatment: Treatment) -> tuple[list[NodeProto] | None, str]:
        """Legalize one node of the default domain, apart from its element types."""
        opset = scope.opset
        if treatment.is_nothing:
            return None, ""
        if node.domain:
            node.domain = ""  # both spellings of the default domain become one
        if treatment.refusal:
            if scope.is_made and scope.node_scope.applied and schema(node.op_type, opset) is None:
                reason = f"what it writes is for opset {opset}, which does not have {node.op_type}"
                raise RuleError(reason, *scope.node_scope.applied[-1])
            raise RefusedError(treatment.refusal, treatment.hint)
        refuse_disallowed(node)
        if treatment.expand:
            rule = self.book.rule_for(node, scope, self.target.without_types)
            if rule is not None:
                return self._expand(node, opset, scope, rule)
            if not is_expressible(node.op_type):
                raise no_rule(self.book, node, scope, self.target.without_types)
        if treatment.expand or treatment.absent:
            return self._by_other_operators(node, first_version(node.op_type, opset) or opset, scope)
        inputs = list(node.input)
        try:
            written, label = moved(node, treatment.crossings, scope)
        except NeedsBodyError as lost:
            if node.op_type not in REDUCTIONS:
                return self._by_other_operators(node, lost.opset, scope)
            rule = simpler_rule(self.book, node, scope, self.target.without_types)
            nodes, label = self._expand(node, lost.opset, scope, rule)
            return nodes, f"{label}, for axes known at run time"
        if written is not None:
            dropped = treatment.dropped
            is_mistyped = any(scope.type_string(name) in dropped for name in inputs if dropped and name)
            inner = self._within(_mistyped=True) if is_mistyped else self
            return inner.legalize_all(written.nodes, written.opset, scope), label
        if treatment.facts:
            from reducelower.runtimes.search import Search

            assert self.target.runtime is not None
            search = Search(self.target.runtime, self.book, self._apply)
            form, form_label = search.form_that_suits(node, scope, treatment.facts, self._trial)
            if form is not None:
                return form, joined(label, form_label)
        return None, label

    def _apply(self, remedy: Remedy, node: NodeProto, scope: AnyScope, trial: Trial) -> list[NodeProto] | None:
        """The nodes of a form that a search tries; None if it does not apply."""
        written = replacement(node, self.goal, scope, remedy.rules, self._own)
        inner = self._within(_trial=trial, _mistyped=True)  # it may be written for a version that lacks its type
        return None if written is None else inner.legalize_all(written.nodes, written.opset, scope)

    def _by_rule_of_domain(self, node: NodeProto, scope: AnyScope) -> tuple[list[NodeProto], str]:
        """Replace a node of a domain of which nothing may remain."""
        rules = self._own.of_domains.get(node.domain) if self._own is not None else None
        written = None if rules is None else first([Alternatives(rules.rules(node.op_type))], node, scope, 1)
        if written is None:
            raise RefusedError(
                f"the target has nothing of {node.domain}, and no rule says what this {node.op_type} becomes",
                f"write a rule for 'absent' into the folder versions/{node.domain} of your rules",
            )
        return self.legalize_all(written.nodes, written.opset, scope), written.label

    def legalize_all(
        self,
        nodes: list[NodeProto],
        opset: int,
        around: AnyScope,
        inside: tuple[NodeProto, GraphProto] | None = None,
    ) -> list[NodeProto]:
        """Legalize replacement nodes, from the opset version for which they were written.

        `inside` is the node around them and its subgraph, if they are in one; see `BodyScope`.
        """
        if not nodes:
            return nodes
        scope = BodyScope(around, nodes, opset, inside)
        legal: list[NodeProto] = []
        for node in nodes:
            op_type = node.op_type
            try:
                if op_type in HOLDING_GRAPHS and node.domain in DEFAULT_DOMAINS:
                    self._legalize_subgraphs(node, scope)
                replaced, _ = self.legalize(node, scope)
            except UnknownValueError:
                raise
            except RefusedError as refused:
                refused.operator = refused.operator or op_type
                raise
            legal += [node] if replaced is None else replaced
        return legal

    def _legalize_subgraphs(self, node: NodeProto, scope: BodyScope) -> None:
        for _, _, graph in subgraphs(node):
            nodes = [NodeProto.FromString(inner.SerializeToString()) for inner in graph.node]
            legal = self.legalize_all(nodes, scope.opset, scope, (node, graph))
            del graph.node[:]
            graph.node.extend(legal)

    def _expand(self, node: NodeProto, opset: int, scope: AnyScope, rule: Rule) -> tuple[list[NodeProto], str]:
        """Replace a node by the body of a rule, after moving it to the rule's opset version."""
        nodes, _ = self._replaced(node, opset, scope, (rule,))
        return nodes, rule.name

    def _by_other_operators(self, node: NodeProto, opset: int, scope: AnyScope) -> tuple[list[NodeProto], str]:
        if self.target.runtime is not None:
            from reducelower.runtimes.search import refuse_other_operators

            refuse_other_operators(self.target.runtime, node, scope)
        # The replacement is written for an opset version that may lack types that the operator takes at its own.
        nodes, label = self._within(_mistyped=True)._replaced(node, opset, scope, expressions(node.op_type, self._own))
        return nodes, label or f"{node.op_type} by other operators"

    def _replaced(
        self, node: NodeProto, opset: int, scope: AnyScope, rules: Sequence[AnyRule]
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
        inner = self._within(_nested=(*self._nested, node.op_type))
        written = replacement(node, opset, scope, rules, self._own)
        assert written is not None
        return inner.legalize_all(written.nodes, written.opset, scope), written.label

    def _fit(self, node: NodeProto, scope: AnyScope, *, strict: bool) -> list[NodeProto] | None:
        """Replace a node if the target's version does not take its element type; return None if it does.

        An unknown type is refused if `strict`, else accepted.
        """
        goal = schema(node.op_type, self.goal)
        if goal is None or not lacking(node, scope, goal, strict=strict):
            return None
        return self._within(_mistyped=True)._replaced(node, self.goal, scope, retypings(node.op_type, self._own))[0]
