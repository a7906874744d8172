"""Pad at its boundaries: axes, the wrap mode, pads and value as attributes, and what it pads by then.

Where the older Pad lacks an element type or takes pads only as an attribute, each axis is gathered instead: its places
are numbered from before the first to behind the last, and the mode says which element stands for one outside.

Sources: the pages of Pad (1, 2, 11, 13, 18, 19).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.numbers import FIRST_FLOATS


def _axes(op: Writer, rank: int) -> list[int]:
    """The axes that are padded, counted from the front."""
    if not op.input(3):
        return list(range(rank))
    axes = op.constant_input(3)
    if axes is None:
        raise RefusedError(
            "it uses mode=wrap on axes that are computed at run time", "opset 19 is the oldest that has the mode"
        )
    return [from_the_front(axis, rank) for axis in axes.reshape(-1).tolist()]


@lowers("Pad", 19)
def _lower_wrap(op: Writer) -> Outcome:
    """Wrapping takes elements from the other end."""
    return _gathered(op) if op.attribute("mode", "constant") == "wrap" else None


# These float32, or at least double, holds exactly, so that they are cast around the older Pad.
_CAST = (
    TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32,
    TensorProto.UINT32,
)  # fmt: skip


def _gathered(op: Writer) -> list[NodeProto]:
    """The node as one Gather per axis; places and pads may be known at run time only.

    What mode=wrap crops at one end is gone before the other end is padded, as onnxruntime has it.
    """
    data = op.input(0)
    axes = _axes(op, op.scope.needed_rank(data))
    sizes = op.scope.shape(data) or (None,) * op.scope.needed_rank(data)
    known = op.constant_input(1)
    counts = None if known is None else known.reshape(-1).tolist()
    mode = op.attribute("mode", "constant")
    for name in filter(None, op.node.input[1:]):
        op.scope.release(name)
    for number, axis in enumerate(axes):
        positions = (number, number + len(axes))
        before, after = (None, None) if counts is None else (int(counts[position]) for position in positions)
        size = sizes[axis]
        if before == after == 0:
            continue
        shape = op.add("Shape", data, tail="sizes") if mode == "constant" or None in (before, after, size) else ""
        if before is None or after is None:
            pads = [op.add("Gather", op.input(1), op.number(at), tail="pad", axis=0) for at in positions]
            place = _computed_places(op, shape, axis, mode, *pads)
        elif size is None:
            place = _computed_places(op, shape, axis, mode, op.number(before), op.number(after))
        else:
            first, behind = (max(-before, 0), max(-after, 0)) if mode == "wrap" else (0, 0)
            places = op.numbered(-before - first, size + after - first)
            place = op.integers(_PLACES[mode](places, size - first - behind) + first, "places")
        if mode == "constant":
            data = _with_value(op, data, shape, axis)
        data = op.add("Gather", data, place, tail=f"padded_{axis}", axis=axis)
    return op.yields_value(data)


def _reflected(places: np.ndarray, size: int) -> np.ndarray:
    found: np.ndarray = size - 1 - np.abs(np.abs(places) % max(2 * size - 2, 1) - (size - 1))
    return found


_PLACES: Mapping[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "constant": lambda places, size: np.where((places < 0) | (places > size), size, places),
    "edge": lambda places, size: np.clip(places, 0, size - 1),
    "reflect": _reflected,
    "wrap": lambda places, size: places % size,
}
"""What stands for places before the first element and behind the last; for a value, the place behind the last."""


def _computed_places(op: Writer, shape: str, axis: int, mode: str, before: str, after: str) -> str:
    """The same at run time, along an axis of data whose sizes are computed."""
    size = op.add("Gather", shape, op.number(axis), tail="size", axis=0)
    length = op.add("Add", op.add("Add", size, before, tail="longer"), after, tail="length")
    place = op.add("Sub", ramp(op, length), before, tail="place")
    if mode != "wrap":
        return _COMPUTED_PLACES[mode](op, place, size)
    zero = op.number(0)
    first, behind = (
        op.add("Where", op.add("Less", pad, zero), op.add("Sub", zero, pad), zero, tail="cropped")
        for pad in (before, after)
    )
    rest = op.add("Sub", op.add("Sub", size, first, tail="uncropped"), behind, tail="rest")
    inner = _wrapped(op, op.add("Sub", place, first, tail="from_first"), rest)
    return op.add("Add", inner, first, tail="place_in_all")


def _with_value(op: Writer, data: str, shape: str, axis: int) -> str:
    """The data with one more place along an axis, which holds the value to pad with."""
    scope = op.scope
    element_type = scope.needed_element_type(op.input(0))
    value = op.input(2)
    if not value:
        is_text = element_type == TensorProto.STRING
        value = op.constant([""] if is_text else [0], element_type, "empty" if is_text else "zero")
    parts = []
    if axis:
        parts.append(op.add("Slice", shape, op.number(0), op.number(axis), tail="sizes_before"))
    parts.append(op.number(1))
    parts.append(op.add("Slice", shape, op.number(axis + 1), op.number(TO_THE_END), tail="sizes_behind"))
    slab = op.add("Expand", value, op.add("Concat", *parts, tail="slab_shape", axis=0), tail="slab")
    return op.add("Concat", data, slab, tail="with_value", axis=axis)


def _or_last(op: Writer, place: str, size: str) -> str:
    """A place outside stands for the one behind the last."""
    below = op.add("Less", place, op.number(0), tail="is_before")
    behind = op.add("Less", op.add("Sub", size, op.number(1), tail="last"), place, tail="is_behind")
    return op.add("Where", op.add("Or", below, behind, tail="is_outside"), size, place, tail="place_or_value")


def _clamped(op: Writer, place: str, size: str) -> str:
    last = op.add("Sub", size, op.number(1), tail="last")
    below = op.add("Less", place, op.number(0), tail="is_before")
    from_first = op.add("Where", below, op.number(0), place, tail="from_first")
    behind = op.add("Less", last, from_first, tail="is_behind")
    return op.add("Where", behind, last, from_first, tail="to_last")


def _folded(op: Writer, place: str, size: str) -> str:
    """Reflected at the first and the last element, which are not repeated, as often as it takes."""
    last = op.add("Sub", size, op.number(1), tail="last")
    far = op.add("Abs", place, tail="far")
    twice = op.add("Add", last, last, tail="twice")
    is_single = op.add("Less", twice, op.number(1), tail="is_single")
    period = op.add("Where", is_single, op.number(1), twice, tail="period")
    times = op.add("Mul", op.add("Div", far, period, tail="times"), period, tail="whole")
    rest = op.add("Abs", op.add("Sub", last, op.add("Sub", far, times, tail="rest"), tail="off"), tail="back")
    return op.add("Sub", last, rest, tail="reflected")


def _wrapped(op: Writer, place: str, size: str) -> str:
    rest = op.add("Sub", place, op.add("Mul", op.add("Div", place, size, tail="times"), size), tail="rest")
    below = op.add("Less", rest, op.number(0), tail="is_before")
    return op.add("Where", below, op.add("Add", rest, size, tail="from_the_end"), rest, tail="wrapped")


_COMPUTED_PLACES: Mapping[str, Callable[[Writer, str, str], str]] = {
    "constant": _or_last, "edge": _clamped, "reflect": _folded,
}  # fmt: skip


@lowers("Pad", 13)
def _lower_types(op: Writer) -> Outcome:
    """Pad takes only numbers; strings and complex numbers are gathered."""
    is_odd = op.scope.element_type(op.input(0)) in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128)
    return _gathered(op) if is_odd else None


@lowers("Pad", 11)
def _lower_inputs(op: Writer) -> Outcome:
    """Pads are an attribute, and so is the value, of type float, which must hold it exactly."""
    element_type = op.scope.element_type(op.input(0))
    is_odd = element_type is not None and element_type not in FIRST_FLOATS + _CAST
    is_dynamic = op.constant_input(1) is None
    name = op.input(2)
    value = op.scope.constant(name) if name else None
    is_dynamic = is_dynamic or bool(name and value is None)
    if is_odd or is_dynamic:
        return _gathered(op)
    if value is None:
        return None
    if op.attribute("mode", "constant") != "constant":
        op.scope.release(name)
        del op.node.input[2:]
        return None
    number = float(value.reshape(-1)[0])
    return None if np.isnan(number) or float(np.float32(number)) == number else _gathered(op)
