"""Simplify a function body for one node: fold constants, leave out absent operands, remove dead nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper, numpy_helper

from reducelower.model.attributes import add_named
from reducelower.model.constants import tensor_of
from reducelower.model.graph import nodes_needed
from reducelower.model.numbers import Array
from reducelower.model.schemas import DEFAULT_DOMAINS, parse_element_type, schema

__all__ = [
    "Simplified",
    "Type",
    "hand_on_names",
    "resolved",
    "simplified",
    "types_of_outputs",
    "value_of_constants",
]

Type: TypeAlias = "Callable[[], int | None]"
"""The element type of a value, computed only if the body depends on it."""


@dataclass
class Simplified:
    """A simplified body.

    Attributes:
        nodes: the remaining nodes, with attribute references unresolved.
        constants: folded values by name.
        same: names that are aliases of other values.
    """

    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)


def simplified(
    function: FunctionProto,
    attributes: Mapping[str, AttributeProto],
    opset: int,
    types: Mapping[str, Type],
    outputs: Sequence[str],
) -> Simplified:
    """Simplify the body of a function; `types` has an entry for each input that is present."""
    body = Simplified()
    known = dict(types)
    absent = set(function.input) - set(types)
    for node in function.node:
        copy = deepcopy(node)
        copy.input[:] = [body.same.get(name, name) for name in node.input]
        value = value_of_constants(copy, attributes, body.constants, known)
        if value is not None:
            body.constants[node.output[0]] = value
            known[node.output[0]] = partial(helper.np_dtype_to_tensor_dtype, value.dtype)
            continue
        other = _as_it_is(copy, absent, known, attributes)
        if other:
            body.same[node.output[0]] = other
            continue
        known.update(types_of_outputs(copy, attributes, opset, known))
        body.nodes.append(copy)
    hand_on_names(body, outputs)
    body.nodes = nodes_needed(body.nodes, [body.same.get(name, name) for name in outputs])
    known.clear()  # breaks a reference cycle that would keep the model alive
    return body


def value_of_constants(
    node: NodeProto, attributes: Mapping[str, AttributeProto], constants: Mapping[str, Array], types: Mapping[str, Type]
) -> Array | None:
    """The output of a node if it can be folded: a Constant, or a simple function of known constants."""
    if node.domain not in DEFAULT_DOMAINS:
        return None
    if node.op_type == "Constant":
        tensor = tensor_of(resolved(node, attributes))
        return None if tensor is None else numpy_helper.to_array(tensor)
    if node.op_type in ("Cast", "CastLike"):
        value, goal = constants.get(node.input[0]), _goal(node, attributes, types)
        return None if value is None or goal is None else value.astype(helper.tensor_dtype_to_np_dtype(goal))
    compute = _COMPUTED.get(node.op_type)
    if compute is None or any(name not in constants for name in node.input):
        return None
    return compute([constants[name] for name in node.input])


_COMPUTED: Mapping[str, Callable[[Sequence[Array]], Array]] = {
    "Concat": lambda parts: np.concatenate(parts),  # of shapes, which have one axis
    "Reciprocal": lambda operands: np.reciprocal(operands[0]),
    "Reshape": lambda operands: operands[0].reshape(operands[1].tolist()),
    "Sqrt": lambda operands: np.asarray(np.sqrt(operands[0])),
}


def resolved(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    """A node with attribute references replaced by the attributes given; others are left out."""
    copy = NodeProto(op_type=node.op_type, domain=node.domain, input=node.input, output=node.output)
    for attribute in node.attribute:
        given = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if given is not None:
            add_named(copy, given, attribute.name)
    return copy


def _goal(node: NodeProto, attributes: Mapping[str, AttributeProto], types: Mapping[str, Type]) -> int | None:
    """The target element type of a Cast or CastLike."""
    if node.op_type == "CastLike":
        return _type(types, node.input[1])
    found = (attribute for attribute in resolved(node, attributes).attribute if attribute.name == "to")
    return next((attribute.i for attribute in found if not attribute.ref_attr_name), None)


def _as_it_is(
    node: NodeProto, absent: set[str], types: Mapping[str, Type], attributes: Mapping[str, AttributeProto]
) -> str:
    """The input that a node passes on unchanged; empty if it computes something.

    That includes adding an absent operand, and casting to the data's own type.
    """
    if node.op_type == "Add" and absent.intersection(node.input):
        return next((name for name in node.input if name not in absent), "")
    if node.op_type in ("Cast", "CastLike") and "stash_type" in attributes:
        goal = _goal(node, attributes, types)
        return node.input[0] if goal is not None and goal == _type(types, node.input[0]) else ""
    return ""


def types_of_outputs(
    node: NodeProto, attributes: Mapping[str, AttributeProto], opset: int, types: Mapping[str, Type]
) -> Iterator[tuple[str, Type]]:
    """The element types of a node's outputs, as far as its schema ties them to those of its inputs."""
    found = schema(node.op_type, opset) if node.domain in DEFAULT_DOMAINS else None
    if found is None:
        return
    tied = {formal.type_str: name for formal, name in zip(found.inputs, node.input, strict=False) if name}
    for formal, name in zip(found.outputs, node.output, strict=False):
        if node.op_type in ("Cast", "CastLike"):
            yield name, partial(_goal, node, attributes, types)
        elif formal.type_str in tied:
            yield name, partial(_type, types, tied[formal.type_str])
        elif len(formal.types) == 1 and (only := next(iter(formal.types))).startswith("tensor("):
            yield name, partial(parse_element_type, only)


def _type(types: Mapping[str, Type], name: str) -> int | None:
    return types[name]() if name in types else None


def hand_on_names(body: Simplified, outputs: Sequence[str]) -> None:
    """If an output is an alias, let the node that computes the value compute the output directly."""
    yielded = {name for node in body.nodes for name in node.output}
    for output in outputs:
        other = body.same.get(output)
        if other is None or other not in yielded or other in outputs:
            continue
        for node in body.nodes:
            node.input[:] = [output if name == other else name for name in node.input]
            node.output[:] = [output if name == other else name for name in node.output]
        body.same = {name: output if target == other else target for name, target in body.same.items()}
        del body.same[output]
