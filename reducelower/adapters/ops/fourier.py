"""DFT where the target has none: a MatMul with the cosines and one with the sines, for sizes that are known.

Source: https://onnx.ai/onnx/operators/onnx__DFT.html (17, 20).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.absent import expresses
from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_LARGEST = 1 << 20
_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_OLDEST = "opset 17 is the oldest that has DFT"


@expresses("DFT", opset=12, reads=17)
def _dft(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Real and imaginary part of the sum of x * exp(-2 pi i k n / length), or of its inverse."""
    body = Writer(node, scope)
    shape = scope.shape(node.input[0])
    rank = scope.needed_rank(node.input[0])
    axis = from_the_front(int(value_of(node, "axis", 1)), rank)
    inverse, onesided = bool(value_of(node, "inverse", 0)), bool(value_of(node, "onesided", 0))
    if shape is None or shape[axis] is None or shape[-1] not in (1, 2):
        raise RefusedError("the length of the signal, or whether it is complex, is not known", _OLDEST)
    given = body.constant_input(1)
    if body.input(1) and given is None:
        raise RefusedError("its dft_length is computed at run time", _OLDEST)
    size = int(shape[axis] or 0)
    length = size if given is None else int(given.reshape(-1)[0])
    if (inverse and onesided) or size * length > _LARGEST or not length:
        raise RefusedError("it is an inverse from one side, or its length is too large for a matrix", _OLDEST)
    if body.input(1):
        scope.release(body.input(1))
    element_type = scope.needed_element_type(node.input[0])
    wide = TensorProto.FLOAT if element_type in _HALVES else element_type
    count = length // 2 + 1 if onesided else length
    # What lies behind the length is cut off, what the signal lacks is zero.
    angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(count)) % length) / length
    kept = (np.arange(size) < length)[:, None] / (length if inverse else 1)
    cosines = body.constant(np.cos(angles) * kept, wide, "cosines")
    sines = body.constant(np.sin(angles) * kept * (-1 if inverse else 1), wide, "sines")
    # The axis comes last, so that the matrices stand on the right.
    order = [*(place for place in range(rank - 1) if place != axis), axis]
    back = [order.index(place) for place in range(rank - 1)]
    data = body.cast(node.input[0], element_type, wide, "wide")
    parts = []
    for part in range(int(shape[-1] or 0)):
        which = body.constant(part, TensorProto.INT64, f"part_{part}")
        values = body.add("Gather", data, which, tail="part", axis=rank - 1)
        parts.append(body.add("Transpose", values, tail="turned", perm=order))
    real = body.add("MatMul", parts[0], cosines, tail="real")
    imaginary = body.add("Neg", body.add("MatMul", parts[0], sines), tail="imaginary")
    if len(parts) == 2:
        real = body.add("Add", real, body.add("MatMul", parts[1], sines), tail="real")
        imaginary = body.add("Add", imaginary, body.add("MatMul", parts[1], cosines), tail="imaginary")
    results = [
        body.add("Unsqueeze", body.add("Transpose", part, tail="back", perm=back), tail="column", axes=[rank - 1])
        for part in (real, imaginary)
    ]
    if wide == element_type:
        return body.yields("Concat", *results, axis=rank - 1)
    return body.yields("Cast", body.add("Concat", *results, tail="both", axis=rank - 1), to=element_type)
