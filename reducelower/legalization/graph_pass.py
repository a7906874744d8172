"""The engine: one pass over the nodes that legalizes each or collects the reason why it cannot.

`node_rewriter` legalizes a single node, and `memo` repeats the result for nodes like it. Nodes are edited in place, and
replacements are spliced in at the very end, so positions stay valid all along. Operators that changed only in the
element types they take are looked at only if the model may have such a type.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from reducelower.errors import Place, Refusal, RefusedError, RuleError
from reducelower.legalization.checking import refuse_invalid, refuse_types_not_allowed
from reducelower.legalization.dead_code import remove_unused
from reducelower.legalization.edits import Edit
from reducelower.legalization.memo import Memo, Outcome, ReadNode
from reducelower.legalization.node_rewriter import NodeRewriter
from reducelower.legalization.sharing import share
from reducelower.legalization.tidying import tidied
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, subgraphs
from reducelower.scope.blanks import fill
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.scope.node import NodeScope

__all__ = ["GraphPass"]


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
        *,
        checks: bool = True,
    ) -> None:
        """Prepare a run.

        `source` is the model before any edit. If it `checks`, the checker looks at each outcome.
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

    def _walk(self, scope: GraphScope) -> None:
        edit = Edit(scope)
        self.edits.append(edit)
        nodes, table = scope.node_list, self._rewriter.table(scope.opset)
        positions = nodes.positions(lambda op_type: op_type in HOLDING_GRAPHS or not table[op_type].lets_all_stay)
        for index, read in self._memo.repeat(edit, zip(positions, map(nodes.serialized, positions), strict=True)):
            node, operands = read.in_blanks(), read.operands()
            if next(subgraphs(node), None) is None:
                self._work_out(edit, index, read, node, NodeScope(scope, operands))
                continue
            for inner in scope.edited_inside(index):
                self._walk(inner)
            self._work_out(edit, index, read, nodes[index], NodeScope(scope, None))

    def _work_out(self, edit: Edit, index: int, read: ReadNode, node: NodeProto, scope: NodeScope) -> None:
        """Legalize a node by rules, teach the memo, and apply the outcome.

        `node` is `read` with blanks for names; a node with subgraphs has the names of the model, and is edited itself.
        """
        op_type, outputs, before = node.op_type, list(node.output), node.SerializeToString()
        operands = {*node.input, *outputs} - {""}
        try:
            replaced, label = self._rewriter.legalize(node, scope)
            self.applied += scope.applied
            if replaced is not None and self.target.without_types:
                refuse_types_not_allowed(replaced, operands, scope, self.target.without_types)
            nodes = None if replaced is None else tidied(replaced, outputs, scope)
            if replaced is None and node.SerializeToString() != before:
                # Dropping empty names at the end of inputs or outputs is not reported as a rewrite.
                nodes = [node]
            label = "" if nodes is None else label
            outcome = Outcome.of(scope, op_type, label, nodes, in_place=replaced is None)
            if self._checks and scope.operands:  # the nodes inside a node of the model have edits of their own
                refuse_invalid(outcome, self.goal, scope.applied)
        except RefusedError as refused:
            # The traceback would keep the model alive.
            outcome = Outcome(op_type, refusal=RefusedError(refused.reason_for(op_type), refused.hint))
        except RuleError as error:
            raise RuleError(fill(error.reason, read.real_names()), error.path, error.line) from None
        self._memo.learn(edit.scope, read, scope, outcome)
        self._memo.put(outcome, edit, index, read)
