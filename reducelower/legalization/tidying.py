"""Tidy what replaces a node: compute constants, write equal nodes once, and drop what is not read.

Rules are written to be easy to read. This module turns their results into what one would write by hand.
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
from reducelower.types.contents import evaluated

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
"""Operators that may yield something different each time."""

_SIZE_OPERATORS = ("Shape", "Size")


_INTEGERS = (TensorProto.INT32, TensorProto.INT64)

_DATA = "⟦0⟧"
"""The blank of a node's first operand."""

_LARGEST = 64
"""The most elements of a constant to compute here: the nodes that make a large table are smaller than the table."""


def tidied(nodes: Sequence[NodeProto], outputs: Iterable[str], scope: NodeScope) -> list[NodeProto]:
    """The nodes without those whose result is constant, computed already, equal to their input, or not read.

    Args:
        nodes: what replaces a node, in order.
        outputs: the outputs of the node replaced, which keep their names.
        scope: the scope of the node replaced, to which constants are added.
    """
    kept_names = set(outputs)
    renamed: dict[str, str] = {}
    first_of_kind: dict[Hashable, NodeProto] = {}
    kept: list[NodeProto] = []
    types = BodyScope(scope, nodes, scope.target_opset)
    for node in nodes:
        rename_read(node, renamed)
        if kept_names.isdisjoint(node.output) and is_repeatable(node):
            if _passes_on(node, types):
                renamed[node.output[0]] = node.input[0]
                continue
            first = first_of_kind.setdefault(kind_of(node), node)
            if first is not node:
                renamed.update(
                    (name, renamed.get(same, same)) for name, same in zip(node.output, first.output, strict=True)
                )
                continue
            constant = _computed(node, scope)
            if constant:
                renamed[node.output[0]] = constant
                continue
        kept.append(node)
    return nodes_needed(kept, kept_names)


def _passes_on(node: NodeProto, types: BodyScope) -> bool:
    """Whether a node is a Cast to the type that the value has. An Identity counts as none: it may prevent fusion."""
    is_cast = node.op_type == "Cast" and node.domain in DEFAULT_DOMAINS
    return is_cast and types.element_type(node.input[0]) == value_of(node, "to")


def is_repeatable(node: NodeProto) -> bool:
    """Whether an equal node yields the same; False for any node with subgraphs."""
    return node.op_type not in _RANDOM and not any(True for _ in subgraphs(node))


def kind_of(node: NodeProto) -> Hashable:
    """A key that is equal for nodes that compute the same from the same values, whatever their outputs are called."""
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    return node.op_type, node.domain, tuple(node.input), tuple(attributes), tuple(map(bool, node.output))


def may_share(nodes: Sequence[NodeProto], outputs: set[str]) -> bool:
    """Whether rewrites of other nodes may compute a part of these nodes as well. All names are in blanks.

    Such a part does not depend on the first operand of the replaced node, which is the data, or only on its sizes.
    """
    of_data = {_DATA}
    for node in nodes:
        read = set(filter(None, read_by(node)))
        if read and outputs.isdisjoint(node.output) and (read.isdisjoint(of_data) or node.op_type in _SIZE_OPERATORS):
            return True
        if not read.isdisjoint(of_data):
            of_data.update(node.output)
    return False


def rename_read(node: NodeProto, names: dict[str, str]) -> None:
    """Let a node and the nodes of its subgraphs read other values."""
    if not names:
        return
    for index, name in enumerate(node.input):
        if name in names:
            node.input[index] = names[name]
    for _, _, graph in subgraphs(node):
        for inner in graph.node:
            rename_read(inner, names)


def _computed(node: NodeProto, scope: NodeScope) -> str:
    """The name of a constant with the result of a node; empty if the result is unknown or too large."""
    if node.domain not in DEFAULT_DOMAINS or len(node.output) != 1 or not node.input:
        return ""
    if any(scope.is_new(name) and scope.constant(name) is None for name in node.input if name):
        return ""
    values: list[Array | None] = []
    for name in node.input:
        value = scope.constant(name) if name and scope.is_new(name) else None
        if name and not scope.is_new(name) and _may_be_constant(name, scope):
            value = scope.small_constant(name)
        if name and value is None:
            return ""
        values.append(value)
    result = evaluated(node, values)
    # Only types that numpy itself has.
    if result is None or result.size > _LARGEST or result.dtype.kind not in "biuf":
        return ""
    try:
        scope.check_constant(numpy_helper.from_array(result))
    except RefusedError:
        return ""
    return scope.add_constant(result, node.output[0].rpartition("/")[2])


def _may_be_constant(name: str, scope: NodeScope) -> bool:
    """Whether to ask for the value of an operand of the replaced node.

    To learn whether data are computed from constants means to look at everything that they come from. Sizes are
    integers, so this is worth it for integers only.
    """
    return name != _DATA or scope.element_type(name) in _INTEGERS or scope.written_as(name) != "dynamic"
