"""The engine: one pass over the nodes that legalizes each or collects the reason why it cannot.

`node_rewriter` legalizes a single node, and `memo` repeats the result for nodes like it. Nodes are edited in place, and
replacements are spliced in at the very end, so positions stay valid all along. Operators that changed only in the
element types they take are looked at only if the model may have such a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from onnx import ModelProto, NodeProto

from reducelower.errors import Place, Refusal, RefusedError, RuleError
from reducelower.legalization.checking import refuse_invalid, refuse_types_not_allowed
from reducelower.legalization.dead_code import remove_unused
from reducelower.legalization.edits import Edit
from reducelower.legalization.memo import NOTHING, Memo, Outcome, ReadNode, put_in_own_names
from reducelower.legalization.node_rewriter import NodeRewriter
from reducelower.legalization.quantized_pairs import may_be_expanded, with_quantized
from reducelower.legalization.sharing import share
from reducelower.legalization.tidying import tidied
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.written_for import may_be_of_another_opset, written_for
from reducelower.plan import joined
from reducelower.scope.blanks import fill
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.scope.node import NodeScope

__all__ = ["GraphPass"]

_Settled: TypeAlias = "tuple[list[NodeProto] | None, str]"
_Settle: TypeAlias = Callable[[NodeProto, NodeScope], _Settled]
"""Legalizes one node; returns what replaces it, or None if it stays, perhaps edited, and a label for the report."""


class GraphPass:
    """One run over one model.

    Attributes:
        edits: the edits of each graph, outer ones first.
        applied: the places of the rules of the user's own that were applied, once for each time.
        refusals: why something cannot be legalized; if there are any after `run`, the model must not be used.
    """

    def __init__(
        self,
        model: ModelProto,
        source: Document,
        ground: Ground,
        rewriter: NodeRewriter,
        memo: Memo,
        suspects: frozenset[str] = frozenset(),
        *,
        checks: bool = True,
    ) -> None:
        """Prepare a run.

        `source` is the model before any edit. Nodes of the operators in `suspects` may have an element type that the
        target does not take. If it `checks`, the checker looks at each outcome.
        """
        self.model = model
        self.source = source
        self.target = rewriter.target
        self.goal = rewriter.goal
        self.ground = ground
        self.refusals: list[Refusal] = []
        self.edits: list[Edit] = []
        self.applied: list[Place] = []
        self._checks = checks
        self._rewriter = rewriter
        self._memo = memo
        self._suspects = suspects

    def run(self, source_opset: int) -> None:
        """Legalize the model."""
        nodes = self.source.columns.main_nodes
        self._walk(GraphScope(self.ground, self.model.graph, source_opset, nodes=nodes))
        remove_unused(self.edits)
        has_shared = False
        for edit in self.edits:
            has_shared |= share(edit)
        if has_shared:
            remove_unused(self.edits)
        for edit in self.edits:
            self.refusals += edit.left

    @property
    def unmended(self) -> tuple[str, ...]:
        """Sentences about overflow or wrong shapes on the target runtime that no form avoids."""
        runtime = self.target.runtime
        if runtime is None or not self.edits:
            return ()
        ranks = (self.edits[0].scope.rank(value.name) for value in self.model.graph.output)
        outcomes = [outcome for edit in self.edits for _, _, outcome in edit.outcomes]
        unmended = dict.fromkeys(says for outcome in outcomes for says in outcome.unmended)
        return (*unmended, *runtime.misshapes(ranks))

    # One pass over the nodes

    def _walk(self, scope: GraphScope) -> None:
        edit = Edit(scope)
        self.edits.append(edit)
        nodes, table = scope.node_list, self._rewriter.table(scope.opset)
        treated = {op for op in nodes.op_types if not table[op].is_nothing or self._is_doubtful(op, scope)}
        treated |= (self._suspects | HOLDING_GRAPHS) & nodes.op_types
        if self.target.without_domains:
            treated = {*nodes.op_types}  # these operators do not include their domains
        positions = nodes.positions(treated.__contains__)
        originals: Iterable[bytes] = map(nodes.serialized, positions)
        if "DequantizeLinear" in treated and may_be_expanded(table, self.goal):
            originals = (with_quantized(data, scope) for data in originals)
        for index, read in self._memo.repeat(edit, zip(positions, originals, strict=True)):
            node = read.in_blanks()
            holds_graphs = next(subgraphs(node), None) is not None
            settle = self._way(node, scope, holds_graphs=holds_graphs)
            if holds_graphs:
                for inner in scope.edited_inside(index):
                    self._walk(inner)
                if settle is not None:
                    self._work_out_holder(edit, index, settle)
            elif settle is not None:
                self._work_out(edit, index, read, node, settle)
            else:
                self._memo.learn(scope, read, None, NOTHING)

    def _is_doubtful(self, op_type: str, scope: GraphScope) -> bool:
        """Whether nodes of an operator may be written for another opset version, so that each must be checked."""
        return self._rewriter.repairs or may_be_of_another_opset(op_type, scope.opset, self.source.columns.attributes)

    def _way(self, node: NodeProto, scope: GraphScope, *, holds_graphs: bool) -> _Settle | None:
        """How to legalize a node; None if there is nothing to do."""
        if self._rewriter.is_unwanted(node):
            return self._rewriter.settle_other
        if node.domain not in DEFAULT_DOMAINS:
            return None
        treatment = self._rewriter.table(scope.opset)[node.op_type]
        is_legal = treatment.is_nothing and node.op_type not in self._suspects
        return None if is_legal and (holds_graphs or not self._is_doubtful(node.op_type, scope)) else self._settle

    def _settle(self, node: NodeProto, scope: NodeScope) -> _Settled:
        operands = {*node.input, *node.output} - {""}
        if self._is_doubtful(node.op_type, scope.graph):
            written = written_for(node, scope.opset)
            if written is None and self._rewriter.repairs and scope.opset == self.goal:
                return None, ""
            if written is not None and not self._rewriter.repairs:
                reason = f"it is written for opset {written}, and the model imports opset {scope.opset}"
                raise RefusedError(reason, "repair moves it: --repair, or reducelower.repair")
            scope.opset = written or scope.opset
        settled, label = self._rewriter.settle(node, scope)
        if settled is not None and self.target.without_types:
            refuse_types_not_allowed(settled, operands, scope, self.target.without_types)
        if settled is None and node.op_type in self._suspects and any(node.output):
            settled = self._rewriter.fit(node, scope)
            label = label if settled is None else joined(label, "element type")
        return settled, label

    def _work_out(self, edit: Edit, index: int, read: ReadNode, node: NodeProto, settle: _Settle) -> None:
        """Legalize a node by rules, teach the memo, and apply the outcome. `node` is `read` with blanks for names."""
        scope = NodeScope(edit.scope, read.operands())
        op_type, outputs, before = node.op_type, list(node.output), node.SerializeToString()
        try:
            settled, label = settle(node, scope)
            self.applied += scope.applied
            nodes = None if settled is None else tidied(settled, outputs, scope)
            if settled is None and node.SerializeToString() != before:
                # Dropping empty names at the end of inputs or outputs is not reported as a rewrite.
                nodes = [node]
            label = "" if nodes is None else label
            outcome = Outcome.of(scope, op_type, label, nodes, in_place=settled is None)
            if self._checks:
                refuse_invalid(outcome, self.goal, scope.applied)
        except RefusedError as refused:
            # The traceback would keep the model alive.
            outcome = Outcome(op_type, refusal=RefusedError(refused.reason_for(op_type), refused.hint))
        except RuleError as error:
            raise RuleError(fill(error.reason, read.real_names()), error.path, error.line) from None
        self._memo.learn(edit.scope, read, scope, outcome)
        self._memo.put(outcome, edit, index, read)

    def _work_out_holder(self, edit: Edit, index: int, settle: _Settle) -> None:
        """Legalize a node with subgraphs, which uses the names of the model, and apply the result."""
        node, scope = edit.scope.node_list[index], NodeScope(edit.scope, None)
        if node.domain and node.domain in DEFAULT_DOMAINS:
            node.domain = ""
        op_type = node.op_type
        try:
            settled, label = settle(node, scope)
            self.applied += scope.applied
            nodes = [node] if settled is None else settled
            outcome = Outcome.of(scope, op_type, label, nodes, in_place=settled is None)
        except RefusedError as refused:
            edit.refuse(index, node.name, op_type, refused.reason_for(op_type), refused.hint)
            return
        if settled is not None or label or scope.unmended:
            put_in_own_names(outcome, edit, index)
