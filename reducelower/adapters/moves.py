"""Attributes that became inputs in a newer version of their operator, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, defs, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, drop_attribute, refuse_reference
from reducelower.model.schemas import parse_element_type
from reducelower.scope.body import AnyScope

__all__ = ["Move", "moves_between", "to_attribute", "to_input"]

_RENAMED = {("Pad", "value"): "constant_value"}
"""Attributes that became inputs under another name; the others kept theirs, except for case (TopK's k)."""


@dataclass(frozen=True)
class Move:
    """An attribute of the older version that is an input of the newer one."""

    attribute: str
    attribute_type: int
    input: int
    input_name: str
    input_type: str


def moves_between(op_type: str, below: defs.OpSchema, above: defs.OpSchema) -> tuple[Move, ...]:
    """The attributes of the older version that are inputs of the newer one, in the order of the inputs."""
    old_inputs = {parameter.name for parameter in below.inputs}
    indices = {
        parameter.name.lower(): index
        for index, parameter in enumerate(above.inputs)
        if parameter.name not in old_inputs
    }
    moves = []
    for name, attribute in below.attributes.items():
        input_name = _RENAMED.get((op_type, name), name).lower()
        if name not in above.attributes and input_name in indices:
            index = indices[input_name]
            parameter = above.inputs[index]
            kind = int(attribute.type)  # type: ignore[call-overload]  # a pybind11 enum without stubs
            moves.append(Move(name, kind, index, parameter.name, parameter.type_str))
    return tuple(sorted(moves, key=lambda move: move.input))


def to_attribute(move: Move, node: NodeProto, scope: AnyScope, boundary: int) -> None:
    """Replace an input by an attribute, below the boundary; refused if it is computed."""
    if len(node.input) <= move.input or not node.input[move.input]:
        return
    name = node.input[move.input]
    value = scope.constant(name)
    if value is None:
        raise RefusedError(
            f"its input {move.input_name} is computed at run time, and opset {boundary - 1} takes "
            f"{move.attribute} only as an attribute",
            f"stay at opset {boundary} or above, or make {name!r} a constant",
        )
    node.attribute.append(_attribute(move, value))
    node.input[move.input] = ""
    if move.input == len(node.input) - 1:
        while len(node.input) > 1 and not node.input[-1]:
            del node.input[-1]


def _attribute(move: Move, value: np.ndarray) -> AttributeProto:
    if value.dtype.kind == "c":
        raise RefusedError(f"its input {move.input_name} holds complex numbers, which no attribute can hold")
    convert = int if move.attribute_type in (AttributeProto.INT, AttributeProto.INTS) else float
    numbers = [convert(number) for number in value.reshape(-1).tolist()]
    if move.attribute_type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return helper.make_attribute(move.attribute, numbers, attr_type=move.attribute_type)
    if len(numbers) != 1:
        raise RefusedError(f"its input {move.input_name} holds {len(numbers)} values where one is expected")
    return helper.make_attribute(move.attribute, numbers[0])


def to_input(move: Move, node: NodeProto, scope: AnyScope) -> None:
    """Replace an attribute by an input."""
    attribute = attribute_of(node, move.attribute)
    if attribute is None:
        return
    refuse_reference(attribute)
    if attribute.type != move.attribute_type:
        raise RefusedError(f"its attribute {move.attribute} is of the wrong type")
    name = _constant_input(move, attribute, node, scope)
    drop_attribute(node, move.attribute)
    while len(node.input) <= move.input:
        node.input.append("")
    node.input[move.input] = name


def _element_type(move: Move, node: NodeProto, scope: AnyScope) -> int:
    """The element type of the input; bounds such as those of Clip have that of the data."""
    if move.input_type.startswith("tensor("):
        return parse_element_type(move.input_type)
    if move.attribute_type in (AttributeProto.INT, AttributeProto.INTS):
        return TensorProto.INT64
    return scope.needed_element_type(node.input[0])


def _constant_input(move: Move, attribute: AttributeProto, node: NodeProto, scope: AnyScope) -> str:
    element_type = _element_type(move, node, scope)
    array = np.asarray(helper.get_attribute_value(attribute), dtype=helper.tensor_dtype_to_np_dtype(element_type))
    if move.input_name == "K":  # TopK takes k as a tensor of one element.
        array = array.reshape(1)
    return scope.add_constant(array, _constant_name(move.input_name, array))


def _constant_name(name: str, value: np.ndarray) -> str:
    """A readable name, such as ``axes_0_m1`` for the axes [0, -1]."""
    if value.size <= 8 and value.dtype.kind in "iu":
        return "_".join([name, *(str(item).replace("-", "m") for item in value.reshape(-1).tolist())])
    return name
