"""How much memory the reference evaluator takes: it keeps all values until the end, and lays out what windows see.

Inference tells that before anything is computed, of all that is not inside of branches and loops (measured with
onnx.reference 1.23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from reducelower.model.value_info import sizes
from reducelower.verification.running.sizes import A_SHAPE, inferred

__all__ = ["evaluator_bytes", "shape_told"]

_WINDOWS = frozenset({"Conv", "ConvInteger", "ConvTranspose", "DeformConv"})
_SINGLE, _DOUBLE = 4, 8


def evaluator_bytes(model: ModelProto, feeds: Mapping[str, Any]) -> int:
    """How many bytes a run takes at least; 0 where inference does not know."""
    graph = inferred(model, feeds)
    if graph is None:
        return 0
    shapes: dict[str, list[int]] = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    taken = 0
    for value in (*graph.input, *graph.value_info, *graph.output):
        shape, kind = sizes(value.type), value.type.tensor_type.elem_type
        known = [size for size in shape or () if size is not None]
        if shape is not None and len(known) == len(shape) and kind and value.name not in shapes:
            shapes[value.name] = known
            taken += prod(known) * int(helper.tensor_dtype_to_np_dtype(kind).itemsize)
    return taken + max((_laid_out(node, shapes) for node in graph.node), default=0)


def shape_told(value: Any) -> object:
    """What the sizes of results depend on; whole numbers may be a shape."""
    may_be_shape = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size <= A_SHAPE
    return np.shape(value), value.tobytes() if may_be_shape else b""


def _laid_out(node: NodeProto, shapes: Mapping[str, Sequence[int]]) -> int:
    """How many bytes are laid out beside what a node gives: all scores of attention, or what each window sees."""
    known = [shapes.get(name) for name in (*node.input[:2], *node.output[:1])]
    if None in known or len(known) < 3:
        return 0
    data, weights, result = (shape for shape in known if shape is not None)
    if node.op_type == "Attention":
        heads = next((item.i for item in node.attribute if item.name == "q_num_heads"), 1)
        return 2 * _SINGLE * prod(data[:3] if len(data) == 4 else (*data[:2], heads)) * prod(weights[-2:-1])
    if node.op_type not in _WINDOWS:
        return 0
    moved = data if node.op_type == "ConvTranspose" else result
    return 2 * _DOUBLE * prod(data[:1]) * prod(weights[1:]) * prod(moved[2:])
