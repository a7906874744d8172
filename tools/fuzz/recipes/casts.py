"""Casts."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import dtype_of, is_exact_type


def _castable(draft: Draft, position: int, goal: int) -> None:
    """Values that the goal type holds, because onnx does not define casts that overflow."""
    dtype = dtype_of(draft.type_of(position))
    array = draft.inputs[position].value  # type: ignore[union-attr]
    if goal == TensorProto.STRING or dtype.kind == "O":
        numbers = np.asarray(draft.rng.integers(0, 4, array.shape))
        words = np.asarray([str(number) for number in numbers.reshape(-1)], dtype=object).reshape(array.shape)
        draft.give(position, words if dtype.kind == "O" else numbers.astype(dtype).reshape(array.shape))
    elif is_exact_type(dtype_of(goal)) and goal != TensorProto.BOOL:
        top = 2 if dtype_of(goal).itemsize == 1 and "int2" in dtype_of(goal).name else 7
        numbers = np.asarray(draft.rng.integers(0, top, array.shape)) % (2 if dtype.kind == "b" else 8)
        draft.give(position, numbers.astype(dtype).reshape(array.shape))


@recipe("Cast")
def cast(draft: Draft) -> None:
    draft.data(0)
    goal = draft.draw_element_type("T2")
    draft.output_type("T2", goal)
    _castable(draft, 0, goal)
    draft.attributes["to"] = TensorProto.DataType.Name(goal) if draft.schema.since_version < 6 else goal
    if "saturate" in draft.schema.attributes and draft.flip(0.3):
        draft.attributes["saturate"] = 1 if not dtype_of(goal).name.startswith("float8") else draft.integer(0, 1)
    if "round_mode" in draft.schema.attributes and draft.flip(0.2):
        draft.attributes["round_mode"] = "up"
