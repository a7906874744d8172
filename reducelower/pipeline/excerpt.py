"""A smaller model in the place of a large one: of nodes that are alike, it holds the first.

A large model repeats a few layers, so what is asked about each of its nodes is asked of a few. Nodes are alike if they
have the same operator, attributes, small constants and types, and if the nodes that compute what they read are alike,
as many levels up as leave the excerpt small. A node reads in the excerpt what is first like its own inputs. That stands
before it, so that nothing runs in a circle, and every value is computed from the model's own inputs.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from reducelower.legalization.memo import read_node
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
"""The most elements of a constant that tells nodes apart by its values. Several floats are weights, which do not,
unless they scale sizes."""

_FRACTIONS = (AttributeProto.FLOAT, AttributeProto.FLOATS)

_SCALING = ("Resize", "Upsample")

_Numbers: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]"

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
    types = _types(document)
    labels = _labels(model.graph, nodes, types)
    if max(labels.labels) >= _MOST_NODES:  # each layer may have numbers of its own, such as the scales of quantizers
        labels = _labels(model.graph, nodes, types, reads_floats=False)
    _, firsts, places, counts = np.unique(_kinds(labels), return_index=True, return_inverse=True, return_counts=True)
    first_like = firsts[places].tolist()
    made = ModelProto()
    named: dict[str, int] = {}
    for index, count in sorted(zip(firsts.tolist(), counts.tolist(), strict=True)):
        node = made.graph.node.add()
        node.CopyFrom(nodes[index])
        node.name = node.name or f"{node.op_type}#{index}"
        for place, name in enumerate(node.input):
            if (source := labels.computed.get(name.encode())) is not None:
                node.input[place] = nodes[first_like[source[0]]].output[source[1]]
        named[node.name] = count
    _complete(made, model, labels.computed)
    return Excerpt(document.part_for_trials(made), named)


def _complete(made: ModelProto, model: ModelProto, computed: Container[bytes]) -> None:
    """Add to the nodes of an excerpt all that they read, and what is said of the model as a whole."""
    graph, whole = made.graph, model.graph
    names = {name for node in graph.node for name in (*read_by(node), *node.output)}
    graph.name = whole.name
    graph.input.extend(whole.input)
    graph.output.extend(value for value in whole.output if value.name in names or value.name.encode() not in computed)
    names |= {value.name for value in (*graph.input, *graph.output)}
    graph.initializer.extend(without_values(tensor) for tensor in whole.initializer if tensor.name in names)
    graph.sparse_initializer.extend(each for each in whole.sparse_initializer if each.values.name in names)
    graph.value_info.extend(value for value in whole.value_info if value.name in names)
    copy_fields(model, made, but="graph")


_Source: TypeAlias = "tuple[int, int]"
"""Where a value comes from: the position of a node, and which of its outputs it is."""


class _Labels(NamedTuple):
    """What tells nodes apart without those above them, and which nodes these are.

    Attributes:
        labels: a number for each node.
        readers, sources, operands: for each value that one node reads of another, the positions of both, and as which
            of its operands the first reads it.
        computed: where values come from, by name.
    """

    labels: list[int]
    readers: list[int]
    sources: list[int]
    operands: list[int]
    computed: dict[bytes, _Source]


def _labels(
    graph: GraphProto, nodes: Sequence[NodeProto], types: Mapping[bytes, Hashable], *, reads_floats: bool = True
) -> _Labels:
    found = _Labels([], [], [], [], {})
    operators = [node.op_type for node in nodes]
    holders = {
        index
        for index, node in enumerate(nodes)
        if operators[index] in HOLDING_GRAPHS or node.domain not in DEFAULT_DOMAINS
    }
    # What graphs inside read is read by its name.
    kept = {name.encode() for index in holders for name in read_by(nodes[index])}
    kept |= {value.name.encode() for value in graph.output}
    sizes = {name for node, op_type in zip(nodes, operators, strict=True) if op_type in _SCALING for name in node.input}
    given: dict[bytes, Hashable] = {value.name.encode(): value.type.SerializeToString() for value in graph.input}
    for tensor in graph.initializer:
        name = tensor.name.encode()
        given[name] = given.get(name), _of_tensor(tensor, reads_floats=reads_floats, is_size=tensor.name in sizes)
    computed, numbers = found.computed, dict[Hashable, int]()
    for index, node in enumerate(nodes):
        names, (inputs, places, _), rest, _ = read_node(node.SerializeToString())
        read = 1 + max(places[:inputs], default=-1)
        kind = rest if reads_floats else _without_floats(node)
        label: list[Hashable] = [kind, inputs, places]
        for at, name in enumerate(names[:read]):
            if name in computed:
                source, output = computed[name]
                label += operators[source], output
                found.readers.append(index)
                found.sources.append(source)
                found.operands.append(at)
            else:
                label.append(given.get(name))
        for at, place in enumerate(places[inputs:]):
            if place >= 0:
                name = names[place]
                computed[name] = index, at
                label += types.get(name), name if name in kept else b""
        found.labels.append(numbers.setdefault(tuple(label), len(numbers)))
    return found


def _without_floats(node: NodeProto) -> Hashable:
    """The operator and the attributes of a node without the values of floats."""
    attributes = (
        (each.name, _of_tensor(each.t)) if each.type == AttributeProto.TENSOR else each.SerializeToString()
        for each in node.attribute
        if each.type not in _FRACTIONS
    )
    return node.op_type, node.domain, tuple(attributes)


def _of_tensor(tensor: TensorProto, *, reads_floats: bool = False, is_size: bool = False) -> Hashable:
    """What tells nodes apart that read a constant."""
    size = prod(tensor.dims)
    is_weight = tensor.data_type in FLOATS and not is_size and (size > 1 or not reads_floats)
    if size > _SMALL or is_weight:
        return tensor.data_type, tuple(tensor.dims), tensor.data_location, tensor.HasField("raw_data")
    nameless = TensorProto()
    nameless.CopyFrom(tensor)
    nameless.ClearField("name")
    return nameless.SerializeToString()


def _types(document: Document) -> dict[bytes, Hashable]:
    """The types of computed values, by name, as far as onnx's own inference finds them."""
    try:
        graph = document.inferred.graph
    except Exception:  # inference raises several types
        graph = document.message.graph
    seen: dict[bytes, Hashable] = {}
    found: dict[bytes, Hashable] = {}
    for value in (*graph.value_info, *graph.output):
        data = value.type.SerializeToString()
        if data not in seen:
            seen[data] = _of_type(value.type)
        found[value.name.encode()] = seen[data]
    return found


def _of_type(type_: TypeProto) -> Hashable:
    """A type, with no difference between sizes that only inference has named."""
    sizes = type_.tensor_type.shape.SerializeToString()
    return (type_.tensor_type.elem_type, _NEW_SIZE.sub(b"?", sizes)) if sizes else type_.SerializeToString()


def _kinds(found: _Labels) -> _Numbers:
    """A number for each node, the same for those that are alike."""
    own = kinds = _mixed(np.array(found.labels, np.uint64))
    readers, sources = np.array(found.readers, np.int64), np.array(found.sources, np.int64)
    operands = _mixed(np.array(found.operands, np.uint64))
    for _ in range(_LEVELS):
        above = np.zeros_like(own)
        np.add.at(above, readers, _mixed(kinds[sources] ^ operands))
        finer = _mixed(own ^ _mixed(above))
        if len(np.unique(finer)) > _MOST_KINDS:
            break
        kinds = finer
    return kinds


def _mixed(numbers: _Numbers) -> _Numbers:
    """Other numbers for numbers, spread over 64 bits so that sums of them differ (the finalizer of splitmix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
