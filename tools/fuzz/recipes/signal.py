"""Signals: Fourier transforms, windows, mel weights; and losses."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe


@recipe("DFT")
def dft(draft: Draft) -> None:
    parts = draft.integer(1, 2)
    draft.tensor(
        0, (draft.integer(1, 2), *(draft.integer(1, 5) for _ in range(draft.integer(1, 2))), parts), edge=False
    )
    rank = np.ndim(draft.inputs[0].value)  # type: ignore[union-attr]
    axis = draft.integer(1, rank - 2)
    if "axis" in draft.schema.attributes:
        if axis != 1 or draft.flip():
            draft.attributes["axis"] = axis
    elif axis != rank - 2 or draft.flip():
        draft.give(2, np.asarray(axis - rank if draft.flip() else axis, np.int64), parameter=True)
    if draft.flip():
        draft.whole(1, np.asarray(draft.integer(1, 6)))
    inverse = draft.maybe("inverse", (0, 1), 0)
    if parts == 1 and not inverse and draft.flip():
        draft.attributes["onesided"] = 1


@recipe("STFT")
def stft(draft: Draft) -> None:
    length, frame = draft.integer(6, 10), draft.integer(2, 5)
    draft.tensor(0, (draft.integer(1, 2), length, 1), edge=False)
    draft.whole(1, np.asarray(draft.integer(1, 3)))
    if draft.flip(0.7):
        draft.tensor(2, (frame,), edge=False)
        if draft.flip():
            draft.whole(3, np.asarray(frame))
    else:
        draft.whole(3, np.asarray(frame))
    if draft.flip():
        draft.attributes["onesided"] = draft.integer(0, 1)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window(draft: Draft) -> None:
    draft.whole(0, np.asarray(draft.integer(3, 9)))
    goal = TensorProto.FLOAT
    if draft.flip():
        goal = draft.draw_element_type("T2", ("float", "double", "float16", "bfloat16"))
        draft.attributes["output_datatype"] = goal
    draft.output_type("T2", goal)
    if draft.flip():
        draft.attributes["periodic"] = draft.integer(0, 1)


@recipe("MelWeightMatrix")
def mel_weights(draft: Draft) -> None:
    for position, number in enumerate((draft.integer(2, 5), 2 * draft.integer(4, 8), 8192)):
        draft.whole(position, np.asarray(number))
    low = draft.tensor(3, (), edge=False)
    draft.give(3, np.asarray(0).astype(low.dtype), parameter=True)
    draft.give(4, np.asarray(4096).astype(low.dtype), parameter=True)
    goal = TensorProto.FLOAT
    if draft.flip(0.3):
        goal = draft.attributes["output_datatype"] = draft.draw_element_type("T3", ("float", "double"))
    draft.output_type("T3", goal)


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(draft: Draft) -> None:
    classes = draft.integer(1, 4)
    rest = tuple(draft.integer(1, 3) for _ in range(draft.integer(0, 2)))
    batch = draft.integer(1, 3)
    draft.tensor(0, (batch, classes, *rest), edge=False)
    labels = np.asarray(draft.rng.integers(0, classes, (batch, *rest)))
    if draft.flip(0.4):
        draft.attributes["ignore_index"] = draft.pick((0, 1, -1))
        if draft.attributes["ignore_index"] == -1:
            labels = np.where(draft.rng.random(labels.shape) < 0.3, -1, labels)
    draft.whole(1, labels, parameter=False)
    if draft.flip():
        weights = draft.tensor(2, (classes,), edge=False)
        draft.give(2, (np.abs(weights.astype(np.float32)) + 0.5).astype(weights.dtype))
    draft.maybe("reduction", ("none", "mean", "sum"), "mean")
    if draft.schema.name == "SoftmaxCrossEntropyLoss":
        draft.outputs = draft.integer(1, 2)
