"""Single nodes of every operator at every version, drawn from the schemas and the recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, defs, helper

from reducelower.model.schemas import all_operators, schema
from tools.fuzz.drawing import Draft, Input
from tools.fuzz.recipes import is_elementwise, recipe_of
from tools.fuzz.values import type_string

__all__ = ["DrawnNode", "draw_node", "operators_at"]


@dataclass(frozen=True)
class DrawnNode:
    """A node outside of a graph.

    Attributes:
        op_type: the operator.
        opset: opset version of the default domain.
        inputs: its inputs, None for one that is left out.
        attributes: attributes by name.
        output_types: type of each output as schemas write it; empty if the output is left out.
    """

    op_type: str
    opset: int
    inputs: tuple[Input | None, ...]
    attributes: Mapping[str, Any]
    output_types: tuple[str, ...]

    def written(self, inputs: Sequence[str], outputs: Sequence[str], name: str = "") -> NodeProto:
        """The node with names; `outputs` has one for every output that is not left out."""
        remaining = iter(outputs)
        names = [next(remaining) if spelt else "" for spelt in self.output_types]
        node: NodeProto = helper.make_node(self.op_type, list(inputs), names, name=name or None)
        schema_attributes = defs.get_schema(self.op_type, self.opset, "").attributes
        for key, value in self.attributes.items():
            kind = int(schema_attributes[key].type)  # type: ignore[call-overload]  # a pybind11 enum without stubs
            node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        return node


_VALUES: Mapping[str, Sequence[Any]] = {
    "approximate": ("none", "tanh"), "detect_negative": (0, 1), "detect_positive": (0, 1), "epsilon": (1e-3, 0.25),
    "high": (2.0,), "low": (-1.0,), "momentum": (0.5,), "stash_type": (1,), "softmax_precision": (1,),
    "left_window_size": (-1, 1), "right_window_size": (-1, 1), "chunk_size": (2,),
}  # fmt: skip
_VALUES_OF: Mapping[tuple[str, str], Sequence[Any]] = {("Celu", "alpha"): (0.5, 2.0, -1.5)}


def _values(op_type: str, name: str) -> Sequence[Any]:
    return _VALUES_OF.get((op_type, name)) or _VALUES.get(name, ())


def operators_at(opset: int) -> list[str]:
    """The operators of the default domain that an opset version has, in alphabetical order."""
    return sorted(name for name in all_operators() if schema(name, opset) is not None)


def draw_node(
    rng: np.random.Generator,
    op_type: str,
    opset: int,
    pool: dict[str, list[tuple[int, ...]]] | None = None,
    *,
    edge: bool = False,
) -> DrawnNode:
    """Draw a node of an operator.

    Args:
        rng: the source of all choices.
        op_type: the operator.
        opset: opset version, at which the operator exists.
        pool: shapes of existing values, by the name of their element type.
        edge: whether data are edge values.

    Raises:
        NotDrawableError: this draw failed; another may succeed.
    """
    in_force = schema(op_type, opset)
    assert in_force is not None, (op_type, opset)
    draft = Draft(rng, in_force, opset, pool or {}, edge, sums=not is_elementwise(op_type))
    if in_force.inputs or op_type in ("Constant", "RandomNormal", "RandomUniform", "SequenceEmpty"):
        recipe_of(op_type)(draft)
    draft.fill_attributes(_values)
    return DrawnNode(op_type, opset, tuple(draft.inputs), draft.attributes, _output_types(draft))


def _output_types(draft: Draft) -> tuple[str, ...]:
    formals = draft.schema.outputs
    types = []
    for position in range(max(draft.outputs, 1)):
        formal = formals[min(position, len(formals) - 1)]
        types.append(_type(draft, formal.type_str))
    while len(types) < sum(one.option == defs.OpSchema.FormalParameterOption.Single for one in formals):
        types.append(_type(draft, formals[len(types)].type_str))
    optional = [
        position
        for position in range(len(types))
        if position < len(formals) and formals[position].option == defs.OpSchema.FormalParameterOption.Optional
    ]
    left_out = [position for position in optional if draft.schema.name != "BatchNormalization" and draft.flip(0.3)]
    if len(left_out) < len(types):
        types = ["" if position in left_out else spelt for position, spelt in enumerate(types)]
    while not types[-1]:
        types.pop()
    return tuple(types)


def _type(draft: Draft, spelt: str) -> str:
    if "(" in spelt:
        return spelt
    if spelt in draft.types:
        return draft.types[spelt]
    for position, formal in enumerate(draft.schema.inputs):
        drawn = draft.inputs[position] if position < len(draft.inputs) else None
        if formal.type_str == spelt and drawn is not None and isinstance(drawn.value, np.ndarray):
            return type_string(drawn.value)
    allowed = next(one.allowed_type_strs for one in draft.schema.type_constraints if one.type_param_str == spelt)
    if len(allowed) == 1:
        return str(next(iter(allowed)))
    raise AssertionError(f"{draft.schema.name} {draft.opset}: no type for {spelt}")
