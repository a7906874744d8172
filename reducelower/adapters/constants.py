"""Constant nodes at their boundaries, and constants that nothing reads any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of
from reducelower.model.graph import read_by, read_outside_nodes
from reducelower.model.nodelist import Replacement, nodes_of
from reducelower.scope.graph import GraphScope
from reducelower.scope.scope import Scope
from reducelower.scope.values import tensor_of

__all__ = ["Edited", "remove_unused"]

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


@lowers("Constant", 12)
def _lower_shorthand(node: NodeProto, scope: Scope) -> Outcome:
    """``value_int`` and its like are short for a tensor."""
    if attribute_of(node, "value") is not None or attribute_of(node, "sparse_value") is not None:
        return False
    if not node.attribute:
        raise RefusedError("it holds no value, so the model is not valid", "mend the model")
    attribute = node.attribute[0]
    if attribute.ref_attr_name:
        raise RefusedError(
            f"it refers to {attribute.ref_attr_name!r} of the function, and Constant takes only tensors until opset 12",
            "inline the function first",
        )
    tensor = tensor_of(node)
    if tensor is None:
        strings = [attribute.s] if attribute.name == "value_string" else list(attribute.strings)
        shape = [] if attribute.name == "value_string" else [len(strings)]
        tensor = TensorProto(data_type=TensorProto.STRING, dims=shape, string_data=strings)
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("value", tensor))
    return True


@lowers("Constant", 11)
def _lower_sparse(node: NodeProto, scope: Scope) -> Outcome:
    """A sparse tensor is written out: zero, or an empty string, wherever it states nothing."""
    attribute = attribute_of(node, "sparse_value")
    if attribute is None or attribute.ref_attr_name:
        return False
    sparse = attribute.sparse_tensor
    values = numpy_helper.to_array(sparse.values)
    places = numpy_helper.to_array(sparse.indices)
    nothing = "" if values.dtype.hasobject else 0
    dense = np.full(tuple(sparse.dims), nothing, values.dtype)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(dense, node.output[0])))
    return True


@lowers("Constant", 9)
def _lower_element_type(node: NodeProto, scope: Scope) -> Outcome:
    """Constant takes floats only before opset 9; an initializer takes everything."""
    tensor = tensor_of(node)
    if tensor is None or tensor.data_type in _FLOATS:
        return False
    scope.adopt_initializer(node.output[0], tensor)
    return []


class Edited(Protocol):
    """A graph or function body and what becomes of its nodes."""

    scope: GraphScope
    replaced: dict[int, Replacement]
    sites: dict[int, tuple[str, str]]


_Released: TypeAlias = Mapping[GraphScope, Collection[str]]


def remove_unused(released: _Released, folded: Iterable[tuple[GraphScope, str]], edits: Sequence[Edited]) -> None:
    """Remove constants that rewritten nodes read and nothing reads any more, and what only they were computed from.

    Args:
        released: by scope, the names of constants that some node ceased to read.
        folded: those that nodes compute rather than state.
        edits: every graph and function body of the model; the main graph first.
    """
    by_scope = {id(edit.scope): edit for edit in edits}
    computed = set(folded)
    open_ones = _settled_in_one_graph(released, computed, edits)
    while open_ones:
        uses = _count_uses(open_ones, edits)
        further: dict[GraphScope, set[str]] = {}
        for home, names in open_ones.items():
            if id(home) in by_scope:
                unused = {name for name in names if not uses[home][name]}
                # What computed constants were computed from goes the same way.
                for around, read in _remove(unused, home, by_scope[id(home)], computed):
                    computed.add((around, read))
                    further.setdefault(around, set()).add(read)
        open_ones = further


def _count_uses(wanted: _Released, edits: Sequence[Edited]) -> Mapping[GraphScope, Counter[str]]:
    """How often what is in the model now reads each name, in the graph that defines it and those inside."""
    uses = {home: Counter[str]() for home in wanted}
    for edit in edits:
        scope: GraphScope | None = edit.scope
        counters = []
        while scope is not None:
            if scope in wanted:
                counters.append((wanted[scope], uses[scope]))
            scope = scope.parent
        if counters:
            for name in _read(edit):
                for names, counter in counters:
                    if name in names:
                        counter[name] += 1
    return uses


def _settled_in_one_graph(
    released: _Released, folded: Container[tuple[GraphScope, str]], edits: Sequence[Edited]
) -> _Released:
    """Remove what is unused in a model of one graph where no node was replaced; returns what is still open."""
    if len(edits) != 1 or edits[0].replaced:
        return released
    (main,) = edits
    names = set(released.get(main.scope, ()))
    if not names or any((main.scope, name) in folded for name in names):
        return released
    names -= main.scope.node_list.reading(names)
    _remove(names.difference(read_outside_nodes(main.scope.holder)), main.scope, main, folded)
    return {}


def _read(edit: Edited) -> Iterator[str]:
    """Every name that a graph or function body reads, as its nodes will be."""
    holder = edit.scope.holder
    yield from edit.scope.node_list.read(edit.replaced)
    for replacement in edit.replaced.values():
        if not isinstance(replacement, bytes):
            for inner in replacement:
                yield from read_by(inner)
    yield from read_outside_nodes(holder)


def _remove(
    names: set[str], home: GraphScope, edit: Edited, folded: Container[tuple[GraphScope, str]]
) -> list[tuple[GraphScope, str]]:
    """Remove what yields the names; returns what it read, which may be unused now in turn."""
    holder = home.holder
    # An initializer that is a graph input stays, since graph inputs do.
    names = names - {value if isinstance(value, str) else value.name for value in holder.input}
    if isinstance(holder, GraphProto):
        _remove_named(holder.initializer, names)
    released: list[tuple[GraphScope, str]] = []
    nodes: Mapping[str, tuple[int, NodeProto]] = home.constant_nodes
    for name in sorted(names & nodes.keys()):
        index, _ = nodes[name]
        if index >= 0:
            edit.replaced[index] = []
            edit.sites.pop(index, None)
    computed = {name for name in names if (home, name) in folded}
    for index, node in enumerate(home.node_list if computed else ()):
        if edit.replaced.get(index) != [] and not computed.isdisjoint(node.output) and names.issuperset(node.output):
            read = [name for inner in nodes_of(edit.replaced.get(index, [node])) for name in read_by(inner) if name]
            edit.replaced[index] = []
            edit.sites.pop(index, None)
            released += [(home.home(name), name) for name in read]
    _remove_named(holder.value_info, names)
    return released


def _remove_named(values: Any, names: Collection[str]) -> None:
    """Remove those of a repeated field that bear some names."""
    count = sum(value.name in names for value in values) if names else 0
    if count:
        # Those that go are brought to the end, which moves pointers alone; each removal in between would move the rest.
        values.sort(key=lambda value: value.name in names)
        del values[len(values) - count :]
