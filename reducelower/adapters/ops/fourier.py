"""DFT and STFT, and the windows that go with them, where the target has none.

A DFT of known size is a MatMul with the cosines and one with the sines. The schemas' bodies of the windows compute in
float32 whatever is asked for; here it is the element type of the result where that is double.

Sources: the pages of DFT (17, 20), STFT (17), HannWindow (17), HammingWindow (17), BlackmanWindow (17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.numbers import HALVES

_OLDEST = "opset 17 is the oldest that has DFT"
_OLDEST_STFT = "opset 17 is the oldest that has STFT"


@expresses("DFT", opset=12, reads=17)
def _dft(op: Writer) -> list[NodeProto]:
    """Real and imaginary part of the sum of x * exp(-2 pi i k n / length), or of its inverse.

    The inverse from one side is real: what stands for itself and its mirror image counts twice.
    """
    shape = op.shape(0)
    rank = op.rank(0)
    axis = from_the_front(int(op.attribute("axis", 1)), rank)
    inverse, onesided = bool(op.attribute("inverse", 0)), bool(op.attribute("onesided", 0))
    if shape is None or shape[axis] is None or shape[-1] not in (1, 2):
        raise RefusedError("the length of the signal, or whether it is complex, is not known", _OLDEST)
    given = op.constant_input(1)
    if op.input(1) and given is None:
        raise RefusedError("its dft_length is computed at run time", _OLDEST)
    size = int(shape[axis] or 0)
    is_mirrored = inverse and onesided
    length = (2 * (size - 1) if is_mirrored else size) if given is None else int(given.reshape(-1)[0])
    if length <= 0:
        raise RefusedError("its length is zero", _OLDEST)
    if op.input(1):
        op.scope.release(op.input(1))
    element_type = op.element_type(0)
    wide = TensorProto.FLOAT if element_type in HALVES else element_type
    count = length // 2 + 1 if onesided and not inverse else length
    op.make_room(2, size, count)
    # What lies behind the length is cut off, what the signal lacks is zero.
    angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(count)) % length) / length
    place = np.arange(size)[:, None]
    kept = (place < length) / (length if inverse else 1)
    if is_mirrored:
        kept = (2 * place <= length) * (1 + (place > 0) * (2 * place < length)) / length
    cosines = op.constant(np.cos(angles) * kept, wide, "cosines")
    sines = op.constant(np.sin(angles) * kept * (-1 if inverse else 1), wide, "sines")
    # The axis comes last, so that the matrices stand on the right.
    order = [*(place for place in range(rank - 1) if place != axis), axis]
    back = [order.index(place) for place in range(rank - 1)]
    data = op.cast(op.input(0), element_type, wide, "wide")
    parts = []
    for part in range(int(shape[-1] or 0)):
        which = op.integers(part, f"part_{part}")
        values = op.add("Gather", data, which, tail="part", axis=rank - 1)
        parts.append(op.add("Transpose", values, tail="turned", perm=order))
    results = [op.add("MatMul", parts[0], cosines, tail="real")]
    if not is_mirrored:
        results.append(op.add("Neg", op.add("MatMul", parts[0], sines), tail="imaginary"))
    if len(parts) == 2:
        others = zip(results, (sines, cosines), ("real", "imaginary"), strict=False)
        results = [op.add("Add", part, op.add("MatMul", parts[1], by), tail=tail) for part, by, tail in others]
    results = [
        op.add("Unsqueeze", op.add("Transpose", part, tail="back", perm=back), tail="column", axes=[rank - 1])
        for part in results
    ]
    return op.yields_cast(op.add("Concat", *results, tail="both", axis=rank - 1), wide, element_type)


@expresses("STFT", opset=17)
def _stft(op: Writer) -> list[NodeProto]:
    """The DFT of frames, which are gathered from the signal and weighed by the window."""
    signal, window = op.input(0), op.input(2)
    shape, window_shape = op.scope.shape(signal), op.scope.shape(window) if window else None
    step, given = op.constant_input(1), op.constant_input(3)
    if shape is None or shape[1] is None or shape[-1] is None or step is None:
        raise RefusedError("the length of the signal or the step between frames is not known", _OLDEST_STFT)
    length = window_shape[0] if window_shape else None if window or op.input(3) else shape[1]
    if given is not None:
        length = int(given.reshape(()))
    if length is None:
        raise RefusedError("the length of the frames is not known", _OLDEST_STFT)
    onesided = int(op.attribute("onesided", 1))
    if onesided and len(shape) == 3 and shape[2] == 2:
        raise RefusedError(
            "it takes one side of the transform of a complex signal, which does not determine the result"
        )
    count = max((shape[1] - length) // int(step) + 1, 0)
    op.make_room(count, length)
    places = np.arange(count)[:, None] * int(step) + np.arange(length)
    for name in (op.input(1), op.input(3)):
        if name:
            op.scope.release(name)
    if len(shape) == 2:
        signal = op.add("Unsqueeze", signal, op.number(2), tail="signal")
    frames = op.add("Gather", signal, op.integers(places, "places"), tail="frames", axis=1)
    if window:
        column = op.integers([length, 1], "column")
        frames = op.add("Mul", frames, op.add("Reshape", window, column, tail="window"), tail="weighed")
    return op.yields("DFT", frames, axis=2, onesided=onesided)


@lowers("DFT", 20)
def _lower_axis(op: Writer) -> None:
    """An absent axis meant the last one of the signal, and means the second one before 20."""
    if not op.input(2):
        op.set("axis", -2)


@raises("DFT", 20)
def _raise_axis(op: Writer) -> None:
    op.state("axis", 1)


_COEFFICIENTS: Mapping[str, tuple[float, float, float]] = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
"""A window is a0 - a1 cos(t) + a2 cos(2t), where t goes around the circle once."""


@expresses(*_COEFFICIENTS, opset=13)
def _window(op: Writer) -> list[NodeProto]:
    """The angles are those of size places from 0 on, in steps of 1/size, or of 1/(size - 1) where it is symmetric."""
    a0, a1, a2 = _COEFFICIENTS[op.node.op_type]
    wanted = int(op.attribute("output_datatype", TensorProto.FLOAT))
    element_type = TensorProto.DOUBLE if wanted == TensorProto.DOUBLE else TensorProto.FLOAT

    def number(value: float, tail: str) -> str:
        return op.constant(value, element_type, tail)

    size = op.add("Cast", op.input(0), tail="size", to=element_type)
    places = op.add("Range", number(0, "zero"), size, number(1, "one"), tail="places")
    span = size if op.attribute("periodic", 1) else op.add("Sub", size, number(1, "one"), tail="span")
    angles = op.add("Mul", places, op.add("Div", number(math.tau, "tau"), span, tail="step"), tail="angles")
    window = op.add("Mul", op.add("Cos", angles), number(a1, "a1"), tail="first")
    window = op.add("Sub", number(a0, "a0"), window, tail="falling")
    if a2:
        doubled = op.add("Cos", op.add("Mul", angles, number(2, "two"), tail="doubled"), tail="second")
        window = op.add("Add", window, op.add("Mul", doubled, number(a2, "a2"), tail="second_part"), tail="window")
    return op.yields("Cast", window, to=wanted)
