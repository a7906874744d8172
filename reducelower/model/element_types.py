"""The element types of outputs, from the type variables and attributes of operators.

The output of `Add` has the type of its inputs, that of `Shape` is int64, that of `Cast` is in its attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from onnx import NodeProto, TensorProto, defs

from reducelower.model.attributes import attribute_of
from reducelower.model.constants import element_type_of_constant
from reducelower.model.schemas import DEFAULT_DOMAINS, parse_element_type, plain_domain, schema

__all__ = [
    "ElementTypeOrInputs",
    "formal_at",
    "only_element_type",
    "output_element_type",
]

ElementTypeOrInputs: TypeAlias = "int | Sequence[str]"
"""An element type (0: unknown), or the inputs that all have the element type of the output."""

_BY_ATTRIBUTE = {
    **dict.fromkeys(("Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"), "dtype"),
    "Cast": "to",
    "ConstantOfShape": "value",
}


def output_element_type(node: NodeProto, place: int, opset: int) -> ElementTypeOrInputs:
    """The element type of an output: the type, the inputs that share it, or 0 if unknown.

    `place` is the position of the output, `opset` the version of the node's domain.
    """
    if node.domain not in DEFAULT_DOMAINS:
        return _of_formals(node, place, opset)
    if node.op_type == "Constant":
        return element_type_of_constant(node)
    by_attribute = _BY_ATTRIBUTE.get(node.op_type)
    if by_attribute is not None:
        attribute = attribute_of(node, by_attribute)
        if attribute is None:
            return TensorProto.FLOAT if node.op_type == "ConstantOfShape" else 0
        return attribute.i or attribute.t.data_type  # both are 0 if it refers to an attribute of the function
    return _of_formals(node, place, opset)


def _of_formals(node: NodeProto, place: int, opset: int) -> ElementTypeOrInputs:
    domain = plain_domain(node.domain)
    answer = _by_variables(node.op_type, domain, opset, place, len(node.input))
    return answer if isinstance(answer, int) else [name for name in map(node.input.__getitem__, answer) if name]


@cache
def _by_variables(op_type: str, domain: str, opset: int, place: int, inputs: int) -> int | tuple[int, ...]:
    """The element type of an output, or the positions of the inputs that share its type variable, or 0."""
    operator = schema(op_type, opset, domain)
    output = None if operator is None else formal_at(operator.outputs, place)
    if operator is None or output is None:
        return 0
    formals = [formal_at(operator.inputs, index) for index in range(inputs)]
    alike = tuple(index for index, formal in enumerate(formals) if formal and formal.type_str == output.type_str)
    return only_element_type(output) or alike


def only_element_type(parameter: defs.OpSchema.FormalParameter) -> int:
    """The element type of a schema parameter that allows only one; else 0."""
    types = parameter.types
    (only,) = types if len(types) == 1 else ("",)
    return parse_element_type(only) if only.startswith("tensor(") else 0


def formal_at(formals: Sequence[defs.OpSchema.FormalParameter], place: int) -> defs.OpSchema.FormalParameter | None:
    """The formal parameter at a position; None for a variadic one whose values may differ in type."""
    formal = formals[min(place, len(formals) - 1)] if formals else None
    if formal is None or formal.option != defs.OpSchema.FormalParameterOption.Variadic:
        return formal if place < len(formals) else None
    return formal if formal.is_homogeneous else None
