"""Replace sequences by pairs of tensors, for opset versions without sequences or whose Loop and If carry none.

A sequence becomes two tensors: the elements, flattened and concatenated, and their shapes, one per row. Loop and If
carry these like any tensors. Values that pass one sequence on to each other form a family, which is replaced as a
whole, together with all producers and consumers.

Sources: the pages of Loop (11, 13), If (11, 13), SequenceInsert (11) and the other sequence operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper
from onnx.numpy_helper import from_array

from reducelower.legalization.mended_source import Mended, main_graphs
from reducelower.legalization.sequences import SINCE
from reducelower.model.attributes import copy_marks, make_node, value_of
from reducelower.model.graph import subgraphs
from reducelower.model.names import Names
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.model.skeleton import open_skeleton
from reducelower.model.value_info import rank_of, tensor_type
from reducelower.types import infer

__all__ = ["hold_as_tensors"]

_TO_THE_END = np.iinfo(np.int64).max


class _Pair(NamedTuple):
    """The two tensors that represent a sequence: flattened elements, and their shapes, one per row."""

    data: str
    shapes: str


@dataclass
class _Family:
    """Values that pass a sequence on to each other, and the types of its elements, several if they differ.

    Attributes:
        first_axes: axes along which elements are concatenated or split; they come first in the flattened order.
        is_carried: whether a Loop carries the sequence or an If returns it.
        is_shown: whether a consumer or producer cannot use tensors instead.
    """

    names: set[str] = field(default_factory=set)
    element_types: set[int] = field(default_factory=set)
    ranks: set[int | None] = field(default_factory=set)
    first_axes: set[int] = field(default_factory=set)
    is_carried: bool = False
    is_shown: bool = False

    @property
    def element_type(self) -> int:
        return next(iter(self.element_types))

    @property
    def rank(self) -> int:
        return next(iter(self.ranks)) or 0

    @property
    def order(self) -> list[int]:
        """The axes of an element in the order of flattening."""
        first = [axis % self.rank for axis in self.first_axes]
        return first + [axis for axis in range(self.rank) if axis not in first]

    def is_plain(self) -> bool:
        """Whether all elements have one type, rank and order of axes."""
        ranks = self.ranks - {None}
        if self.is_shown or len(self.element_types) != 1 or len(ranks) != 1:
            return False
        self.ranks = ranks
        self.first_axes = {axis % self.rank for axis in self.first_axes} if self.rank else set()
        return len(self.first_axes) < 2


def hold_as_tensors(model: ModelProto, opset: int) -> Mended | None:
    """Replace sequences in place, if the types and ranks of their elements are known; None if nothing was done.

    If the opset version has sequences, only those that a Loop or If carries are replaced.
    """
    types = _types(model)
    families = {name: family for family in _families(model, types) for name in family.names}
    held = {
        name: family for name, family in families.items() if family.is_plain() and (opset < SINCE or family.is_carried)
    }
    return _TensorRewriter(model, held, types).run() if held else None


# Finding sequences


def _types(model: ModelProto) -> dict[str, TypeProto]:
    """The types of the values of all graphs by name."""
    inferred = main_graphs(infer(open_skeleton(model)))
    types = {value.name: value.type for g in inferred for value in (*g.input, *g.output, *g.value_info)}
    held = (tensor for graph in main_graphs(model) for tensor in graph.initializer)
    return types | {tensor.name: tensor_type(tensor) for tensor in held}


def _families(model: ModelProto, types: Mapping[str, TypeProto]) -> list[_Family]:
    """The families of sequences in a model."""
    found = _FamilyFinder(types)
    for graph in main_graphs(model):
        for node in graph.node:
            found.look_at(node)
    for value in (*model.graph.input, *model.graph.output):
        found.family(value.name).is_shown = True
    defined = Counter(
        name
        for graph in main_graphs(model)
        for name in (*(out for node in graph.node for out in node.output), *(value.name for value in graph.input))
    )
    families = {id(family): family for family in map(found.family, found.sequences)}
    for family in families.values():
        family.is_shown |= any(defined[name] > 1 for name in family.names)
    return [*families.values()]


class _FamilyFinder:
    """Builds families while walking over nodes."""

    def __init__(self, types: Mapping[str, TypeProto]) -> None:
        self._types = types
        self._by_name: dict[str, _Family] = {}
        self.sequences: set[str] = set()

    def family(self, name: str) -> _Family:
        if name not in self._by_name:
            self._by_name[name] = _Family({name})
        return self._by_name[name]

    def _join(self, *names: str, is_carried: bool = False) -> None:
        first = self.family(names[0])
        first.is_carried |= is_carried
        for other in map(self.family, names[1:]):
            if other is not first:
                first.names |= other.names
                first.element_types |= other.element_types
                first.ranks |= other.ranks
                first.first_axes |= other.first_axes
                first.is_carried |= other.is_carried
                first.is_shown |= other.is_shown
                self._by_name.update((name, first) for name in other.names)

    def look_at(self, node: NodeProto) -> None:
        """Record how a node passes on sequences."""
        op_type = node.op_type if node.domain in DEFAULT_DOMAINS else ""
        graphs = {name: graph for _, name, graph in subgraphs(node)}
        if op_type == "Identity":
            self._join(node.input[0], node.output[0])
        elif op_type == "If":
            for names in zip(node.output, *([v.name for v in graph.output] for graph in graphs.values()), strict=True):
                self._join(*filter(None, names), is_carried=True)
        elif op_type == "Loop":
            body = graphs["body"]
            # Loop-carried outputs come before the stacked ones.
            yielded = zip(node.input[2:], body.input[2:], body.output[1:], node.output, strict=False)
            for given, taken, handed_on, result in yielded:
                self._join(*filter(None, (given, taken.name, handed_on.name, result)), is_carried=True)
        elif op_type in _MAKERS or op_type in _READERS:
            self._look_at_sequence(node)
        else:
            for name in (*node.input, *node.output):
                self.family(name).is_shown = True

    def _look_at_sequence(self, node: NodeProto) -> None:
        makes = node.op_type in _MAKERS
        changes = node.op_type in ("SequenceErase", "SequenceInsert")
        name = node.output[0] if makes else node.input[0]
        self.sequences.add(name)
        if changes:
            self._join(node.input[0], node.output[0])
        family = self.family(name)
        if node.op_type == "SequenceEmpty":
            family.element_types.add(int(value_of(node, "dtype", TensorProto.FLOAT)))
        elements = {
            "SequenceConstruct": node.input,
            "SequenceInsert": node.input[1:2],
            "SplitToSequence": node.input[:1],
        }
        for given in elements.get(node.op_type, ()):
            found = self._types.get(given)
            rank = rank_of(found)
            if found is not None and found.tensor_type.elem_type:
                family.element_types.add(found.tensor_type.elem_type)
            drops_axis = node.op_type == "SplitToSequence" and len(node.input) < 2 and not value_of(node, "keepdims", 1)
            family.ranks.add(None if rank is None else rank - drops_axis)
        cuts = node.op_type == "SplitToSequence" and len(node.input) > 1
        if cuts or (node.op_type == "ConcatFromSequence" and not value_of(node, "new_axis", 0)):
            family.first_axes.add(int(value_of(node, "axis", 0)))
        if cuts and rank_of(self._types.get(node.input[1])) is None:
            family.is_shown = True


# Rewriting


class _TensorRewriter:
    def __init__(self, model: ModelProto, held: Mapping[str, _Family], types: Mapping[str, TypeProto]) -> None:
        self._model = model
        self._held = held
        self._types = types
        names = Names(lambda: model, None)
        self._fresh = names.fresh
        self._pairs = {name: _Pair(names.fresh(name, "/elements"), names.fresh(name, "/shapes")) for name in held}
        self._opset = opset_of(model)
        self._nodes: list[NodeProto] = []

    def run(self) -> Mended:
        graphs = main_graphs(self._model)
        # Innermost graphs first, since nodes are copied together with their subgraphs.
        origins = [[*self._written(graph)] for graph in reversed(graphs)]
        said = "sequences are held as tensors: what their elements hold, and their shapes"
        return Mended(said, tuple(reversed(origins)), frozenset(self._held))

    def _written(self, graph: GraphProto) -> Iterator[int]:
        """Rewrite the nodes of a graph; yield for each new node the old position it comes from."""
        nodes = list(graph.node)
        del graph.node[:]
        stated = [value for value in graph.value_info if value.name not in self._held]
        del graph.value_info[:]
        graph.value_info.extend(stated)
        for place, node in enumerate(nodes):
            self._nodes = []
            write = (
                (_MAKERS.get(node.op_type) or _READERS.get(node.op_type)) if node.domain in DEFAULT_DOMAINS else None
            )
            sequence = node.output[0] if node.op_type in _MAKERS else next(iter(node.input), "")
            if sequence not in self._held or write is None:
                self._nodes = [self._carrying(node)]
            else:
                made = write(self, node, self._held[sequence])
                self._name(dict(zip(made, self._pairs.get(node.output[0], (node.output[0],)), strict=True)))
                copy_marks(node, self._nodes[-1])
            graph.node.extend(self._nodes)
            yield from [place] * len(self._nodes)

    def _name(self, names: Mapping[str, str]) -> None:
        """Let the new nodes compute their results under the original names."""
        for node in self._nodes:
            for values in (node.input, node.output):
                values[:] = [names.get(name, name) for name in values]

    def _carrying(self, node: NodeProto) -> NodeProto:
        """The node with each sequence among inputs and outputs replaced by its tensors."""
        if self._held.keys().isdisjoint((*node.input, *node.output)) and not any(subgraphs(node)):
            return node
        made = NodeProto()
        made.CopyFrom(node)
        for names in (made.input, made.output):
            replaced = [each for name in names for each in self._pairs.get(name, (name,))]
            del names[:]
            names.extend(replaced)
        if made.op_type == "Identity" and len(made.input) == 2:
            pair = [
                make_node("Identity", [given], [result]) for given, result in zip(made.input, made.output, strict=True)
            ]
            self._nodes.append(pair[0])
            return pair[1]
        for _, _, graph in subgraphs(made):
            for values in (graph.input, graph.output):
                stated = [each for value in values for each in self._stated(value)]
                del values[:]
                values.extend(stated)
        return made

    def _stated(self, value: ValueInfoProto) -> list[ValueInfoProto]:
        family = self._held.get(value.name)
        if family is None:
            return [value]
        pair = self._pairs[value.name]
        shapes = helper.make_tensor_value_info(pair.shapes, TensorProto.INT64, [None, family.rank])
        return [helper.make_tensor_value_info(pair.data, family.element_type, [None]), shapes]

    # Nodes

    def _add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = self._fresh("sequence", f"/{op_type}")
        self._nodes.append(make_node(op_type, inputs, [name], **attributes))
        return name

    def _integers(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, value: np.ndarray[Any, Any]) -> str:
        return self._add("Constant", value=from_array(value))

    def _joined(self, *names: str, axis: int = 0) -> str:
        return self._add("Concat", *names, axis=axis)

    def _reshaped(self, name: str, shape: str) -> str:
        # A size of 0 is meant literally; below opset 14 Reshape copies it from the input instead.
        return self._add("Reshape", name, shape, **({"allowzero": 1} if self._opset >= 14 else {}))

    def _in_order(self, name: str, order: Sequence[int]) -> str:
        return name if [*order] == sorted(order) else self._add("Transpose", name, perm=[*order])

    def _restore_order(self, name: str, order: Sequence[int]) -> str:
        return self._in_order(name, np.argsort(order).tolist())

    def _cut(self, name: str, begin: str, end: str, axis: int = 0) -> str:
        return self._add("Slice", name, begin, end, self._integers(axis))

    def _products(self, rows: str) -> str:
        """The product of each row."""
        if self._opset >= 18:
            return self._add("ReduceProd", rows, self._integers(1), keepdims=0)
        return self._add("ReduceProd", rows, axes=[1], keepdims=0)

    def _sum(self, name: str) -> str:
        """The sum of all elements, as a vector of length 1."""
        return self._add("Reshape", self._add("ReduceSum", name, keepdims=0), self._integers(1))

    def _count(self, pair: _Pair) -> str:
        """The number of elements, as a vector of length 1."""
        return self._cut(self._add("Shape", pair.shapes), self._integers(0), self._integers(1))

    def _place(self, name: str, pair: _Pair) -> str:
        """A non-negative index into a sequence, as a vector of length 1."""
        place = self._add("Cast", self._add("Reshape", name, self._integers(1)), to=TensorProto.INT64)
        from_end = self._add("Add", place, self._count(pair))
        return self._add("Where", self._add("Less", place, self._integers(0)), from_end, place)

    def _offset(self, pair: _Pair, place: str, family: _Family) -> str:
        """How many numbers precede an element, as a vector of length 1."""
        if not family.rank:
            return place
        zero, one = (self._constant(np.array(value)) for value in (0, 1))
        count = self._add("Reshape", self._count(pair), self._constant(np.zeros(0, np.int64)))
        is_before = self._add("Less", self._add("Range", zero, count, one), place)
        return self._sum(self._add("Where", is_before, self._products(pair.shapes), zero))

    def _row_of(self, pair: _Pair, place: str, family: _Family) -> str:
        """The sizes of an element in flattened order, as a vector."""
        if not family.rank:
            return self._constant(np.zeros(0, np.int64))
        return self._add("Reshape", self._add("Gather", pair.shapes, place), self._integers(family.rank))

    # Producers of sequences; each returns the tensors that represent its output

    def _held_element(self, name: str, family: _Family) -> _Pair:
        ordered = self._in_order(name, family.order)
        if family.rank:
            row = self._add("Reshape", self._add("Shape", ordered), self._integers(1, family.rank))
        else:
            row = self._constant(np.zeros((1, 0), np.int64))
        return _Pair(self._add("Reshape", ordered, self._integers(-1)), row)

    def _together(self, pairs: Iterable[_Pair]) -> _Pair:
        data, shapes = zip(*pairs, strict=True)
        return _Pair(self._joined(*data), self._joined(*shapes))

    def _empty(self, node: NodeProto, family: _Family) -> _Pair:
        data = TensorProto(data_type=family.element_type, dims=[0])
        return _Pair(self._add("Constant", value=data), self._constant(np.zeros((0, family.rank), np.int64)))

    def _constructed(self, node: NodeProto, family: _Family) -> _Pair:
        return self._together(self._held_element(name, family) for name in node.input)

    def _parts(self, pair: _Pair, place: str, family: _Family) -> tuple[_Pair, str]:
        """The elements before an index, and how many numbers they have."""
        offset = self._offset(pair, place, family)
        start = self._integers(0)
        return _Pair(self._cut(pair.data, start, offset), self._cut(pair.shapes, start, place)), offset

    def _rest(self, pair: _Pair, offset: str, place: str) -> _Pair:
        end = self._integers(_TO_THE_END)
        return _Pair(self._cut(pair.data, offset, end), self._cut(pair.shapes, place, end))

    def _inserted(self, node: NodeProto, family: _Family) -> _Pair:
        pair, added = self._pairs[node.input[0]], self._held_element(node.input[1], family)
        if len(node.input) < 3 or not node.input[2]:
            return self._together((pair, added))
        place = self._place(node.input[2], pair)
        before, offset = self._parts(pair, place, family)
        return self._together((before, added, self._rest(pair, offset, place)))

    def _erased(self, node: NodeProto, family: _Family) -> _Pair:
        pair = self._pairs[node.input[0]]
        place = self._place(node.input[1] if len(node.input) > 1 else self._integers(-1), pair)
        before, _ = self._parts(pair, place, family)
        behind = self._add("Add", place, self._integers(1))
        return self._together((before, self._rest(pair, self._offset(pair, behind, family), behind)))

    def _split(self, node: NodeProto, family: _Family) -> _Pair:
        data, is_cut = node.input[0], len(node.input) > 1
        drops_axis = not is_cut and not value_of(node, "keepdims", 1)
        rank = family.rank + drops_axis
        axis = int(value_of(node, "axis", 0)) % rank
        # The axes of the data that remain in its parts, in flattened order.
        axes = [place for place in range(rank) if not drops_axis or place != axis]
        order = [axes[place] for place in family.order]
        along = [axis, *(place for place in order if place != axis)]
        flat = self._add("Reshape", self._in_order(data, along), self._integers(-1))
        sizes = self._add("Shape", data)
        whole = self._add("Gather", sizes, self._integers(axis))
        extents = self._sizes_of_parts(node, whole) if is_cut else None
        count = whole if extents is None else self._add("Shape", extents)
        columns = [
            extents
            if place == axis and extents is not None
            else self._integers(1)
            if place == axis
            else self._add("Gather", sizes, self._integers(place))
            for place in order
        ]
        if not columns:
            nothing = self._constant(np.zeros((1, 0), np.int64))
            return _Pair(flat, self._add("Expand", nothing, self._joined(count, self._integers(0))))
        length = self._joined(count, self._integers(1))
        column = self._integers(-1, 1)
        expanded = [self._add("Expand", self._add("Reshape", name, column), length) for name in columns]
        return _Pair(flat, self._joined(*expanded, axis=1))

    def _sizes_of_parts(self, node: NodeProto, whole: str) -> str:
        """The split sizes of SplitToSequence; a single number is repeated as often as it fits, plus the remainder."""
        given = self._add("Cast", node.input[1], to=TensorProto.INT64)
        if rank_of(self._types[node.input[1]]):
            return given
        zero = self._constant(np.array(0))
        starts = self._add("Range", zero, self._add("Reshape", whole, self._constant(np.zeros(0, np.int64))), given)
        rest = self._add("Sub", whole, starts)
        return self._add("Where", self._add("Less", rest, given), rest, given)

    # Consumers of sequences; each returns the tensor that it computes

    def _at(self, node: NodeProto, family: _Family) -> tuple[str]:
        pair = self._pairs[node.input[0]]
        place = self._place(node.input[1], pair)
        row = self._row_of(pair, place, family)
        offset = self._offset(pair, place, family)
        length = self._products(self._add("Reshape", row, self._integers(1, -1))) if family.rank else self._integers(1)
        part = self._cut(pair.data, offset, self._add("Add", offset, length))
        return (self._restore_order(self._reshaped(part, row), family.order),)

    def _length(self, node: NodeProto, family: _Family) -> tuple[str]:
        count = self._count(self._pairs[node.input[0]])
        return (self._add("Reshape", count, self._constant(np.zeros(0, np.int64))),)

    def _concatenated(self, node: NodeProto, family: _Family) -> tuple[str]:
        pair = self._pairs[node.input[0]]
        row = self._row_of(pair, self._integers(0), family)
        if value_of(node, "new_axis", 0):
            shape = self._joined(self._count(pair), row)
            stacked = [*range(family.rank)]
            stacked.insert(int(value_of(node, "axis")) % (family.rank + 1), -1)
            written = [-1, *family.order]
            order = [written.index(axis) for axis in stacked]
            return (self._in_order(self._reshaped(pair.data, shape), order),)
        along = self._sum(self._cut(pair.shapes, self._integers(0), self._integers(1), axis=1))
        shape = self._joined(along, self._cut(row, self._integers(1), self._integers(_TO_THE_END)))
        return (self._restore_order(self._reshaped(pair.data, shape), family.order),)


_Write = Callable[[_TensorRewriter, NodeProto, _Family], tuple[str, ...]]

_MAKERS: Mapping[str, _Write] = {
    "SequenceConstruct": _TensorRewriter._constructed,
    "SequenceEmpty": _TensorRewriter._empty,
    "SequenceErase": _TensorRewriter._erased,
    "SequenceInsert": _TensorRewriter._inserted,
    "SplitToSequence": _TensorRewriter._split,
}

_READERS: Mapping[str, _Write] = {
    "ConcatFromSequence": _TensorRewriter._concatenated,
    "SequenceAt": _TensorRewriter._at,
    "SequenceLength": _TensorRewriter._length,
}
