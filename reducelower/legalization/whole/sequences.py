"""Replace sequences by the tensors in them, for opset versions and runtimes without sequences.

A sequence cannot be removed node by node: its producer and all consumers go together. So the whole model is changed
wherever the contents of a sequence are known: single tensors, or one tensor split along an axis.

Sources: the pages of SplitToSequence (11), SequenceAt (11), ConcatFromSequence (11) and the other sequence operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from onnx import ModelProto, NodeProto
from onnx.numpy_helper import from_array

from reducelower.adapters.builder import Writer
from reducelower.legalization.dead_code import remove_unused
from reducelower.legalization.edits import Edit, Rewrite, splice
from reducelower.legalization.whole import Attempt, Changed
from reducelower.model.document import Document
from reducelower.model.graph import may_hold_graphs
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.options import Settings
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.scope.node import NodeScope

__all__ = ["MAKERS", "without_sequences"]

MAKERS = frozenset({"SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SplitToSequence"})
"""The operators that make sequences."""


class _Cut(NamedTuple):
    """A sequence of the parts of a tensor split along an axis into parts of size 1, which may keep the axis."""

    data: str
    axis: int
    keeps_axis: bool


class _Span(NamedTuple):
    """A part of a tensor along an axis."""

    data: str
    axis: int
    start: int
    end: int


_Sequence: TypeAlias = "tuple[str | _Span, ...] | _Cut"
"""The contents of a sequence: tensors and parts of tensors, or as many parts as the tensor has."""


def without_sequences(tried: Attempt, settings: Settings) -> Changed | None:
    """The model without its known sequences, if the opset version or the runtime lacks an operator of sequences."""
    if {refusal.operator for refusal in tried.plan.refusals}.isdisjoint({*MAKERS, *_READERS}):
        return None
    made = tried.source.copy()
    sentence = "sequences, which are not supported there, are taken apart into the tensors that they are made of"
    return Changed(Document(made), (sentence,)) if _replace_by_tensors(made) else None


def _replace_by_tensors(model: ModelProto) -> bool:
    """Let consumers of known sequences read the tensors instead; return whether there were any.

    Producers that become unused are removed.
    """
    opset = opset_of(model)
    ground = Ground(Document(deepcopy(model)), opset)
    edits = [Edit(GraphScope(ground, model.graph, opset))]
    known: dict[tuple[GraphScope, str], _Sequence] = {}
    for edit in edits:  # grows while it is iterated
        scope = edit.scope
        for place, node in enumerate(scope.holder.node):
            if may_hold_graphs(node):
                edits += map(Edit, edit.inside(place))
            write = _READERS.get(node.op_type)
            if node.domain not in DEFAULT_DOMAINS or not (write or node.op_type in {"Identity", *MAKERS}):
                continue
            op = Writer(node, NodeScope(scope, None))
            read = known.get((scope.home(op.input(0)), op.input(0)))
            if write is None:
                if (made := _made(op, read)) is not None:
                    known[scope, node.output[0]] = made
            elif read is not None and write(op, read) is not None:
                edit.rewrites[place] = Rewrite(op.nodes)
                edit.drops_operands = True
    remove_unused(edits)
    splice(edits)
    ground.clear_caches()
    return any(edit.rewrites for edit in edits)


def _made(op: Writer, read: _Sequence | None) -> _Sequence | None:
    """The sequence that a node makes, perhaps of the one that it reads; None if unknown."""
    match op.node.op_type:
        case "SplitToSequence":
            return _split(op)
        case "SequenceConstruct":
            return tuple(op.node.input)
        case "SequenceEmpty":
            return ()
        case "Identity":
            return read
    if read is None or isinstance(read, _Cut):
        return None
    inserts = op.node.op_type == "SequenceInsert"
    place = _number(op, 2 if inserts else 1, len(read) if inserts else -1)
    if place is None:
        return None
    parts = list(read)
    if inserts:
        parts.insert(place, op.input(1))
    else:
        del parts[place]
    return tuple(parts)


def _split(op: Writer) -> _Sequence | None:
    """The sequence that a SplitToSequence makes; None if the number of parts is unknown."""
    data, axis = op.input(0), op.attribute("axis", 0)
    if not op.input(1):
        return _Cut(data, axis, bool(op.attribute("keepdims", 1)))
    sizes = op.constant_input(1)
    if sizes is None:
        return None
    if sizes.ndim:
        bounds = [0, *accumulate(sizes.tolist())]
    else:  # the size of every part; the last may be smaller
        shape, part = op.shape(0), int(sizes)
        whole = None if shape is None else shape[axis]
        if whole is None or part < 1:
            return None
        bounds = [*range(0, whole, part), whole]
    return tuple(_Span(data, axis, *each) for each in pairwise(bounds))


def _number(op: Writer, index: int, default: int) -> int | None:
    """The constant value of an index input; None if it is computed."""
    if not op.input(index):
        return default
    value = op.constant_input(index)
    return None if value is None or value.size != 1 else int(value.reshape(-1)[0])


# Consumers: each writes what replaces it; None if that is unknown


def _at(op: Writer, read: _Sequence) -> list[NodeProto] | None:
    if isinstance(read, _Cut):
        index = op.add("Reshape", op.input(1), _integers(op, [1] if read.keeps_axis else []))
        return op.yields("Gather", read.data, index, axis=read.axis)
    place = _number(op, 1, 0)
    is_there = place is not None and -len(read) <= place < len(read)
    return op.yields_value(_part(op, read[place or 0])) if is_there else None


def _length(op: Writer, read: _Sequence) -> list[NodeProto]:
    if isinstance(read, _Cut):
        return op.yields("Gather", op.add("Shape", read.data), _integers(op, read.axis), axis=0)
    return op.yields("Constant", value=from_array(np.array(len(read), np.int64)))


def _joined(op: Writer, read: _Sequence) -> list[NodeProto] | None:
    axis, stacks = op.attribute("axis"), bool(op.attribute("new_axis", 0))
    if isinstance(read, _Cut):  # concatenated along the axis it was split on
        is_whole = axis == read.axis and stacks != read.keeps_axis
        return op.yields_value(read.data) if is_whole else None
    parts = [_part(op, part) for part in read]
    if stacks and op.scope.opset >= 13:
        axes = _integers(op, [axis])
        parts = [op.add("Unsqueeze", part, axes) for part in parts]
    elif stacks:
        parts = [op.add("Unsqueeze", part, axes=[axis]) for part in parts]
    return op.yields("Concat", *parts, axis=axis) if parts else None


def _part(op: Writer, part: str | _Span) -> str:
    """The name of a part."""
    if isinstance(part, str):
        return part
    return op.add("Slice", part.data, *(_integers(op, [bound]) for bound in (part.start, part.end, part.axis)))


def _integers(op: Writer, value: Any) -> str:
    return op.add("Constant", value=from_array(np.array(value, np.int64)))


_READERS: Mapping[str, Callable[[Writer, _Sequence], list[NodeProto] | None]] = {
    "ConcatFromSequence": _joined,
    "SequenceAt": _at,
    "SequenceLength": _length,
}
