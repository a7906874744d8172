"""The engine: one pass over the nodes that legalizes each or collects the reason why it cannot.

`node_rewriter` legalizes a single node, and `memo` repeats the result for nodes like it. Operators that changed only in
the element types they take are looked at only if the model may have such a type.

The checker looks at each distinct outcome. Running it over the whole model takes several times as long as converting
it; untouched nodes are as valid as before, and equal nodes are rewritten equally.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import ModelProto, NodeProto, checker

from reducelower.errors import Place, Refusal, RefusedError, RuleError
from reducelower.legalization.dead_code import remove_unused
from reducelower.legalization.edits import Edit
from reducelower.legalization.memo import Memo, Memory, Outcome, ReadNode
from reducelower.legalization.memo.outcome import IR_VERSION_OF_RULES
from reducelower.legalization.node_rewriter import NodeRewriter
from reducelower.legalization.quantized_pairs import may_be_expanded, with_quantized
from reducelower.legalization.tidying import share, tidied
from reducelower.model.graph import HOLDING_GRAPHS, subgraphs, walk
from reducelower.model.schemas import element_type_name, parse_element_type
from reducelower.options import Settings
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
    """

    def __init__(self, ground: Ground, rewriter: NodeRewriter, opset: int, memory: Memory, settings: Settings) -> None:
        """Start a run over a model of an opset version."""
        self.edits: list[Edit] = []
        self.applied: list[Place] = []
        self._ground = ground
        self._rewriter = rewriter
        self._table = rewriter.table(opset)
        self._checks = settings.validate
        self._looked_at: set[bytes] = set()
        may_lack_type = set()
        for op_type in ground.source.columns.operators:
            treatment = self._table[op_type]
            if op_type in HOLDING_GRAPHS or not treatment.lets_all_stay:
                self._looked_at.add(op_type.encode())
            if treatment.occurs:
                may_lack_type.add(op_type)
        kind = frozenset(may_lack_type), opset, ground.writes_initializers
        self._memo = Memo(memory, kind, remembers=settings.memo)

    def run(self, model: ModelProto) -> Sequence[Refusal]:
        """Look at all nodes; return why some cannot be legalized. The model to edit is left as it is so far."""
        self._walk(GraphScope(self._ground, model.graph, self._table.opset))
        remove_unused(self.edits)
        if any([*map(share, self.edits)]):
            remove_unused(self.edits)
        refusals: list[Refusal] = []
        for edit in self.edits:
            refusals += edit.left if edit.refused else ()
        return refusals

    @property
    def doubt(self) -> tuple[str, str] | None:
        """The first operator that is a reason to check the result as a whole, and what to do if it is wrong."""
        for edit in self.edits:
            if edit.doubts:
                return edit.doubts[0], "state the types of what it reads and yields"
        for op_type in sorted(self._table):
            if self._table[op_type].learned:
                return op_type, self._table[op_type].learned
        return None

    @property
    def unmended(self) -> Mapping[str, bool]:
        """Sentences about overflow or wrong shapes on the target runtime that no form avoids; see `NodeScope`."""
        runtime, unmended = self._rewriter.target.runtime, dict[str, bool]()
        if runtime is None or not self.edits:
            return unmended
        for rewrite in (rewrite for edit in self.edits for rewrite in edit.rewrites.values()):
            unmended |= {} if rewrite.outcome is None else rewrite.outcome.unmended
        main = self.edits[0].scope
        ranks = (main.rank(value.name) for value in main.holder.output)
        return unmended | dict.fromkeys(runtime.misshapes(ranks), False)

    def _walk(self, scope: GraphScope) -> None:
        edit = Edit(scope)
        self.edits.append(edit)
        positions = self._positions(scope)
        originals: Iterable[bytes] = map(scope.columns.data.__getitem__, positions)
        if "DequantizeLinear" in self._table and may_be_expanded(self._table, self._rewriter.goal):
            originals = (with_quantized(data, scope) for data in originals)
        for index, read in self._memo.repeat(edit, zip(positions, originals, strict=True)):
            node, operands = read.in_blanks(), read.operands()
            if next(subgraphs(node), None) is None:
                self._work_out(edit, index, read, node, NodeScope(scope, operands))
                continue
            for inner in edit.inside(index):
                self._walk(inner)
            self._work_out(edit, index, read, edit.opened[index], NodeScope(scope, None))

    def _positions(self, scope: GraphScope) -> Sequence[int]:
        """The positions of the nodes that may not stay as they are, or hold graphs; of all of other domains."""
        columns, looked_at = scope.columns, self._looked_at
        if columns.domains or len(columns.operators) < len(columns.data):  # a node without operator
            nodes = enumerate(scope.holder.node)
            return [at for at, node in nodes if node.domain or node.op_type.encode() in looked_at]
        return [at for at, op_type in enumerate(columns.operators) if op_type in looked_at] if looked_at else ()

    def _work_out(self, edit: Edit, index: int, read: ReadNode, node: NodeProto, scope: NodeScope) -> None:
        """Legalize a node by rules, teach the memo, and apply the outcome.

        `node` is `read` with blanks for names; a node with subgraphs has the names of the model, and is edited itself.
        """
        op_type, outputs, before = node.op_type, list(node.output), node.SerializeToString()
        operands = {*node.input, *outputs} - {""}
        not_allowed = self._rewriter.target.without_types
        try:
            replaced, label = self._rewriter.legalize(node, scope)
            self.applied += scope.applied
            if replaced is not None and not_allowed:
                _refuse_types_not_allowed(replaced, operands, scope, not_allowed)
            nodes = None if replaced is None else tidied(replaced, outputs, scope)
            if replaced is None and node.SerializeToString() != before:
                # Dropping empty names at the end of inputs or outputs is not reported as a rewrite.
                nodes = [node]
            label = "" if nodes is None else label
            outcome = Outcome.of(scope, op_type, label, nodes, in_place=replaced is None)
            if self._checks and scope.operands:  # the nodes inside a node of the model have edits of their own
                _refuse_invalid(outcome, self._rewriter.goal, scope.applied)
        except RefusedError as refused:
            # The traceback would keep the model alive.
            outcome = Outcome(op_type, refusal=RefusedError(refused.reason_for(op_type), refused.hint))
        except RuleError as error:
            raise RuleError(fill(error.reason, read.real_names()), error.path, error.line) from None
        self._memo.learn(read, scope, outcome)
        self._memo.put(outcome, edit, index, read)


# What is written has to be valid


def _refuse_invalid(outcome: Outcome, opset: int, own_rules: Sequence[Place] = ()) -> None:
    """Refuse an outcome if the checker objects to one of its nodes at the target's opset version.

    Raises:
        RuleError: the checker objects, and the user's own rules wrote the nodes; the error names the first rule.
        RefusedError: the checker objects, and only shipped rules wrote the nodes.
    """
    context = checker.DEFAULT_CONTEXT.__class__()
    context.ir_version = IR_VERSION_OF_RULES
    for node in walk(outcome.nodes or ()):
        if next(subgraphs(node), None) is not None:
            continue  # its subgraphs read outer values, which are not here
        context.opset_imports = {"": opset, node.domain: opset}
        try:
            checker.check_node(node, context)
        except checker.ValidationError as error:
            objection = str(error).splitlines()[0]
            if own_rules:
                reason = f"what it writes for {outcome.op_type} is not valid at opset {opset}: {objection}"
                raise RuleError(reason, *own_rules[0]) from None
            raise RefusedError(f"its replacement is not valid at opset {opset}: {objection}") from None


def _refuse_types_not_allowed(
    added: Iterable[NodeProto], operands: Iterable[str], scope: NodeScope, not_allowed: Iterable[str]
) -> None:
    """Refuse replacements that compute in an element type that the target lacks, unless an operand has that type."""
    of_operands = {scope.element_type(name) for name in operands}
    forbidden = {parse_element_type(name) for name in not_allowed} - of_operands
    for node in added:
        used = {scope.element_type(name) for name in node.input if scope.is_new(name)}
        if node.op_type == "Cast":
            used |= {attribute.i for attribute in node.attribute if attribute.name == "to"}
        for element_type in sorted(forbidden & used):
            name = element_type_name(element_type)
            raise RefusedError(
                f"its replacement computes in {name}, which the target does not allow",
                f"allow {name}, or choose other rules with --rules",
            )
