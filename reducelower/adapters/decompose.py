"""Express operators that the target's opset version lacks by operators that it has.

These are tried in turn: expressions that a module of `reducelower.adapters.ops` registered with `expresses`, the
shipped rules for absent operators, the book `rules/operators`, the function body in the operator's schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from onnx import FunctionProto, NodeProto, TypeProto, defs

from reducelower.adapters import ops
from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import moved
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.graph import HOLDING_GRAPHS
from reducelower.model.schemas import has_body, is_deprecated, versions
from reducelower.model.text import one_line
from reducelower.rulebook.bodies import instantiate
from reducelower.rulebook.boundaries import Boundaries, BoundaryRule, shipped
from reducelower.rulebook.rules import Rules
from reducelower.scope.body import AnyScope

__all__ = ["BY_ELEMENT_TYPE", "Expression", "expresses", "is_expressible", "replacement"]

Expression: TypeAlias = Callable[[Writer], "list[NodeProto] | None"]
"""Returns the nodes that replace a node, None to try the next expression, or raises RefusedError if none applies."""


@dataclass(frozen=True)
class _Registered:
    expression: Expression
    opset: int
    reads: int | None

    def read_version(self, op_type: str) -> int:
        return self.reads or 0

    def apply(self, node: NodeProto, scope: AnyScope, opset: int) -> list[NodeProto] | None:
        return self.expression(Writer(node, scope))


_EXPRESSIONS: dict[str, list[_Registered]] = {}

_BOOK = Rules("operators")

BY_ELEMENT_TYPE = frozenset(
    {
        "Bernoulli", "CenterCropPad", "Gelu", "LayerNormalization", "NegativeLogLikelihoodLoss", "RMSNormalization",
        "SoftmaxCrossEntropyLoss",
    }
)  # fmt: skip
"""Operators whose function body depends on attributes and element types of operands, but not on shapes."""


def expresses(*op_types: str, opset: int, reads: int | None = None) -> Callable[[Expression], Expression]:
    """Register an expression of operators by others, written for an opset version.

    Expressions are tried in the order of registration. A node is first converted to the version `reads` of its
    operator; None if the expression reads all versions.
    """

    def register(expression: Expression) -> Expression:
        for op_type in op_types:
            _EXPRESSIONS.setdefault(op_type, []).append(_Registered(expression, opset, reads))
        return expression

    return register


def is_expressible(op_type: str) -> bool:
    """Whether an operator can be expressed by others; a given node may still be refused."""
    ops.load(op_type)
    if shipped().tried(op_type, "absent") or op_type in _EXPRESSIONS or op_type in _BOOK.book.operators:
        return True
    return op_type not in HOLDING_GRAPHS and has_body(defs.get_schema(op_type))


def replacement(
    node: NodeProto, opset: int, scope: AnyScope, own: Boundaries | None = None
) -> tuple[list[NodeProto], int, str]:
    """The nodes that replace a node of an absent operator, their opset version, and the label for the report.

    Rules of the user's `own` are tried first.

    Raises:
        RefusedError: it cannot be expressed at `scope.target_opset`.
    """
    label = f"{node.op_type} by other operators"
    ops.load(node.op_type)
    expressions = [*_EXPRESSIONS.get(node.op_type, ()), *shipped().tried(node.op_type, "absent")]
    for each in (*(() if own is None else own.tried(node.op_type, "absent")), *expressions):
        # The node stays converted, even if this expression does not apply.
        nodes, opset = moved(node, opset, each.read_version(node.op_type) or opset, scope)
        if nodes is not None:
            return nodes, opset, label
        nodes = each.apply(node, scope, opset)
        if nodes is not None:
            is_own = isinstance(each, BoundaryRule) and each.book
            return nodes, each.opset, each.label(node, scope) if is_own else label
    if node.op_type in _BOOK.book.operators:
        rule = _BOOK.find(node, scope)
        return instantiate(rule.function, node, scope, rule.opset, rule.helpers), rule.opset, rule.name
    function = _schema_body(node, opset, scope)
    if function is not None:
        version = next(entry.version for entry in function.opset_import if not entry.domain)
        return instantiate(function, node, scope, opset), version, f"body of {node.op_type}"
    raise _refusal(node, opset, scope)


def _refusal(node: NodeProto, opset: int, scope: AnyScope) -> RefusedError:
    first, goal = versions(node.op_type)[0], scope.target_opset
    if goal >= first:
        return RefusedError(f"opset {goal} withdrew {node.op_type}", f"stay at opset {opset}")
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
        operand_type = _type_for_body(node, name, scope) if name else TypeProto()
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


def _type_for_body(node: NodeProto, name: str, scope: AnyScope) -> TypeProto | None:
    """The type of an operand, without its shape if the function body does not depend on shapes."""
    element_type = scope.element_type(name) if node.op_type in BY_ELEMENT_TYPE else None
    if element_type is None:
        return scope.type(name)
    return TypeProto(tensor_type=TypeProto.Tensor(elem_type=element_type))


@cache
def _static_body(op_type: str, since: int) -> FunctionProto:
    definition: Any = defs.get_schema(op_type, since, "")
    text: bytes = definition.get_function_with_opset_version(min(definition.function_opset_versions))
    return FunctionProto.FromString(text)
