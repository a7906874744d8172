"""Casts and quantization."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import draw_values, dtype_of, is_exact_type


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
    _rounding(draft, goal)


def _rounding(draft: Draft, goal: int) -> None:
    if "saturate" in draft.schema.attributes and draft.flip(0.3):
        draft.attributes["saturate"] = 1 if not dtype_of(goal).name.startswith("float8") else draft.integer(0, 1)
    if "round_mode" in draft.schema.attributes and draft.flip(0.2):
        draft.attributes["round_mode"] = "up"


def _grouping(draft: Draft, shape: tuple[int, ...]) -> tuple[int, ...]:
    """State axis and block size; returns the shape of the scale: a single one, one per channel, or one per block."""
    since = draft.schema.since_version
    if not shape or since < 13 or draft.flip(0.4):
        return ()
    axis = draft.axis(len(shape))
    if since >= 21 and draft.flip(0.4) and shape[axis]:
        block = draft.integer(1, shape[axis])
        draft.attributes.update(axis=axis, block_size=block)
        blocks = list(shape)
        blocks[axis] = -(-shape[axis] // block)
        return tuple(blocks)
    if axis % len(shape) != 1 or draft.flip():
        draft.attributes["axis"] = axis
    return (shape[axis],)


def _scale(draft: Draft, position: int, shape: tuple[int, ...], among: tuple[str, ...] | None = None) -> None:
    dtype = dtype_of(draft.type_of(position, among))
    draft.give(
        position, np.asarray(2.0 ** draft.rng.integers(-3, 2, shape)).astype(dtype).reshape(shape), parameter=True
    )


_SCALES = ("float", "float16", "bfloat16", "int32")


@recipe("QuantizeLinear")
def quantize(draft: Draft) -> None:
    data = draft.data(0, 0, 4)
    shape = _grouping(draft, data.shape)
    _scale(draft, 1, shape, _SCALES)
    output = next(formal.type_str for formal in draft.schema.outputs)
    if draft.flip(0.7):
        zero_type = draft.type_of(2)
        zero = draw_values(draft.rng, zero_type, shape, edge=False)
        if not is_exact_type(zero.dtype):
            zero = np.zeros_like(zero)
        draft.give(2, zero, parameter=True)
        if "output_dtype" in draft.schema.attributes and draft.flip(0.3):
            draft.attributes["output_dtype"] = zero_type
    elif "output_dtype" in draft.schema.attributes and draft.flip(0.6):
        goal = draft.draw_element_type(output)
        draft.output_type(output, goal)
        draft.attributes["output_dtype"] = goal
    else:
        draft.types[output] = "tensor(uint8)"
    if "saturate" in draft.schema.attributes and draft.flip(0.2):
        draft.attributes["saturate"] = 1
    if "precision" in draft.schema.attributes and draft.flip(0.3):
        draft.attributes["precision"] = TensorProto.FLOAT


@recipe("DequantizeLinear")
def dequantize(draft: Draft) -> None:
    data = draft.data(0, 0, 4)
    shape = _grouping(draft, data.shape)
    _scale(draft, 1, shape)
    if draft.flip(0.7) and data.dtype != np.int32:
        zero = draw_values(draft.rng, draft.type_of(2), shape, edge=False)
        if not is_exact_type(zero.dtype):
            zero = np.zeros_like(zero)
        draft.give(2, zero, parameter=True)
    output = draft.schema.outputs[0].type_str
    if output.startswith("tensor("):
        return
    if "output_dtype" in draft.schema.attributes:
        if draft.flip(0.3):
            goal = draft.draw_element_type(output)
            draft.output_type(output, goal)
            draft.attributes["output_dtype"] = goal
        else:
            draft.types[output] = draft.types["T2"]
