"""Replace sequences by the tensors in them, for opset versions and runtimes without sequences.

A sequence cannot be removed node by node: its producer and all consumers go together. So the whole model is changed
wherever the contents of a sequence are known: single tensors, or one tensor split along an axis.

Sources: the pages of SplitToSequence (11), SequenceAt (11), ConcatFromSequence (11) and the other sequence operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.numpy_helper import from_array

from reducelower.files import DataFolder
from reducelower.legalization.whole import Changed
from reducelower.model.attributes import copy_marks, make_node, value_of
from reducelower.model.constants import tensor_of
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes, read_outside_nodes
from reducelower.model.graph import graphs as graphs_of
from reducelower.model.names import Names
from reducelower.model.numbers import value_of_tensor
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of

__all__ = ["replace_by_tensors", "without_sequences"]

_SINCE = 11
"""The opset version that introduced sequences."""

_MOST_PARTS = 1024
"""Constants with more elements are ignored."""

_MAKERS = frozenset(
    {"Identity", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SplitToSequence"}
)


@dataclass(frozen=True)
class _Cut:
    """A sequence of the parts of a tensor split along an axis, which the parts may keep.

    The bounds are the starts of the parts and the end of the last; None if each part has size 1.
    """

    data: str
    axis: int
    bounds: tuple[int, ...] | None
    keeps_axis: bool


_Sequence = tuple[str, ...] | _Cut


def without_sequences(source: Document, opset: int, folder: DataFolder | None) -> Changed | None:
    """The model without its known sequences; None if the opset version has sequences, or the model makes none."""
    if opset >= _SINCE or source.columns.operators.isdisjoint(_MAKERS - {"Identity"}):
        return None
    made = deepcopy(source.message)
    sentence = f"sequences, which came with opset {_SINCE}, are taken apart into the tensors that they are made of"
    inner = replace_by_tensors(made)
    return Changed(Document.of_message(made), (sentence,), inner=inner)


def replace_by_tensors(model: ModelProto) -> frozenset[str]:
    """Let consumers of known sequences read the tensors instead, in place; return the names of these sequences.

    Producers that become unused are removed.
    """
    return _SequenceRemover(model).run()


class _SequenceRemover:
    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._names = Names(Document.of_message(model))
        self._opset = opset_of(model)
        self._constants: dict[str, np.ndarray] = {}
        self._known: dict[str, _Sequence] = {}
        self._nodes: list[NodeProto] = []

    def run(self) -> frozenset[str]:
        graphs = [graph for _, graph in graphs_of(self._model)]
        for graph in graphs:
            self._note_constants(graph)
        # Two branches of an If may use the same name for different values.
        defined = Counter(name for graph in graphs for node in graph.node for name in node.output)
        for graph in graphs:
            for node in graph.node:
                is_maker = node.op_type in _MAKERS and node.domain in DEFAULT_DOMAINS
                made = self._made(node) if is_maker and defined[node.output[0]] == 1 else None
                if made is not None:
                    self._known[node.output[0]] = made
        # Innermost graphs first, since nodes are copied together with their subgraphs.
        for graph in reversed(graphs):
            self._rewrite(graph)
        reads = Counter(name for node in all_nodes(self._model) for name in node.input)
        graphs = [graph for _, graph in graphs_of(self._model)]
        reads.update(name for graph in graphs for name in read_outside_nodes(graph))
        for graph in reversed(graphs):
            self._remove_unread(graph, reads)
        return frozenset(self._known)

    def _note_constants(self, graph: GraphProto) -> None:
        """Record constant positions and sizes; a name with two different values counts as unknown."""
        fed = {value.name for value in graph.input}
        stated = [(tensor.name, tensor) for tensor in graph.initializer if tensor.name not in fed]
        nodes = (node for node in graph.node if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS)
        stated += [(node.output[0], tensor) for node in nodes if (tensor := tensor_of(node)) is not None]
        for name, tensor in stated:
            if tensor.data_type in (TensorProto.INT32, TensorProto.INT64) and prod(tensor.dims) <= _MOST_PARTS:
                numbers = value_of_tensor(tensor)
                if numbers is None:
                    continue
                is_alike = name not in self._constants or np.array_equal(self._constants[name], numbers)
                self._constants[name] = numbers if is_alike else np.zeros((0, 0))

    def _made(self, node: NodeProto) -> _Sequence | None:
        """The sequence that a node makes; None if unknown."""
        if node.op_type == "SplitToSequence":
            return self._cut(node)
        if node.op_type == "SequenceConstruct":
            return tuple(node.input)
        if node.op_type == "SequenceEmpty":
            return ()
        contents = self._known.get(node.input[0])
        if node.op_type == "Identity" or not isinstance(contents, tuple):
            return contents if node.op_type == "Identity" else None
        inserts = node.op_type == "SequenceInsert"
        place = self._number(node, 2 if inserts else 1, len(contents) if inserts else -1)
        if place is None:
            return None
        parts = list(contents)
        if inserts:
            parts.insert(place, node.input[1])
        else:
            del parts[place]
        return tuple(parts)

    def _cut(self, node: NodeProto) -> _Sequence | None:
        axis = int(value_of(node, "axis", 0))
        if len(node.input) < 2 or not node.input[1]:
            return _Cut(node.input[0], axis, None, bool(value_of(node, "keepdims", 1)))
        sizes = self._constants.get(node.input[1])
        if sizes is None or sizes.ndim != 1:
            return None  # the number of equal parts is unknown
        return _Cut(node.input[0], axis, (0, *accumulate(sizes.tolist())), True)

    def _number(self, node: NodeProto, index: int, default: int) -> int | None:
        """The constant value of an index input; None if it is computed."""
        if len(node.input) <= index or not node.input[index]:
            return default
        value = self._constants.get(node.input[index])
        return None if value is None or value.size != 1 else int(value.reshape(-1)[0])

    # Consumers

    def _rewrite(self, graph: GraphProto) -> None:
        """Rewrite the consumers of known sequences."""
        nodes = list(graph.node)
        del graph.node[:]
        for node in nodes:
            self._nodes = []
            read = _READERS.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
            content = self._known.get(node.input[0]) if read is not None and node.input else None
            result = read(self, node, content) if read is not None and content is not None else None
            if result is None:
                self._nodes = [node]
            else:
                copy_marks(node, self._nodes[-1])
                self._nodes[-1].output[0] = node.output[0]
            graph.node.extend(self._nodes)

    def _add(self, node: NodeProto, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = self._names.fresh(node.name or node.output[0], f"/{node.op_type}/{op_type.lower()}")
        self._nodes.append(make_node(op_type, inputs, [name], **attributes))
        return name

    def _integers(self, node: NodeProto, value: Any) -> str:
        return self._add(node, "Constant", value=from_array(np.array(value, np.int64)))

    def _at(self, node: NodeProto, content: _Sequence) -> str | None:
        place = self._number(node, 1, 0)
        if isinstance(content, tuple):
            is_there = place is not None and -len(content) <= place < len(content)
            return self._add(node, "Identity", content[place or 0]) if is_there else None
        if content.bounds is None:
            shape = self._integers(node, [1] if content.keeps_axis else [])
            index = self._add(node, "Reshape", node.input[1], shape)
            return self._add(node, "Gather", content.data, index, axis=content.axis)
        spans = [*zip(content.bounds, content.bounds[1:], strict=False)]
        if place is None or not -len(spans) <= place < len(spans):
            return None
        bounds = [self._integers(node, [bound]) for bound in (*spans[place], content.axis)]
        return self._add(node, "Slice", content.data, *bounds)

    def _length(self, node: NodeProto, content: _Sequence) -> str | None:
        if isinstance(content, tuple) or content.bounds is not None:
            return self._integers(node, len(content) if isinstance(content, tuple) else len(content.bounds or ()) - 1)
        sizes = self._add(node, "Shape", content.data)
        return self._add(node, "Gather", sizes, self._integers(node, content.axis), axis=0)

    def _joined(self, node: NodeProto, content: _Sequence) -> str | None:
        axis, stacks = int(value_of(node, "axis")), bool(value_of(node, "new_axis", 0))
        if isinstance(content, _Cut):  # concatenated along the axis it was split on
            is_whole = axis == content.axis and stacks != content.keeps_axis
            return self._add(node, "Identity", content.data) if is_whole else None
        parts = content
        if stacks and self._opset >= 13:
            axes = self._integers(node, [axis])
            parts = tuple(self._add(node, "Unsqueeze", part, axes) for part in parts)
        elif stacks:
            parts = tuple(self._add(node, "Unsqueeze", part, axes=[axis]) for part in parts)
        return self._add(node, "Concat", *parts, axis=axis) if parts else None

    def _remove_unread(self, graph: GraphProto, reads: Counter[str]) -> None:
        """Remove unused producers of sequences."""
        kept = []
        for node in reversed(graph.node):
            if self._known.keys() & set(node.output) and not reads[node.output[0]]:
                reads.subtract(node.input)
            else:
                kept.append(node)
        gone = {value.name for value in graph.value_info} & self._known.keys() - {name for name in reads if reads[name]}
        values = [value for value in graph.value_info if value.name not in gone]
        del graph.node[:], graph.value_info[:]
        graph.node.extend(reversed(kept))
        graph.value_info.extend(values)


_READERS: Mapping[str, Callable[[_SequenceRemover, NodeProto, Any], str | None]] = {
    "ConcatFromSequence": _SequenceRemover._joined,
    "SequenceAt": _SequenceRemover._at,
    "SequenceLength": _SequenceRemover._length,
}
