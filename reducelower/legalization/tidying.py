"""Tidy what replaces nodes: compute constants, write equal nodes once, and drop what is not read.

Rules are written to be easy to read. This module turns their results into what one would write by hand: of each node by
itself, and at the end what several of them need, which is computed where the first of them needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto, numpy_helper

from reducelower.errors import RefusedError
from reducelower.legalization.dead_code import as_messages
from reducelower.model.attributes import value_of
from reducelower.model.graph import nodes_needed, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.scope.blanks import DATA
from reducelower.scope.body import BodyScope
from reducelower.types.contents import evaluated

if TYPE_CHECKING:
    from collections.abc import Hashable

    from reducelower.legalization.edits import Edit
    from reducelower.model.numbers import Array
    from reducelower.scope.graph import GraphScope
    from reducelower.scope.node import NodeScope

__all__ = ["share", "tidied"]

_RANDOM = frozenset(
    {
        "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    }
)  # fmt: skip
"""Operators that may yield something different each time."""

_INTEGERS = (TensorProto.INT32, TensorProto.INT64)

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
        _rename_read(node, renamed)
        if kept_names.isdisjoint(node.output) and _is_repeatable(node):
            if _passes_on(node, types):
                renamed[node.output[0]] = node.input[0]
                continue
            first = first_of_kind.setdefault(_kind_of(node), node)
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


def _is_repeatable(node: NodeProto) -> bool:
    """Whether an equal node yields the same; False for any node with subgraphs."""
    return node.op_type not in _RANDOM and not any(True for _ in subgraphs(node))


def _kind_of(node: NodeProto) -> Hashable:
    """A key that is equal for nodes that compute the same from the same values, whatever their outputs are called."""
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    return node.op_type, node.domain, tuple(node.input), tuple(attributes), tuple(map(bool, node.output))


def _rename_read(node: NodeProto, names: dict[str, str]) -> None:
    """Let a node and the nodes of its subgraphs read other values."""
    if not names:
        return
    for index, name in enumerate(node.input):
        if name in names:
            node.input[index] = names[name]
    for _, _, graph in subgraphs(node):
        for inner in graph.node:
            _rename_read(inner, names)


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
    return name != DATA or scope.element_type(name) in _INTEGERS or scope.written_as(name) != "dynamic"


# What several nodes need


def share(edit: Edit) -> bool:
    """Let later rewrites of a graph read what earlier ones compute, in place of computing it again.

    Rewrites also read the first of equal values of the source: PyTorch's exporter computes the tables of each
    RotaryEmbedding again. Returns whether the others may be unused now.
    """
    shareable = {at: each for at, each in edit.rewrites.items() if each.outcome is not None and each.outcome.may_share}
    if not shareable:
        return False
    originals = {index: edit.scope.holder.node[index] for index in shareable}
    equal = _equal(edit.scope, (name for node in originals.values() for name in node.input[1:]))
    readers = Counter(equal.get(name, name) for node in originals.values() for name in set(node.input))
    first_of_kind: dict[Hashable, NodeProto] = {}
    for index, rewrite in shareable.items():
        original = originals[index]
        outputs = set(original.output)
        # No other rewrite reads them.
        unshared = {name for name in original.input if readers[equal.get(name, name)] == 1}
        renamed = dict(equal)
        kept = []
        for node in as_messages(rewrite.nodes):
            _rename_read(node, renamed)
            sizes = _sizes_asked(node, original, edit.scope)
            if not sizes and not unshared.isdisjoint(node.input):
                unshared.update(node.output)
            elif outputs.isdisjoint(node.output) and _is_repeatable(node):
                first = first_of_kind.setdefault(sizes or _kind_of(node), node)
                if first is not node:
                    renamed.update(zip(node.output, first.output, strict=True))
                    continue
            kept.append(node)
        if renamed:
            types = {name: value_type for name, value_type in rewrite.types.items() if name not in renamed}
            edit.rewrites[index] = rewrite._replace(nodes=kept, types=types)
    edit.drops_operands |= bool(equal)
    return bool(equal)


def _sizes_asked(node: NodeProto, original: NodeProto, graph: GraphScope) -> Hashable:
    """A key that is equal for Shapes of operands of the same sizes, known by name at least; None for other nodes."""
    if node.op_type != "Shape" or node.attribute or node.input[0] not in original.input:
        return None
    shape = graph.known(node.input[0]).shape
    return None if shape is None else ("Shape", shape)


def _equal(graph: GraphScope, names: Iterable[str]) -> Mapping[str, str]:
    """Values of a graph that other values are equal to, since equal nodes compute both: the first by the others."""
    first: dict[Hashable, str] = {}
    equal: dict[str, str] = {}
    for name in dict.fromkeys(names):
        producer = graph.producer(name)
        if producer is None or len(producer.output) != 1 or not _is_repeatable(producer):
            continue
        same = first.setdefault(_kind_of(producer), name)
        if same != name:
            equal[name] = same
    return equal
