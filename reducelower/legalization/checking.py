"""Check the output: the nodes of each distinct rewrite, and the whole model only if a rewrite is in doubt.

Running onnx's checker over the whole model takes several times as long as converting it. Untouched nodes are as valid
as before, and equal nodes are rewritten equally, so it is enough to check each distinct rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import NodeProto, checker

from reducelower.errors import Place, RefusedError, RuleError
from reducelower.legalization.memo.outcome import IR_VERSION_OF_RULES, Outcome
from reducelower.model.document import Document
from reducelower.model.graph import subgraphs, walk
from reducelower.model.schemas import element_type_name, parse_element_type
from reducelower.scope.node import NodeScope

__all__ = ["new_objection", "refuse_invalid", "refuse_types_not_allowed"]


def refuse_invalid(outcome: Outcome, opset: int, own_rules: Sequence[Place] = ()) -> None:
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


def refuse_types_not_allowed(
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


def new_objection(before: Document, after: Document) -> str:
    """What strict shape inference objects to in `after`; empty if nothing, or if it objects to `before` as well."""
    return after.objection if after.objection and not before.objection else ""
