"""Operators that draw random numbers. Their shapes and types can be compared, but not their numbers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe


def _dtype(draft: Draft, variable: str, default: int, among: tuple[str, ...] | None = None) -> None:
    goal = default
    if draft.flip():
        goal = draft.draw_element_type(variable, among)
        is_text = draft.schema.attributes["dtype"].type.name == "STRING"
        draft.attributes["dtype"] = TensorProto.DataType.Name(goal) if is_text else goal
    draft.output_type(variable, goal)


@recipe("RandomNormal", "RandomUniform")
def drawn(draft: Draft) -> None:
    draft.attributes["shape"] = list(draft.shape(1, 3))
    _dtype(draft, "T", TensorProto.FLOAT)


@recipe("RandomNormalLike", "RandomUniformLike")
def drawn_like(draft: Draft) -> None:
    draft.data(0, 0, 4, ("float", "double", "float16"))
    _dtype(draft, "T2", draft.type_of(0))


@recipe("Bernoulli")
def bernoulli(draft: Draft) -> None:
    """Probabilities of 0 and 1 only, whose results are certain."""
    data = draft.data(0, 0, 4)
    draft.give(0, np.asarray(draft.rng.integers(0, 2, data.shape)).astype(data.dtype).reshape(data.shape))
    _dtype(draft, "T2", draft.type_of(0), ("float", "double", "int64", "int32", "bool", "uint8"))


@recipe("Multinomial")
def multinomial(draft: Draft) -> None:
    draft.tensor(0, (draft.integer(1, 3), draft.integer(1, 4)), edge=False)
    _dtype(draft, "T2", TensorProto.INT32)
    if draft.flip():
        draft.attributes["sample_size"] = draft.integer(1, 4)


@recipe("Dropout")
def dropout(draft: Draft) -> None:
    """Mode and ratio with a certain result: inference, or training that drops nothing."""
    draft.data(0)
    since = draft.schema.since_version
    if since < 7:
        draft.attributes["is_test"] = 1
    if since < 12:
        if draft.flip():
            draft.attributes["ratio"] = 0.25
    elif draft.flip():
        trains = draft.flip(0.3)
        dtype = draft.tensor(1, (), edge=False).dtype
        draft.give(1, np.asarray(0.0 if trains else 0.5).astype(dtype), parameter=True)
        if trains or draft.flip():
            draft.give(2, np.asarray(trains), parameter=True)
    if since >= 7:
        draft.outputs = draft.integer(1, 2)
