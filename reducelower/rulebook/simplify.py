"""A function body as simplified for one node, and the element types of the values in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from onnx import NodeProto

from reducelower.model.numbers import Array
from reducelower.model.schemas import DEFAULT_DOMAINS, parse_element_type, schema

__all__ = ["Simplified", "Type", "goal_of_cast", "hand_on_names", "types_of_outputs"]

Type: TypeAlias = "Callable[[], int | None]"
"""The element type of a value, computed only if the body depends on it."""


@dataclass
class Simplified:
    """A simplified body.

    Attributes:
        nodes: the remaining nodes.
        constants: folded values by name.
        same: names that are aliases of other values.
    """

    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)


def goal_of_cast(node: NodeProto, types: Mapping[str, Type]) -> int | None:
    """The element type that a Cast or CastLike gives; None if unknown."""
    if node.op_type == "CastLike":
        return _type(types, node.input[1])
    goals = (attribute for attribute in node.attribute if attribute.name == "to" and not attribute.ref_attr_name)
    return next((attribute.i for attribute in goals), None)


def types_of_outputs(node: NodeProto, opset: int, types: Mapping[str, Type]) -> Iterator[tuple[str, Type]]:
    """The element types of a node's outputs, as far as its schema ties them to those of its inputs."""
    operator = schema(node.op_type, opset) if node.domain in DEFAULT_DOMAINS else None
    if operator is None:
        return
    input_of = {formal.type_str: name for formal, name in zip(operator.inputs, node.input, strict=False) if name}
    for formal, name in zip(operator.outputs, node.output, strict=False):
        if node.op_type in ("Cast", "CastLike"):
            yield name, partial(goal_of_cast, node, types)
        elif formal.type_str in input_of:
            yield name, partial(_type, types, input_of[formal.type_str])
        elif len(formal.types) == 1 and (only := next(iter(formal.types))).startswith("tensor("):
            yield name, partial(parse_element_type, only)


def _type(types: Mapping[str, Type], name: str) -> int | None:
    return types[name]() if name in types else None


def hand_on_names(body: Simplified, outputs: Sequence[str]) -> None:
    """If an output is an alias, let the node that computes the value compute the output directly."""
    computed = {name for node in body.nodes for name in node.output}
    for output in outputs:
        other = body.same.get(output)
        if other is None or other not in computed or other in outputs:
            continue
        for node in body.nodes:
            node.input[:] = [output if name == other else name for name in node.input]
            node.output[:] = [output if name == other else name for name in node.output]
        body.same = {name: output if target == other else target for name, target in body.same.items()}
        del body.same[output]
