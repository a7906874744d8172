"""DFT and STFT where the target has none; not text, since numpy works out tables of cosines and sines.

A DFT is a MatMul with the cosines and one with the sines, an STFT a Conv with both.

Sources: the pages of DFT (17, 20), STFT (17).
"""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.errors import RefusedError
from reducelower.model.numbers import HALVES
from reducelower.rulebook.questions import from_the_front

_OLDEST = "opset 17 is the oldest that has DFT"
_OLDEST_STFT = "opset 17 is the oldest that has STFT"


@expresses("DFT", opset=12, reads=17)
def _dft(op: Writer) -> list[NodeProto]:
    """Real and imaginary part of the sum of x * exp(-2 pi i k n / length), or of its inverse.

    The inverse from one side is real: what stands for itself and its mirror image counts twice.
    """
    shape, rank = op.shape(0), op.rank(0)
    axis = from_the_front(int(op.attribute("axis", 1)), rank)
    inverse, onesided = bool(op.attribute("inverse", 0)), bool(op.attribute("onesided", 0))
    if shape is None or shape[-1] not in (1, 2):
        raise RefusedError("whether the signal is complex is not known", _OLDEST)
    size, given = shape[axis], op.constant_input(1)
    element_type = op.element_type(0)
    wide = TensorProto.FLOAT if element_type in HALVES else element_type
    is_mirrored = inverse and onesided
    if size is None or (op.input(1) and given is None):
        cosines, sines = _matrices_at_run_time(op, axis, wide, inverse=inverse, onesided=onesided)
    else:
        length = (2 * (size - 1) if is_mirrored else size) if given is None else int(given.reshape(-1)[0])
        op.scope.release(op.input(1))
        waves = _waves(op, size, length, inverse=inverse, onesided=onesided)
        return _by_one_matrix(op, waves, axis, rank, wide)
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


def _by_one_matrix(op: Writer, waves: np.ndarray, axis: int, rank: int, wide: int) -> list[NodeProto]:
    """The signal times a matrix by part and place of the signal, and by frequency and part of the result."""
    parts, size, count, results = waves.shape[0], waves.shape[1], waves.shape[2], waves.shape[3]
    # The axis comes last, next to the parts.
    order = [*(place for place in range(rank - 1) if place != axis), axis, rank - 1]
    data = op.cast(op.input(0), op.element_type(0), wide, "wide")
    if axis != rank - 2:
        data = op.add("Transpose", data, tail="turned", perm=order)
    leading = [0] * (rank - 2)
    row = op.add("Reshape", data, op.integers([*leading, size * parts], "row"), tail="row")
    matrix = op.constant(waves.swapaxes(0, 1).reshape(size * parts, count * results), wide, "waves")
    product = op.add("MatMul", row, matrix, tail="product")
    result = op.add("Reshape", product, op.integers([*leading, count, results], "parts"), tail="parts")
    if axis != rank - 2:
        result = op.add("Transpose", result, tail="back", perm=np.argsort(order).tolist())
    return op.yields_cast(result, wide, op.element_type(0))


def _waves(op: Writer, size: int, length: int, *, inverse: bool, onesided: bool) -> np.ndarray:
    """What a signal of this size is multiplied by: part of the signal, place, frequency, part of the result."""
    if length <= 0:
        raise RefusedError("its length is zero", _OLDEST)
    parts = (op.shape(0) or (1,))[-1] or 1
    count = length // 2 + 1 if onesided and not inverse else length
    op.make_room(2, parts, size, count)
    # What lies behind the length is cut off, what the signal lacks is zero.
    angles = _angles(np.arange(size), np.arange(count), length)
    place = np.arange(size)[:, None]
    kept = (place < length) / (length if inverse else 1)
    if inverse and onesided:
        kept = (2 * place <= length) * (1 + (place > 0) * (2 * place < length)) / length
    cosines, sines = np.cos(angles) * kept, np.sin(angles) * kept * (-1 if inverse else 1)
    real = np.stack([cosines, -sines], axis=-1)
    imaginary = np.stack([sines, cosines], axis=-1)
    return np.stack([real, imaginary][:parts])[..., : 1 if inverse and onesided else 2]


def _angles(places: np.ndarray, frequencies: np.ndarray, length: int) -> np.ndarray:
    found: np.ndarray = math.tau * (np.outer(places, frequencies) % length) / length
    return found


def _matrices_at_run_time(
    op: Writer, axis: int, element_type: int, *, inverse: bool, onesided: bool
) -> tuple[str, str]:
    """The same where the size of the signal or the length is known at run time only; whole turns are left out in whole
    numbers, so that long signals lose nothing."""
    one, two = op.number(1), op.number(2)
    size = op.add("Gather", op.add("Shape", op.input(0)), op.number(axis), tail="size", axis=0)
    length = size
    if op.input(1):
        length = op.add("Cast", op.input(1), tail="length", to=TensorProto.INT64)
        length = op.add("Reshape", length, one, tail="one_length")
    elif inverse and onesided:
        length = op.add("Mul", op.add("Sub", size, one, tail="steps"), two, tail="length")
    count = length
    if onesided and not inverse:
        count = op.add("Add", op.add("Div", length, two, tail="half"), one, tail="count")
    place = op.add("Reshape", op.ramp(size), op.integers([-1, 1], "column"), tail="place")
    turns = op.add("Mul", place, op.ramp(count), tail="turns")
    whole = op.add("Mul", op.add("Div", turns, length, tail="whole_turns"), length, tail="whole")
    part = op.add("Cast", op.add("Sub", turns, whole, tail="rest"), tail="part_of_turn", to=element_type)
    measure = op.add("Cast", length, tail="measure", to=element_type)
    step = op.add("Div", op.constant([math.tau], element_type, "tau"), measure, tail="step")
    angles = op.add("Mul", part, step, tail="angles")

    def is_less(left: str, right: str) -> str:
        return op.add("Cast", op.add("Less", left, right, tail="is_less"), tail="weight", to=element_type)

    weight = is_less(place, length)
    if inverse and onesided:
        twice = op.add("Mul", place, two, tail="twice")
        mirrored = op.add("Mul", is_less(op.number(0), place), is_less(twice, length), tail="mirrored")
        weight = op.add("Add", mirrored, is_less(twice, op.add("Add", length, one, tail="beyond")), tail="weights")
    if inverse:
        weight = op.add("Div", weight, measure, tail="share")
    cosines = op.add("Mul", op.add("Cos", angles), weight, tail="cosines")
    sines = op.add("Mul", op.add("Sin", angles), weight, tail="sines")
    return cosines, op.add("Neg", sines, tail="turned_back") if inverse else sines


@expresses("STFT", opset=12)
def _stft(op: Writer) -> list[NodeProto]:
    """A convolution with the cosines and sines, weighed by the window, whose stride is the step between frames."""
    signal, window = op.input(0), op.input(2)
    shape, window_shape = op.scope.shape(signal), op.scope.shape(window) if window else None
    every, given = op.constant_input(1), op.constant_input(3)
    if shape is None or (len(shape) == 3 and shape[2] is None) or every is None or int(every.reshape(-1)[0]) <= 0:
        raise RefusedError("whether the signal is complex, or the step between frames, is not known", _OLDEST_STFT)
    step = int(every.reshape(-1)[0])
    length = window_shape[0] if window_shape else None if window or op.input(3) else shape[1]
    if given is not None:
        length = int(given.reshape(-1)[0])
    if length is None or length <= 0:
        raise RefusedError("the length of the frames is not known", _OLDEST_STFT)
    parts = shape[2] if len(shape) == 3 else 1
    onesided = int(op.attribute("onesided", 1))
    if onesided and parts == 2:
        raise RefusedError(
            "it takes one side of the transform of a complex signal, which does not determine the result"
        )
    count = length // 2 + 1 if onesided else length
    op.make_room(2, count, parts or 1, length)
    op.scope.release(op.input(1), op.input(3))
    element_type = op.element_type(0)
    wide = TensorProto.FLOAT if element_type in HALVES else element_type
    angles = _angles(np.arange(count), np.arange(length), length)
    cosines, sines = np.cos(angles), np.sin(angles)
    # Results by real and imaginary part, then frequency; elements by part of the signal, then place.
    kernel = np.array([[cosines, sines], [-sines, cosines]])[:, :parts].swapaxes(1, 2)
    weights = op.constant(kernel.reshape(2 * count, parts or 1, length), wide, "waves")
    if window:
        weights = op.add("Mul", weights, op.cast(window, element_type, wide, "window"), tail="weights")
    signal = op.cast(signal, element_type, wide, "wide")
    if len(shape) == 2:
        signal = op.add("Unsqueeze", signal, tail="signal", axes=[2])
    if wide == TensorProto.FLOAT:
        signal = op.add("Transpose", signal, tail="turned", perm=[0, 2, 1])
        both = op.add("Conv", signal, weights, tail="waves_of_frames", strides=[step])
        both = op.add("Transpose", both, tail="turned_back", perm=[0, 2, 1])
    else:
        both = _of_frames(op, signal, weights, shape[1], step, length)
    found = op.add_many("Split", [both], ("real", "imaginary"), axis=2, split=[count, count])
    columns = [op.add("Unsqueeze", part, tail="column", axes=[3]) for part in found]
    return op.yields_cast(op.add("Concat", *columns, tail="both", axis=3), wide, element_type)


def _of_frames(op: Writer, signal: str, weights: str, size: int | None, step: int, length: int) -> str:
    """The same as the Conv, which onnxruntime has for floats only: frames are gathered, and multiplied by the waves."""
    if size is not None:
        known = op.numbered(0, max((size - length) // step + 1, 0))
        op.make_room(len(known), length)
        places = op.integers(known[:, None] * step + np.arange(length), "places")
    else:
        room = op.add("Gather", op.add("Shape", signal), op.number(1), tail="size", axis=0)
        room = op.add("Sub", room, op.number(length - step), tail="room")
        count = op.add("Div", room, op.number(step), tail="count")
        starts = op.add("Mul", op.ramp(count), op.number(step), tail="starts")
        column = op.add("Reshape", starts, op.integers([-1, 1], "column"), tail="starts_down")
        places = op.add("Add", column, op.integers(np.arange(length), "along"), tail="places")
    frames = op.add("Gather", signal, places, tail="frames", axis=1)
    frames = op.add("Transpose", frames, tail="turned", perm=[0, 1, 3, 2])
    frames = op.add("Reshape", frames, op.integers([0, 0, -1], "rows"), tail="rows_of_frames")
    columns = op.add("Flatten", weights, tail="flat", axis=1)
    return op.add("MatMul", frames, op.add("Transpose", columns, tail="columns", perm=[1, 0]), tail="waves_of_frames")
