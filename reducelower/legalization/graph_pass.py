"""The engine: one pass over the nodes that legalizes each or collects the reason why it cannot.

`node_rewriter` legalizes a single node, and `memo` repeats the result for nodes like it. Nodes are edited in place, and
replacements are spliced in at the very end, so positions stay valid all along. Operators that changed only in the
element types they take are looked at only if the model may have such a type.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from onnx import ModelProto, NodeProto

from reducelower.errors import Place, Refusal, RefusedError, RuleError
from reducelower.legalization.checking import refuse_invalid, refuse_types_not_allowed
from reducelower.legalization.dead_code import remove_unused
from reducelower.legalization.edits import Edit
from reducelower.legalization.memo import Memo, Outcome, ReadNode
from reducelower.legalization.node_rewriter import NodeRewriter
from reducelower.legalization.quantized_pairs import may_be_expanded, with_quantized
from reducelower.legalization.sharing import share
from reducelower.legalization.tidying import tidied
from reducelower.model.columns import NodeColumns
from reducelower.model.graph import HOLDING_GRAPHS, subgraphs
from reducelower.scope.blanks import fill
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.scope.node import NodeScope

__all__ = ["GraphPass"]


@dataclass(eq=False)
class GraphPass:
    """One run over one model.

    Attributes:
        model: the model to edit.
        ground: what all scopes share.
        checks: whether the checker looks at each outcome.
        edits: the edits of each graph, outer ones first.
        applied: the places of the rules of the user's own that were applied, once for each time.
        refusals: why something cannot be legalized; if there are any after `run`, the model must not be used.
    """

    model: ModelProto
    ground: Ground
    rewriter: NodeRewriter
    memo: Memo
    checks: bool
    edits: list[Edit] = field(default_factory=list)
    applied: list[Place] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def run(self, opset: int, nodes: NodeColumns) -> None:
        """Legalize a model of an opset version; `nodes` are those of its main graph before any edit."""
        self._walk(GraphScope(self.ground, self.model.graph, opset, nodes=nodes))
        remove_unused(self.edits)
        have_shared = [share(edit) for edit in self.edits]
        if any(have_shared):
            remove_unused(self.edits)
        for edit in self.edits:
            self.refusals += edit.left

    @property
    def unmended(self) -> tuple[str, ...]:
        """Sentences about overflow or wrong shapes on the target runtime that no form avoids."""
        runtime = self.rewriter.target.runtime
        if runtime is None or not self.edits:
            return ()
        ranks = (self.edits[0].scope.rank(value.name) for value in self.model.graph.output)
        outcomes = [outcome for edit in self.edits for _, _, outcome in edit.outcomes]
        unmended = dict.fromkeys(says for outcome in outcomes for says in outcome.unmended)
        return (*unmended, *runtime.misshapes(ranks))

    def _walk(self, scope: GraphScope) -> None:
        edit = Edit(scope)
        self.edits.append(edit)
        nodes, table = edit.nodes, self.rewriter.table(scope.opset)
        positions = nodes.positions(lambda op_type: op_type in HOLDING_GRAPHS or not table[op_type].lets_all_stay)
        originals: Iterable[bytes] = map(nodes.serialized, positions)
        if "DequantizeLinear" in nodes.op_types and may_be_expanded(table, self.rewriter.goal):
            originals = (with_quantized(data, scope) for data in originals)
        for index, read in self.memo.repeat(edit, zip(positions, originals, strict=True)):
            node, operands = read.in_blanks(), read.operands()
            if next(subgraphs(node), None) is None:
                self._work_out(edit, index, read, node, NodeScope(scope, operands))
                continue
            for inner in edit.inside(index):
                self._walk(inner)
            self._work_out(edit, index, read, nodes[index], NodeScope(scope, None))

    def _work_out(self, edit: Edit, index: int, read: ReadNode, node: NodeProto, scope: NodeScope) -> None:
        """Legalize a node by rules, teach the memo, and apply the outcome.

        `node` is `read` with blanks for names; a node with subgraphs has the names of the model, and is edited itself.
        """
        op_type, outputs, before = node.op_type, list(node.output), node.SerializeToString()
        operands = {*node.input, *outputs} - {""}
        try:
            replaced, label = self.rewriter.legalize(node, scope)
            self.applied += scope.applied
            if replaced is not None and self.rewriter.target.without_types:
                refuse_types_not_allowed(replaced, operands, scope, self.rewriter.target.without_types)
            nodes = None if replaced is None else tidied(replaced, outputs, scope)
            if replaced is None and node.SerializeToString() != before:
                # Dropping empty names at the end of inputs or outputs is not reported as a rewrite.
                nodes = [node]
            label = "" if nodes is None else label
            outcome = Outcome.of(scope, op_type, label, nodes, in_place=replaced is None)
            if self.checks and scope.operands:  # the nodes inside a node of the model have edits of their own
                refuse_invalid(outcome, self.rewriter.goal, scope.applied)
        except RefusedError as refused:
            # The traceback would keep the model alive.
            outcome = Outcome(op_type, refusal=RefusedError(refused.reason_for(op_type), refused.hint))
        except RuleError as error:
            raise RuleError(fill(error.reason, read.real_names()), error.path, error.line) from None
        self.memo.learn(edit.scope, read, scope, outcome)
        self.memo.put(outcome, edit, index, read)
