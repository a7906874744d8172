"""How much memory a run of a model takes, worked out from the sizes of all values beforehand, and how much it may.

What kernels need besides was measured with onnxruntime 1.32 and onnx.reference 1.23.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)

from reducelower.model.graph import read_by, subgraphs, walk
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.skeleton import skeleton
from reducelower.model.value_info import size_of, sizes
from reducelower.types import ContradictionError, infer
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.source import CannotRunError, Session

__all__ = [
    "Bounded",
    "Peak",
    "TooLargeError",
    "allowed_bytes",
    "as_fed",
    "check_elements",
    "held_bytes",
    "inferred",
    "most_elements",
]

_A_SHAPE = 64
"""Whole numbers of one input that may be a shape."""


def inferred(model: ModelProto, given: Mapping[str, Any]) -> GraphProto | None:
    """The graph with the shapes of its values on inputs of these shapes (see `as_fed`); None where they do not fit."""
    fed = as_fed(model, given)
    try:
        # onnx follows no computed sizes without their values, which it holds as messages: gigabytes of long vectors.
        found = infer_shapes(fed).graph
        told = {value.name: sizes(value.type) for value in (*found.value_info, *found.output)}
        computed = (name for node in found.node if node.op_type != "Constant" for name in node.output if name)
        if all((shape := told.get(name)) is not None and None not in shape for name in computed):
            return found
        return infer(fed).graph
    except (ContradictionError, shape_inference.InferenceError):
        return None


def as_fed(model: ModelProto, given: Mapping[str, Any]) -> ModelProto:
    """A model without weights whose inputs have these shapes, or those of arrays, and that states no other shapes.

    Small whole numbers become constants, since they may be shapes.
    """
    bare = skeleton(model)
    for node in walk(bare.graph.node):  # of what is inside, types do not matter
        for _, _, graph in subgraphs(node):
            del graph.value_info[:]
    held = {tensor.name for tensor in bare.graph.initializer}  # whose shapes exporters state, too
    for value in (*bare.graph.value_info, *bare.graph.output):
        if value.name not in held and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    inputs = list(bare.graph.input)
    del bare.graph.input[:]
    for value in inputs:
        fed = given.get(value.name)
        dims = fed.shape if isinstance(fed, np.ndarray) else fed
        if isinstance(dims, tuple):
            value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, dims))
        if isinstance(fed, np.ndarray) and fed.dtype == np.int64 and fed.size <= _A_SHAPE and value.name not in held:
            bare.graph.initializer.append(numpy_helper.from_array(fed, value.name))
        else:
            bare.graph.input.append(value)
    return bare


_GB = 1e9
_DRAWN = 12  # bytes for each element of an input that is made: a double, and what becomes of it
_JUDGED = 64  # bytes for each element of a result that is compared


def allowed_bytes() -> float:
    """How many bytes a run may take now."""
    allowed = conditions().memory
    return float("inf") if allowed is None else allowed * _GB


def most_elements() -> int:
    """How many elements of one input may be made now."""
    return int(min(allowed_bytes() / _DRAWN, 1 << 40))


def check_elements(count: int) -> None:
    """Raise a TooLargeError where an input of so many elements is not made."""
    if count > most_elements():
        raise TooLargeError.of(count * _DRAWN)


class TooLargeError(CannotRunError):
    """A run that was not begun, since it would take more memory than is allowed; it says nothing against the model."""

    @staticmethod
    def of(count: float) -> TooLargeError:
        """For what takes so many bytes."""
        return TooLargeError(
            f"it takes about {_shown(count)} of memory at these sizes, and --verify-memory allows "
            f"{_shown(allowed_bytes())}",
            unsupported=True,
        )


def _shown(count: float) -> str:
    return f"{count / _GB:.1f} GB" if count >= _GB / 10 else f"{count / 1e6:.0f} MB"


def held_bytes(values: Iterable[Any]) -> int:
    """How much tensors take, and those in sequences."""
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else held_bytes(value) if isinstance(value, list) else 0
        for value in values
    )


@dataclass
class Bounded:
    """A session that runs nothing which takes more memory than is allowed.

    The reference evaluator keeps all values until the end, and lays out much of what it computes on.
    """

    session: Session
    model: ModelProto
    keeps_all: bool = False
    _known: dict[Any, float] = field(default_factory=dict)

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """As the session; a TooLargeError where it would take too much."""
        count = self.needs(feeds)
        if count > allowed_bytes():
            raise TooLargeError.of(count)
        return self.session.run(feeds, timeout)

    def needs(self, feeds: Mapping[str, Any]) -> float:
        """How many bytes a run on these inputs takes, made and compared."""
        fed = held_bytes(feeds.values())
        key = tuple(sorted((name, _key(value)) for name, value in feeds.items()))
        if key not in self._known:
            self._known[key] = 2 * fed + self._inside(feeds)  # onnxruntime may write to what it is fed
        return self._known[key]

    def _inside(self, feeds: Mapping[str, Any]) -> float:
        graph = inferred(self.model, feeds)
        if graph is None:
            return 0.0  # the runtime says what it makes of shapes that inference objects to
        # What is only looked at was made an output without a type (`giving`).
        judged = {value.name for value in self.model.graph.output if value.HasField("type")}
        inside, results = Peak(self.keeps_all, judged).of(graph)
        return inside + results * _JUDGED


def _key(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return ()
    return value.shape, tuple(value.ravel().tolist()) if value.dtype == np.int64 and value.size <= 64 else ()


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
