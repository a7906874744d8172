"""Express operators that the target's opset version lacks by operators that it has.

Rules for absent operators are tried first, then the function body in the operator's schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from onnx import FunctionProto, NodeProto, TypeProto, defs

from reducelower.adapters.crossings import crossings, moved
from reducelower.adapters.rules import AnyRule, rules_for
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.graph import HOLDING_GRAPHS
from reducelower.model.schemas import has_body, is_deprecated, opset_of, versions
from reducelower.rulebook.asked import Asked, Tried
from reducelower.rulebook.bodies import write_out
from reducelower.rulebook.boundaries import Boundaries
from reducelower.rulebook.occasions import Occasion, Written
from reducelower.scope.body import AnyScope
from reducelower.text import one_line

__all__ = ["expressions", "is_expressible", "replacement"]


class _SchemaBody:
    """The function body in the operator's schema, as a rule."""

    occasion = Occasion("absent", "")

    def written(self, tried: Tried) -> Written:
        """The nodes of the body.

        Raises:
            RefusedError: there is none.
        """
        node, scope, opset = tried.node, tried.scope, tried.opset
        function = _schema_body(node, opset, scope)
        if function is None:
            raise _refusal(node, opset, scope)
        nodes = write_out(function, {}, Asked(function, node, scope, opset), is_general=True)
        return Written(nodes, opset_of(function), f"body of {node.op_type}")


def expressions(op_type: str, own: Boundaries | None = None) -> list[AnyRule]:
    """The ways to express an operator by others, in the order in which they are tried; the last refuses the rest."""
    return [*rules_for(op_type, "absent", own=own), _SchemaBody()]


def is_expressible(op_type: str) -> bool:
    """Whether an operator can be expressed by others; a given node may still be refused."""
    if rules_for(op_type, "absent"):
        return True
    return op_type not in HOLDING_GRAPHS and has_body(defs.get_schema(op_type))


def replacement(
    node: NodeProto, opset: int, scope: AnyScope, rules: Iterable[AnyRule], own: Boundaries | None = None
) -> Written | None:
    """What the first rule that is for a node writes in place of it, after moving it to the version that the rule reads.

    Raises:
        RefusedError: the node cannot be moved, or a rule refuses it.
    """
    for rule in rules:
        reads = rule.occasion.boundary(node.op_type) or opset
        # The node stays moved, even if this rule is not for it.
        written, _ = moved(node, crossings(node.op_type, opset, reads, own), scope)
        if written is not None:
            return written._replace(label="")
        opset = reads
        written = rule.written(Tried(node, scope, opset))
        if written is not None:
            return written
    return None


def _refusal(node: NodeProto, opset: int, scope: AnyScope) -> RefusedError:
    first, goal = versions(node.op_type)[0], scope.target_opset
    if is_deprecated(node.op_type, goal):
        return RefusedError(f"opset {goal} withdrew {node.op_type}", f"stay at opset {opset}")
    if goal >= first:
        return RefusedError(f"no rule writes this {node.op_type} by other operators", "write one")
    return RefusedError(f"opset {goal} does not have {node.op_type}", f"opset {first} is the oldest that has it")


def _schema_body(node: NodeProto, opset: int, scope: AnyScope) -> FunctionProto | None:
    """The function body in the operator's schema, for the oldest opset version possible; None if there is none.

    Operators that hold a graph have none here, because their bodies would treat its nodes, which are of the model's
    opset version, as nodes of the body's.
    """
    if is_deprecated(node.op_type, opset) or node.op_type in HOLDING_GRAPHS:
        return None
    definition: Any = defs.get_schema(node.op_type, opset, "")  # Its stubs do not know the bodies by opset version.
    if definition.has_function:
        return _static_body(node.op_type, definition.since_version)
    if not definition.has_context_dependent_function:
        return None
    for attribute in node.attribute:
        value_of(node, attribute.name)  # the body depends on it: refused if only the enclosing function's calls know it
    types = []
    for name in node.input:
        operand_type = scope.type(name) if name else TypeProto()
        if operand_type is None:
            raise RefusedError(
                f"opset {scope.target_opset} does not have {node.op_type}, and the type of {name!r}, which its "
                "function body depends on, is not known",
                scope.how_to_declare(name, "type"),
            )
        types.append(operand_type.SerializeToString())
    body_opset = min(definition.context_dependent_function_opset_versions)
    try:
        text = definition.get_context_dependent_function_with_opset_version(body_opset, node.SerializeToString(), types)
    except Exception as error:  # the operators raise several kinds
        reason = one_line(error)
        raise RefusedError(
            f"opset {scope.target_opset} does not have {node.op_type}, and its function body cannot be made: {reason}"
        ) from error
    return FunctionProto.FromString(text) if text else None


@cache
def _static_body(op_type: str, since: int) -> FunctionProto:
    definition: Any = defs.get_schema(op_type, since, "")
    text: bytes = definition.get_function_with_opset_version(min(definition.function_opset_versions))
    return FunctionProto.FromString(text)
