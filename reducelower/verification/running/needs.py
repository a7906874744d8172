"""What a run of a model takes, from the sizes of all values and what kernels need besides.

The latter was measured with onnxruntime 1.32 and onnx.reference 1.23.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from reducelower.model.graph import read_by, subgraphs
from reducelower.model.value_info import size_of
from reducelower.verification.operators import of_kind

__all__ = ["GROWING", "Peak"]

_STRING = 64


@dataclass(frozen=True)
class _Size:
    """What is known of a value."""

    shape: tuple[int, ...]
    item: int

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.item

    @staticmethod
    def of(value: ValueInfoProto) -> _Size | None:
        """The size of a value of which all sizes are known."""
        kind = value.type.tensor_type
        sizes = [size_of(dim) for dim in kind.shape.dim]
        known = [size for size in sizes if size is not None]
        if not kind.HasField("shape") or not kind.elem_type or len(known) < len(sizes):
            return None
        return _Size(tuple(known), _item(kind.elem_type))


def _item(element_type: int) -> int:
    if element_type == TensorProto.STRING:
        return _STRING
    return int(np.dtype(helper.tensor_dtype_to_np_dtype(element_type)).itemsize)


@dataclass(frozen=True)
class Peak:
    """The most that the values inside a graph take at one time, with what the kernel at work needs besides."""

    keeps_all: bool
    judged: Collection[str]

    def of(self, graph: GraphProto) -> tuple[int, int]:
        """In bytes, and how many elements the outputs have that are judged."""
        return self._of(graph, {}, {})

    def _of(self, graph: GraphProto, outer: Mapping[str, _Size], around: Mapping[str, int]) -> tuple[int, int]:
        """As `of`; `outer` are the values around the graph, and those `around` it that are known numbers."""
        sizes, numbers = dict(outer), dict(around)
        for value in (*graph.input, *graph.value_info, *graph.output):
            found = _Size.of(value)
            if found is not None:
                sizes[value.name] = found
        for tensor in graph.initializer:
            sizes[tensor.name] = _Size(tuple(tensor.dims), _item(tensor.data_type))
            numbers |= _number(tensor.name, tensor)
        last = {name: at for at, node in enumerate(graph.node) for name in read_by(node)}
        last |= {value.name: len(graph.node) for value in graph.output}
        held: dict[str, int] = {}
        live = most = 0
        for at, node in enumerate(graph.node):
            for item in node.attribute:
                if item.HasField("t") and node.op_type == "Constant":
                    numbers |= _number(node.output[0], item.t)
            inner = [(self._of(each, sizes, numbers), each) for _, _, each in subgraphs(node)]
            work = self._work(node, sizes) + max((most_inside for (most_inside, _), _ in inner), default=0)
            if node.op_type == "Loop" and inner:
                turns = max(numbers.get(node.input[0], 1), 1)
                (_, body), carried = inner[0], len(node.input) - 2
                for name, value in zip(node.output[carried:], body.output[carried + 1 :], strict=False):
                    found = _Size.of(value)
                    if found is not None:
                        sizes[name] = _Size((turns, *found.shape), found.item)
                        work += sizes[name].bytes  # what each turn gave, before it is put together
            read = node.input[:1] if node.op_type in _WEIGHING else node.input
            guess = _guess(node, [sizes[name] for name in read if name in sizes])
            for name in filter(None, node.output):
                held[name] = sizes.setdefault(name, guess).bytes
                live += held[name]
            most = max(most, live + work)
            for name in () if self.keeps_all else [name for name in held if last.get(name, at) <= at]:
                live -= held.pop(name)
        return most, sum(prod(sizes[name].shape) for name in self.judged if name in sizes)

    def _work(self, node: NodeProto, sizes: Mapping[str, _Size]) -> int:
        """What the kernel needs besides its inputs and outputs."""
        known = [sizes[name] for name in (*node.input[:2], *node.output[:1]) if name in sizes]
        if len(known) < 3:
            return 0
        data, other, result = known
        if node.op_type == "Attention":
            return _scores(node, data, other)
        if node.op_type not in (_ALL_WINDOWS if self.keeps_all else _WINDOWS):
            return 0
        # A matrix of what each window sees, or of what each element gives to the windows that it is part of: of one
        # image at a time, or of all in double and once more.
        windows = prod(other.shape[1:]) * prod((data if node.op_type == "ConvTranspose" else result).shape[2:])
        return windows * (2 * 8 * prod(data.shape[:1]) if self.keeps_all else 4)


def _number(name: str, tensor: TensorProto) -> dict[str, int]:
    """The number that a tensor holds, which may be how often a loop turns."""
    is_one = tensor.data_type == TensorProto.INT64 and prod(tensor.dims) == 1 and not tensor.external_data
    return {name: int(numpy_helper.to_array(tensor).reshape(-1)[0])} if is_one else {}


def _guess(node: NodeProto, read: Sequence[_Size]) -> _Size:
    """The size of a value of which inference knows none: that of the largest that is read, or of all in a sequence."""
    if node.op_type in _TOGETHER:
        return _Size((sum(size.bytes for size in read) // 4,), 4)
    return max(read, key=lambda size: size.bytes, default=_Size((), 1))


_WEIGHING = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators whose second operand is large for what they are given, not for what they give."""

_TOGETHER = frozenset({"SequenceConstruct", "SequenceInsert"})
"""Operators that give all that they read. Concat is none: from layer to layer, guesses would double."""


_WINDOWS = frozenset({"ConvInteger", "ConvTranspose", "DeformConv"})
_ALL_WINDOWS = _WINDOWS | {"Conv"}
"""Operators for which the kernels of onnxruntime, and of the reference evaluator, lay out all windows."""


def _scores(node: NodeProto, query: _Size, keys: _Size) -> int:
    """How much each query has to do with each key, before and after Softmax."""
    if len(query.shape) != 4 or len(keys.shape) != 4:
        heads = next((item.i for item in node.attribute if item.name == "q_num_heads"), 1)
        return 2 * prod(query.shape[:-1]) * prod(keys.shape[-2:-1]) * heads * query.item
    return 2 * prod(query.shape[:3]) * keys.shape[2] * query.item


GROWING = of_kind("growing")
"""Operators that make much of little."""
