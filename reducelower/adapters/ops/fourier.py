"""DFT, STFT and MelWeightMatrix for targets that lack them; not text, since numpy computes the tables.

A DFT is a MatMul with cosines and sines, an STFT a Conv with them. A MelWeightMatrix is a constant.

Sources: the pages of DFT (17, 20), STFT (17), MelWeightMatrix (17).
"""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError
from reducelower.model.numbers import HALVES
from reducelower.rulebook.numbers import from_the_front

_OLDEST = "opset 17 is the oldest that has DFT"
_OLDEST_STFT = "opset 17 is the oldest that has STFT"


@rule("DFT", "absent as of 17", opset=12)
def _dft(op: Writer) -> list[NodeProto]:
    """Real and imaginary part of the sum of x * exp(-2 pi i k n / length), or of its inverse.

    The inverse of a one-sided transform is real: frequencies that stand for their mirror image as well count twice.
    """
    shape, rank = op.shape(0), op.rank(0)
    axis = from_the_front(int(op.attribute("axis", 1)), rank)
    inverse, onesided = bool(op.attribute("inverse", 0)), bool(op.attribute("onesided", 0))
    if shape is None or shape[-1] not in (1, 2):
        raise RefusedError("whether the signal is complex is not known", _OLDEST)
    size, stated = shape[axis], op.constant_input(1)
    element_type = op.element_type(0)
    wide = TensorProto.FLOAT if element_type in HALVES else element_type
    if size is None or (op.input(1) and stated is None):
        raise RefusedError(
            "the size of the signal along its axis, or the length of the transform, is known at run time only", _OLDEST
        )
    is_mirrored = inverse and onesided
    length = (2 * (size - 1) if is_mirrored else size) if stated is None else int(stated.reshape(-1)[0])
    waves = _waves(op, size, length, inverse=inverse, onesided=onesided)
    return _by_one_matrix(op, waves, axis, rank, wide)


def _by_one_matrix(op: Writer, waves: np.ndarray, axis: int, rank: int, wide: int) -> list[NodeProto]:
    """Multiply the signal by a matrix: rows by place and part of the signal, columns by frequency and part."""
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
    """The factors for a signal of this size: (part of the signal, place, frequency, part of the result)."""
    if length <= 0:
        raise RefusedError("its length is zero", _OLDEST)
    parts = (op.shape(0) or (1,))[-1] or 1
    count = length // 2 + 1 if onesided and not inverse else length
    op.make_room(2, parts, size, count)
    # A longer signal is cut off, a shorter one padded with zeros.
    angles = _angles(np.arange(size), np.arange(count), length)
    place = np.arange(size)[:, None]
    scale = (place < length) / (length if inverse else 1)
    if inverse and onesided:
        scale = (2 * place <= length) * (1 + (place > 0) * (2 * place < length)) / length
    cosines, sines = np.cos(angles) * scale, np.sin(angles) * scale * (-1 if inverse else 1)
    real = np.stack([cosines, -sines], axis=-1)
    imaginary = np.stack([sines, cosines], axis=-1)
    return np.stack([real, imaginary][:parts])[..., : 1 if inverse and onesided else 2]


def _angles(places: np.ndarray, frequencies: np.ndarray, length: int) -> np.ndarray:
    angles: np.ndarray = math.tau * (np.outer(places, frequencies) % length) / length
    return angles


@rule("STFT", "absent", opset=12)
def _stft(op: Writer) -> list[NodeProto]:
    """Convolve with the cosines and sines, times the window; the stride is the step between frames."""
    signal, window = op.input(0), op.input(2)
    shape, window_shape = op.scope.shape(signal), op.scope.shape(window) if window else None
    stated_step, stated = op.constant_input(1), op.constant_input(3)
    step = 0 if stated_step is None else int(stated_step.reshape(-1)[0])
    if shape is None or (len(shape) == 3 and shape[2] is None) or step <= 0:
        raise RefusedError("whether the signal is complex, or the step between frames, is not known", _OLDEST_STFT)
    length = window_shape[0] if window_shape else None if window or op.input(3) else shape[1]
    if stated is not None:
        length = int(stated.reshape(-1)[0])
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
    element_type = op.element_type(0)
    if element_type == TensorProto.DOUBLE:
        raise RefusedError("it is of doubles, and onnxruntime has a Conv of floats alone", _OLDEST_STFT)
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
    signal = op.add("Transpose", signal, tail="turned", perm=[0, 2, 1])
    both = op.add("Conv", signal, weights, tail="waves_of_frames", strides=[step])
    both = op.add("Transpose", both, tail="turned_back", perm=[0, 2, 1])
    spectra = op.add_many("Split", [both], ("real", "imaginary"), axis=2, split=[count, count])
    columns = [op.add("Unsqueeze", part, tail="column", axes=[3]) for part in spectra]
    return op.yields_cast(op.add("Concat", *columns, tail="both", axis=3), wide, element_type)


@rule("MelWeightMatrix", "absent", opset=13)
def _mel_weight_matrix(op: Writer) -> list[NodeProto]:
    """A triangle for each mel band, in a column: from the begin of the band up to 1 at its middle, and down again."""
    inputs = [op.constant_input(place) for place in range(5)]
    if any(each is None for each in inputs):
        raise RefusedError("its inputs are computed at run time", "opset 17 is the oldest that has MelWeightMatrix")
    bands, length, rate, lowest, highest = (each.reshape(-1)[0] for each in inputs)
    op.make_room(length // 2 + 1, bands)
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (lowest, highest))
    edges = np.arange(bands + 2) * ((high - low) / (bands + 2)) + low
    begin, middle, end = (
        (((length + 1) * (700 * (10 ** (edges[place : bands + place] / 2595) - 1))) // rate).astype(int)
        for place in range(3)
    )
    frequency = np.arange(length // 2 + 1)[:, None]
    up = np.where(begin == middle, frequency == middle, (frequency - begin) / np.maximum(middle - begin, 1))
    down = (end - frequency) / np.maximum(end - middle, 1)
    weights = np.maximum(np.where(frequency <= middle, up, down), 0)
    dtype = helper.tensor_dtype_to_np_dtype(op.attribute("output_datatype", TensorProto.FLOAT))
    return op.yields("Constant", value=numpy_helper.from_array(weights.astype(dtype)))
