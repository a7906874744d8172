"""Shape inference over the replacement of one node: its objections, and the types of new values.

Inferring the whole model takes longer than converting it. Untouched nodes are as valid as before, so it is enough to
infer each replacement once per combination of operand types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, numpy_helper

from reducelower.model.attributes import make_node
from reducelower.model.graph import read_from_outside
from reducelower.model.value_info import without_made_up_symbols
from reducelower.types import infer_strictly

if TYPE_CHECKING:
    from reducelower.scope.blanks import Added
    from reducelower.scope.graph import Described
    from reducelower.scope.values import Values

__all__ = ["IR_VERSION_OF_RULES", "InferredAlone", "infer_alone", "operands_of"]

IR_VERSION_OF_RULES = 10
"""An IR version that allows everything a rule may write."""


class InferredAlone(NamedTuple):
    """The objection of strict inference to the nodes, and the types of their values by name."""

    objection: str
    types: Mapping[str, bytes]


_NOTHING = InferredAlone("", {})


def operands_of(nodes: Iterable[NodeProto], added: Sequence[tuple[str, Added]]) -> set[str]:
    """The names that nodes and their subgraphs read, but neither compute themselves nor have in `added`."""
    own = {name for name, _ in added}
    read: set[str] = set()
    for node in nodes:
        read |= read_from_outside(node) - own
        own.update(node.output)
    return read


def infer_alone(
    nodes: Sequence[NodeProto],
    read: Collection[str],
    added: Sequence[tuple[str, Added]],
    opset: int,
    described: Mapping[str, Described],
    values: Values,
    stated: Iterable[tuple[str, bytes]] = (),
) -> InferredAlone:
    """Infer the types of nodes by themselves; the result is empty if that is impossible.

    Args:
        nodes: the nodes.
        read: what they read; see `operands_of`.
        added: constants that are added for them, by name.
        opset: their opset version.
        described: types and values of the operands.
        values: the values behind the numbers in `described`.
        stated: types of new values that inference may not find.
    """
    if not described.keys() >= set(read) or any(node.domain for node in nodes):
        return _NOTHING
    model = ModelProto(ir_version=IR_VERSION_OF_RULES)
    model.opset_import.add(version=opset)
    graph = model.graph
    graph.name = "added"
    # Inference propagates the values of Constant nodes further than those of initializers.
    graph.node.extend(make_node("Constant", [], [name], value=each.tensor) for name, each in added)
    for name in sorted(read):
        value = values[described[name].number]
        if value is None:
            graph.input.append(_value_info(name, described[name].type))
        else:
            graph.node.append(make_node("Constant", [], [name], value=numpy_helper.from_array(value)))
    graph.node.extend(nodes)
    computed = [name for node in nodes for name in node.output]
    graph.value_info.extend(_value_info(name, described[name].type) for name in computed if name in described)
    graph.value_info.extend(_value_info(name, data) for name, data in stated)
    inferred, objection = infer_strictly(model)
    types = {value.name: without_made_up_symbols(value.type) for value in inferred.graph.value_info}
    return InferredAlone(objection, {name: value_type.SerializeToString() for name, value_type in types.items()})


def _value_info(name: str, value_type: bytes) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=TypeProto.FromString(value_type))
