"""Whether an operator takes the element types of a node at another opset version."""

from __future__ import annotations

from onnx import NodeProto, defs

from reducelower.errors import UnknownValueError
from reducelower.scope.body import AnyScope

__all__ = ["first_type_not_taken", "may_not_be_taken"]

_TAKEN_EVERYWHERE = frozenset(f"tensor({name})" for name in ("float", "double", "float16", "int64"))
"""An operator that takes these types, or similar ones, at one version takes them at every version."""


def may_not_be_taken(node: NodeProto, scope: AnyScope) -> bool:
    """Whether some version of an operator may not take the type of an input of a node."""
    return any(scope.type_string(name) not in _TAKEN_EVERYWHERE for name in node.input if name)


def first_type_not_taken(node: NodeProto, scope: AnyScope, goal: defs.OpSchema, *, strict: bool) -> str | None:
    """The first type among inputs and outputs that a schema does not take, as schemas spell it."""
    # An output that shares a type variable with an input has that input's type.
    input_variables = {formal.type_str for formal in goal.inputs}
    for names, formals, are_inputs in ((node.input, goal.inputs, True), (node.output, goal.outputs, False)):
        for index, name in enumerate(names):
            if not name or not formals:
                continue
            formal = formals[min(index, len(formals) - 1)]
            type_name = scope.type_string(name)
            if type_name is None:
                if not strict or (not are_inputs and formal.type_str in input_variables):
                    continue
                raise UnknownValueError(
                    f"the element type of {name!r} is not known, and opset {scope.target_opset} takes fewer types",
                    scope.how_to_declare(name, "type"),
                )
            if type_name not in formal.types:
                return type_name
    return None
