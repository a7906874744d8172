"""Recognize nodes that are written for another opset version than the one that the model imports.

Converters and scripts that change only the import leave such nodes: ReduceSum with axes as an attribute at opset 13,
or with axes as an input at 12. The checker refuses them, although they can mean only one thing. Exporters also wrote
operators, and runtimes run them, of which ONNX has no schema, or that it withdrew from the start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from onnx import NodeProto, defs

from reducelower.model.schemas import first_version, schema, schema_in_force, versions

__all__ = ["EXPERIMENTAL", "deprecated_from_start", "has_form", "may_be_of_another_opset", "written_for"]


def written_for(node: NodeProto, opset: int) -> int | None:
    """The opset version nearest to `opset` whose schema a node fits (of two, the older); None if `opset` or none."""
    own = schema_in_force(node.op_type, opset, "")
    if own is None or (not own.deprecated and has_form(node, own)):
        return None
    if first_version(node.op_type, opset) or deprecated_from_start(node.op_type, opset):
        return None
    all_versions = versions(node.op_type)
    fitting = [
        version if version > opset else min(x for x in all_versions if x > version) - 1
        for version in all_versions
        if version != own.since_version and (form := schema(node.op_type, version)) and has_form(node, form)
    ]
    return min(fitting, key=lambda version: (abs(version - opset), version), default=None)


def has_form(node: NodeProto, operator: defs.OpSchema) -> bool:
    """Whether a node fits a schema by the number of inputs and outputs, and by names and types of attributes."""
    if not all(node.input[place : place + 1] and node.input[place] for place in _required(operator)):
        return False
    if _count(node.input) > operator.max_input:
        return False
    if _count(node.output) > operator.max_output:
        return False
    names = {attribute.name for attribute in node.attribute}
    if any(formal.required and name not in names for name, formal in operator.attributes.items()):
        return False
    for attribute in node.attribute:
        formal = operator.attributes.get(attribute.name)
        if formal is None or attribute.type != int(formal.type):  # type: ignore[call-overload]  # see crossings
            return False
    return True


def _required(operator: defs.OpSchema) -> list[int]:
    """The places of the inputs that every node has; where the schema wants one or more, runtimes take none as well."""
    single = defs.OpSchema.FormalParameterOption.Single
    return [place for place, formal in enumerate(operator.inputs) if formal.option == single]


def _count(names: Iterable[str]) -> int:
    """How many names there are, without empty ones at the end."""
    present = list(map(bool, names))
    return len(present) - present[::-1].index(True) if True in present else 0


_WITHOUT_EFFECT = frozenset({"axis"})
"""Attributes of the first versions without an effect of their own: ``axis`` of broadcasting needs ``broadcast``."""


def may_be_of_another_opset(op_type: str, opset: int, attributes: Collection[str]) -> bool:
    """Whether nodes of an operator may be written for another opset version, so that each must be checked.

    `attributes` are the attribute names of all nodes of the model.
    """
    foreign = _foreign_attributes(op_type, opset)
    return foreign is None or not foreign.isdisjoint(attributes)


@cache
def _foreign_attributes(op_type: str, opset: int) -> frozenset[str] | None:
    """The attributes that only other opset versions have; None if nodes of another version may have none of them.

    Instead these have other numbers of inputs, or an attribute of the same name with another type, or the operator was
    withdrawn.
    """
    own = schema_in_force(op_type, opset, "")
    if own is None:
        return frozenset()
    forms = [form for version in versions(op_type) if (form := schema_in_force(op_type, version, "")) is not None]
    is_hidden = own.deprecated or any(
        form.max_input > own.max_input
        or len(_required(form)) < len(_required(own))
        or _has_other_types(form.attributes, own.attributes)
        for form in forms
    )
    names = frozenset(name for form in forms for name in form.attributes)
    return None if is_hidden else names - own.attributes.keys() - _WITHOUT_EFFECT


def _has_other_types(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return any(name in other and other[name].type != formal.type for name, formal in one.items())


def deprecated_from_start(op_type: str, opset: int) -> bool:
    """Whether the version in force is the operator's first and already deprecated, like GroupNormalization 18.

    Checkers reject such a node, but exporters write it and runtimes run it.
    """
    in_force = schema_in_force(op_type, opset, "")
    return in_force is not None and in_force.deprecated and in_force.since_version == versions(op_type)[0]


EXPERIMENTAL = frozenset(
    {
        "ATen", "Affine", "ConstantFill", "Crop", "DynamicSlice", "GRUUnit", "GivenTensorFill", "ImageScaler",
        "ParametricSoftplus", "Scale", "ScaledTanh",
    }
)  # fmt: skip
"""Operators of ONNX's first years without a schema today; the checker accepts them, and onnxruntime runs most.

Source: `experimental_ops` in onnx/checker.cc.
"""
