"""Replace sequences by the tensors in them, for opset versions and runtimes without sequences.

A sequence cannot be removed node by node: its producer and all consumers go together. So the whole model is changed
wherever the contents of a sequence are known: single tensors, or one tensor split along an axis.

Sources: the pages of SplitToSequence (11), SequenceAt (11), ConcatFromSequence (11) and the other sequence operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto
from onnx.numpy_helper import from_array

from reducelower.legalization.dead_code import remove_unused
from reducelower.legalization.edits import opened, splice
from reducelower.legalization.whole import Attempt, Changed
from reducelower.model.attributes import copy_marks, make_node, value_of
from reducelower.model.document import Document
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.options import Settings
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground

__all__ = ["replace_by_tensors", "without_sequences"]

_SINCE = 11
"""The opset version that introduced sequences."""

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


def without_sequences(tried: Attempt, settings: Settings) -> Changed | None:
    """The model without its known sequences; None if the opset version has sequences, or the model makes none."""
    source, opset = tried.source, tried.plan.target.opset or 0
    if opset >= _SINCE or source.columns.operators.isdisjoint(_MAKERS - {"Identity"}):
        return None
    made = deepcopy(source.message)
    sentence = f"sequences, which came with opset {_SINCE}, are taken apart into the tensors that they are made of"
    replace_by_tensors(made)
    return Changed(Document(made), (sentence,))


def replace_by_tensors(model: ModelProto) -> None:
    """Let consumers of known sequences read the tensors instead, in place; remove producers that become unused."""
    _SequenceRemover(model).run()


class _SequenceRemover:
    def __init__(self, model: ModelProto) -> None:
        self._opset = opset_of(model)
        source = Document(deepcopy(model))
        self._ground = Ground(source, self._opset)
        self._edits = opened(self._ground, model, self._opset)
        self._known: dict[tuple[GraphScope, str], _Sequence] = {}
        self._nodes: list[NodeProto] = []

    def run(self) -> None:
        for scope in (edit.scope for edit in self._edits):
            for node in scope.holder.node:
                is_maker = node.op_type in _MAKERS and node.domain in DEFAULT_DOMAINS
                made = self._made(node, scope) if is_maker else None
                if made is not None:
                    self._known[scope, node.output[0]] = made
        for edit in self._edits:
            for place, node in enumerate(edit.scope.holder.node):
                if self._rewrite(node, edit.scope):
                    edit.replaced[place] = self._nodes
                    edit.drops_operands = True
        remove_unused(self._edits)
        splice(self._edits, report=False)
        self._ground.clear_caches()

    def _content(self, scope: GraphScope, name: str) -> _Sequence | None:
        """The known sequence of that name; None if there is none."""
        return self._known.get((scope.home(name), name))

    def _made(self, node: NodeProto, scope: GraphScope) -> _Sequence | None:
        """The sequence that a node makes; None if unknown."""
        if node.op_type == "SplitToSequence":
            return _cut(node, scope)
        if node.op_type == "SequenceConstruct":
            return tuple(node.input)
        if node.op_type == "SequenceEmpty":
            return ()
        contents = self._content(scope, node.input[0])
        if node.op_type == "Identity" or not isinstance(contents, tuple):
            return contents if node.op_type == "Identity" else None
        inserts = node.op_type == "SequenceInsert"
        place = _number(node, scope, 2 if inserts else 1, len(contents) if inserts else -1)
        if place is None:
            return None
        parts = list(contents)
        if inserts:
            parts.insert(place, node.input[1])
        else:
            del parts[place]
        return tuple(parts)

    # Consumers

    def _rewrite(self, node: NodeProto, scope: GraphScope) -> bool:
        """Write what replaces a node if it reads a known sequence; return whether it does."""
        self._nodes = []
        read = _READERS.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
        content = self._content(scope, node.input[0]) if read is not None and node.input else None
        if read is None or content is None or read(self, node, scope, content) is None:
            return False
        copy_marks(node, self._nodes[-1])
        self._nodes[-1].output[0] = node.output[0]
        return True

    def _add(self, node: NodeProto, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = self._ground.names.fresh(node.name or node.output[0], f"/{node.op_type}/{op_type.lower()}")
        self._nodes.append(make_node(op_type, inputs, [name], **attributes))
        return name

    def _integers(self, node: NodeProto, value: Any) -> str:
        return self._add(node, "Constant", value=from_array(np.array(value, np.int64)))

    def _at(self, node: NodeProto, scope: GraphScope, content: _Sequence) -> str | None:
        place = _number(node, scope, 1, 0)
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

    def _length(self, node: NodeProto, scope: GraphScope, content: _Sequence) -> str | None:
        if isinstance(content, tuple) or content.bounds is not None:
            return self._integers(node, len(content) if isinstance(content, tuple) else len(content.bounds or ()) - 1)
        sizes = self._add(node, "Shape", content.data)
        return self._add(node, "Gather", sizes, self._integers(node, content.axis), axis=0)

    def _joined(self, node: NodeProto, scope: GraphScope, content: _Sequence) -> str | None:
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


def _cut(node: NodeProto, scope: GraphScope) -> _Sequence | None:
    """The sequence that a SplitToSequence makes; None if the number of parts is unknown."""
    axis = int(value_of(node, "axis", 0))
    if len(node.input) < 2 or not node.input[1]:
        return _Cut(node.input[0], axis, None, bool(value_of(node, "keepdims", 1)))
    sizes = scope.constant(node.input[1])
    if sizes is None or sizes.ndim != 1:
        return None
    return _Cut(node.input[0], axis, (0, *accumulate(sizes.tolist())), True)


def _number(node: NodeProto, scope: GraphScope, index: int, default: int) -> int | None:
    """The constant value of an index input; None if it is computed."""
    if len(node.input) <= index or not node.input[index]:
        return default
    value = scope.constant(node.input[index])
    return None if value is None or value.size != 1 else int(value.reshape(-1)[0])


_READERS: Mapping[str, Callable[[_SequenceRemover, NodeProto, GraphScope, Any], str | None]] = {
    "ConcatFromSequence": _SequenceRemover._joined,
    "SequenceAt": _SequenceRemover._at,
    "SequenceLength": _SequenceRemover._length,
}
