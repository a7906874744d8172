"""What replaces a node, tidied: constants computed, equal nodes written once, nothing that is not read.

Rules write what is plain to read; here, in one place, it becomes what one would write by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.graph import nodes_needed, read_by, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.scope.body import BodyScope
from reducelower.types.fold import evaluated

if TYPE_CHECKING:
    from collections.abc import Hashable

    from reducelower.model.numbers import Array
    from reducelower.scope.node import NodeScope

__all__ = ["is_repeatable", "kind_of", "may_share", "rename_read", "tidied"]

_RANDOM = frozenset(
    {
        "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    }
)  # fmt: skip
"""Operators that may yield something else each time."""

_OF_SIZES = ("Shape", "Size")

_OF_WHOLE = (TensorProto.INT32, TensorProto.INT64)
"""Element types of sizes, and of what is computed from them."""

_DATA = "⟦0⟧"
"""The blank of a node's first operand."""

_LARGEST = 64
"""The most elements of a constant that is computed here: a table may be smaller as what makes it."""


def tidied(
    nodes: Sequence[NodeProto], outputs: Iterable[str], scope: NodeScope, *, sets_apart: bool = False
) -> list[NodeProto]:
    """The nodes without those whose result is constant, known already, what they read, or not read.

    Args:
        nodes: what replaces a node, in order.
        outputs: the outputs of the node replaced, which keep their names.
        sets_apart: whether an Identity may stand there on purpose, so that a runtime does not fuse what is around it.
        scope: the scope of the node replaced. Constants are added to it; those that are no longer read are released.
    """
    kept_names = set(outputs)
    operands = {name for node in nodes for name in node.input if name and not scope.is_new(name)} - kept_names
    instead: dict[str, str] = {}
    known: dict[Hashable, NodeProto] = {}
    kept: list[NodeProto] = []
    types = BodyScope(scope, nodes, scope.target_opset)
    for node in nodes:
        rename_read(node, instead)
        if kept_names.isdisjoint(node.output) and is_repeatable(node):
            if _passes_on(node, types) and not (sets_apart and node.op_type == "Identity"):
                instead[node.output[0]] = node.input[0]
                continue
            first = known.setdefault(kind_of(node), node)
            if first is not node:
                instead.update(
                    (name, instead.get(same, same)) for name, same in zip(node.output, first.output, strict=True)
                )
                continue
            constant = _computed(node, scope)
            if constant:
                instead[node.output[0]] = constant
                continue
        kept.append(node)
    kept = nodes_needed(kept, kept_names)
    read = {name for node in kept for name in read_by(node)}
    scope.release(*sorted(operands - read))
    return kept


def _passes_on(node: NodeProto, types: BodyScope) -> bool:
    """Whether a node is a Cast to the type that the value has. An Identity stays: rules write it to set nodes apart."""
    is_cast = node.op_type == "Cast" and node.domain in DEFAULT_DOMAINS
    return is_cast and types.element_type(node.input[0]) == value_of(node, "to")


def is_repeatable(node: NodeProto) -> bool:
    """Whether an equal node yields the same; what holds graphs is not looked into."""
    return node.op_type not in _RANDOM and not any(True for _ in subgraphs(node))


def kind_of(node: NodeProto) -> Hashable:
    """Equal for nodes that compute the same; they read the same values, and differ in the names of outputs at most."""
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    return node.op_type, node.domain, tuple(node.input), tuple(attributes), tuple(map(bool, node.output))


def may_share(nodes: Sequence[NodeProto], outputs: set[str]) -> bool:
    """Whether other nodes may have use for a part of what replaces a node, given in blanks with its outputs.

    That is what does not depend on the node's first operand, which is the data, or asks for its sizes.
    """
    of_data = {_DATA}
    for node in nodes:
        read = set(filter(None, read_by(node)))
        if read and outputs.isdisjoint(node.output) and (read.isdisjoint(of_data) or node.op_type in _OF_SIZES):
            return True
        if not read.isdisjoint(of_data):
            of_data.update(node.output)
    return False


def rename_read(node: NodeProto, names: dict[str, str]) -> None:
    """Let a node, and those of graphs in it, read other values."""
    if not names:
        return
    for index, name in enumerate(node.input):
        if name in names:
            node.input[index] = names[name]
    for _, _, graph in subgraphs(node):
        for inner in graph.node:
            rename_read(inner, names)


def _computed(node: NodeProto, scope: NodeScope) -> str:
    """The name of a small constant that is what a node yields; empty if it is none."""
    if node.domain not in DEFAULT_DOMAINS or len(node.output) != 1 or not node.input:
        return ""
    if any(scope.is_new(name) and scope.constant(name) is None for name in node.input if name):
        return ""
    values: list[Array | None] = []
    for name in node.input:
        value = scope.constant(name) if name and scope.is_new(name) else None
        if name and not scope.is_new(name):
            # To know whether data are computed from constants takes a look at all that they come from. Sizes are whole
            # numbers, so that of others it is not worth it.
            value = scope.small_constant(name, stated=name == _DATA and scope.element_type(name) not in _OF_WHOLE)
        if name and value is None:
            return ""
        values.append(value)
    result = evaluated(node, values, scope.target_opset)
    # The types that numpy has itself; others are held in ways of their own.
    if result is None or result.size > _LARGEST or result.dtype.kind not in "biuf":
        return ""
    try:
        scope.check_constant(numpy_helper.from_array(result))
    except RefusedError:
        return ""
    return scope.add_constant(result, node.output[0].rpartition("/")[2])
