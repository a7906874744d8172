"""A smaller model in the place of a large one: of nodes that are alike, it holds the first.

A large model repeats a few layers, so what is asked about each of its nodes is asked of a few. Nodes are alike if they
have the same operator, attributes, small constants and types, and if the nodes that compute what they read are alike,
as many levels up as leave the excerpt small. Values of floats tell no nodes apart: each layer has its own. A node reads
in the excerpt what is first like its own inputs. That stands before it, so that nothing runs in a circle, and every
value is computed from the model's own inputs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, read_by
from reducelower.model.numbers import FLOATS
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import copy_fields, without_values

__all__ = ["Excerpt", "excerpt_of"]

_MOST_NODES = 200
"""Nodes of a model that is looked at whole."""

_MOST_KINDS = 1000
"""Nodes of an excerpt, where it can be so small."""

_LEVELS = 12
"""How many levels of nodes above two alike ones are alike, unless that many leave too many kinds."""

_SMALL = 64
"""The most elements of a constant that tells nodes apart by its values."""

_FRACTIONS = (AttributeProto.FLOAT, AttributeProto.FLOATS)

_SCALING = ("Resize", "Upsample")
"""Operators of which floats say sizes."""

_NEW_SIZE = re.compile(rb"\n.\x12.unk__\d+", re.DOTALL)
"""A size that inference has named, in a serialized shape; the names differ from value to value."""


@dataclass(frozen=True)
class Excerpt:
    """A model of a few nodes that tells what holds of a model.

    Attributes:
        document: the excerpt, or the whole model if that is small; a document for trials.
        counts: how many nodes a node of the main graph stands for, by its name; what is not named stands for itself.
    """

    document: Document
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it is the model itself."""
        return not self.counts

    def count(self, nodes: Iterable[str]) -> int:
        """How many nodes of the model some nodes of the excerpt stand for, by name."""
        return sum(self.counts.get(node, 1) for node in nodes)


def excerpt_of(document: Document) -> Excerpt:
    """The excerpt of a model.

    Its opset versions, functions, inputs and metadata are the model's, and so are the names of its values. A node
    without a name gets one that says its place.
    """
    model = document.message
    if len(model.graph.node) <= _MOST_NODES:
        return Excerpt(document.for_trials())
    nodes = [*model.graph.node]
    computed = {name: (index, at) for index, node in enumerate(nodes) for at, name in enumerate(node.output) if name}
    kinds = _kinds(nodes, computed, _labels(model.graph, nodes, computed, _types(document)))
    first = {kind: index for index, kind in reversed([*enumerate(kinds)])}
    counts = Counter(kinds)
    made = ModelProto()
    named: dict[str, int] = {}
    for index in sorted(first.values()):
        node = made.graph.node.add()
        node.CopyFrom(nodes[index])
        node.name = node.name or f"{node.op_type}#{index}"
        for place, name in enumerate(node.input):
            if name in computed:
                source, output = computed[name]
                node.input[place] = nodes[first[kinds[source]]].output[output]
        named[node.name] = counts[kinds[index]]
    _complete(made, model, computed)
    return Excerpt(document.part_for_trials(made), named)


def _complete(made: ModelProto, model: ModelProto, computed: Container[str]) -> None:
    """Add to the nodes of an excerpt all that they read, and what is said of the model as a whole."""
    graph, whole = made.graph, model.graph
    names = {name for node in graph.node for name in (*read_by(node), *node.output)}
    graph.name = whole.name
    graph.input.extend(whole.input)
    graph.output.extend(value for value in whole.output if value.name in names or value.name not in computed)
    names |= {value.name for value in (*graph.input, *graph.output)}
    graph.initializer.extend(without_values(tensor) for tensor in whole.initializer if tensor.name in names)
    graph.sparse_initializer.extend(each for each in whole.sparse_initializer if each.values.name in names)
    graph.value_info.extend(value for value in whole.value_info if value.name in names)
    copy_fields(model, made, but="graph")


_Computed = Mapping[str, tuple[int, int]]
"""Where values come from: the position of a node, and which of its outputs it is."""


def _kinds(nodes: Sequence[NodeProto], computed: _Computed, labels: Iterable[Hashable]) -> list[int]:
    """A number for each node, the same for those that are alike."""
    own = kinds = _numbered(labels)
    sources = [[computed[name][0] for name in node.input if name in computed] for node in nodes]
    for _ in range(_LEVELS):
        finer = _numbered((label, *map(kinds.__getitem__, read)) for label, read in zip(own, sources, strict=True))
        if max(finer) >= _MOST_KINDS or max(finer) == max(kinds):  # too many, or no more than on the level below
            break
        kinds = finer
    return kinds


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _labels(
    graph: GraphProto, nodes: Sequence[NodeProto], computed: _Computed, types: Mapping[str, Hashable]
) -> Iterator[Hashable]:
    """What tells each node apart without those above it."""
    holders = (node for node in nodes if node.op_type in HOLDING_GRAPHS or node.domain not in DEFAULT_DOMAINS)
    # What graphs inside read is read by its name.
    kept = {name for node in holders for name in read_by(node)} | {value.name for value in graph.output}
    sizes = {name for node in nodes if node.op_type in _SCALING for name in node.input}
    given: dict[str, Hashable] = {value.name: value.type.SerializeToString() for value in graph.input}
    for tensor in graph.initializer:
        given[tensor.name] = given.get(tensor.name), _of_tensor(tensor, is_size=tensor.name in sizes)
    for node in nodes:
        names = list(node.input)
        label: list[Hashable] = [
            node.op_type,
            node.domain,
            *map(names.index, names),
            *map(_of_attribute, node.attribute),
        ]
        for name in names:
            source = computed.get(name)
            label.append(given.get(name) if source is None else (nodes[source[0]].op_type, source[1]))
        for name in node.output:
            label.append((types.get(name), name if name in kept else bool(name)))
        yield tuple(label)


def _of_attribute(attribute: AttributeProto) -> Hashable:
    if attribute.type == AttributeProto.TENSOR:
        return attribute.name, _of_tensor(attribute.t)
    return attribute.name if attribute.type in _FRACTIONS else attribute.SerializeToString()


def _of_tensor(tensor: TensorProto, *, is_size: bool = False) -> Hashable:
    """What tells nodes apart that read a constant."""
    if prod(tensor.dims) > _SMALL or (tensor.data_type in FLOATS and not is_size):
        return tensor.data_type, tuple(tensor.dims), tensor.data_location, tensor.HasField("raw_data")
    nameless = TensorProto()
    nameless.CopyFrom(tensor)
    nameless.ClearField("name")
    return nameless.SerializeToString()


def _types(document: Document) -> dict[str, Hashable]:
    """The types of computed values, by name, as far as onnx's own inference finds them."""
    try:
        graph = document.inferred.graph
    except Exception:  # inference raises several types
        graph = document.message.graph
    return {value.name: _of_type(value.type) for value in (*graph.value_info, *graph.output)}


def _of_type(type_: TypeProto) -> Hashable:
    """A type, with no difference between sizes that only inference has named."""
    sizes = type_.tensor_type.shape.SerializeToString()
    return (type_.tensor_type.elem_type, _NEW_SIZE.sub(b"?", sizes)) if sizes else type_.SerializeToString()
