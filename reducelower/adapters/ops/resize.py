"""Resize and Upsample across their versions; not text, since the form depends on the numbers of every axis.

If a version lacks something, an equal form is tried first (nearest neighbours under another name, a size as a scale),
then Gather and MatMul (`interpolation`); if neither will do, the node is refused.

Sources: the pages of Resize (10, 11, 13, 18), Upsample (7, 9). How Resize of opset 10 rounds is known from its test
data and from runtimes: down if it enlarges, up if it reduces.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.interpolation import Axis, interpolate
from reducelower.adapters.rules import first, rule, rules_for
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, set_attribute
from reducelower.model.numbers import Array
from reducelower.scope.scope import Scope
from reducelower.types.sizes import over


def _present(op: Writer, index: int) -> str:
    """The name of an input; empty if it is absent, or a constant without elements, which means the same."""
    value = op.constant_input(index)
    return "" if value is not None and value.size == 0 else op.input(index)


def _scales_and_sizes(op: Writer) -> tuple[str, str]:
    """The names of scales and sizes. One is empty, unless the node is invalid: given both, one has no elements."""
    scales, sizes = _present(op, 2), _present(op, 3)
    has_known_sizes = bool(sizes) and op.constant_input(3) is not None
    return "" if has_known_sizes and op.constant_input(2) is None else scales, sizes


def _set_inputs(op: Writer, *names: str) -> None:
    """Replace the inputs of the node, without empty names at the end."""
    last = max(place for place, name in enumerate(names) if name)
    op.node.input[:] = names[: last + 1]


def _empty(scope: Scope) -> str:
    return scope.add_constant(np.zeros(0, np.float32), "no_roi")


def _changing(op: Writer, scales: str, sizes: str) -> list[tuple[int, Axis | None]]:
    """The axes that may change, in order; each with its sizes before and after, if these are known.

    Raises:
        RefusedError: the rank is not known, or a scale has no meaning.
    """
    before = op.scope.known(op.input(0)).shape or (None,) * op.rank(0)
    stated = op.attribute("axes", None)
    places = range(len(before)) if stated is None else [axis % len(before) for axis in stated]
    factors = op.scope.constant(scales) if scales else None
    goals = op.scope.known(sizes).elements or op.scope.known(op.node.output[0]).shape if sizes else None
    if goals is None or len(goals) != len(places):
        goals = (None,) * len(places)
    axes: list[tuple[int, Axis | None]] = []
    for number, place in sorted(enumerate(places), key=lambda pair: pair[1]):
        size, after = before[place], goals[number]
        if factors is None:
            if after is not None and after == size:
                continue
            scale = after / size if isinstance(after, int) and isinstance(size, int) and size else 1.0
        else:
            scale = float(factors.reshape(-1)[number])
            if not 0 < scale < math.inf:
                raise RefusedError(f"its scale {scale} is not above zero, or not finite", "correct the model")
            if scale == 1.0:
                continue
            after = _scaled(size, scale) if isinstance(size, int) else None
        axis = Axis(place, size, after, scale) if isinstance(size, int) and isinstance(after, int) else None
        axes.append((place, axis))
    return axes


def _axes(op: Writer, scales: str, sizes: str) -> list[Axis] | None:
    """The axes that change, in order; None unless the sizes before and after are known for all that may change."""
    if op.scope.rank(op.input(0)) is None:
        return None
    axes = [axis for _, axis in _changing(op, scales, sizes)]
    return None if None in axes else [axis for axis in axes if axis is not None]


def _scaled(size: int, scale: float) -> int | None:
    """The size after scaling; None if single and double precision give different sizes."""
    with np.errstate(over="ignore"):
        single = np.float32(size) * np.float32(scale)
    after = math.floor(single) if np.isfinite(single) else math.floor(size * scale)
    return after if after == math.floor(size * float(np.float32(scale))) else None


def _written_out(op: Writer, reason: str) -> list[NodeProto]:
    """The node as Gather and MatMul, or with sizes computed at run time; refused with the reason if neither works."""
    scales, sizes = _scales_and_sizes(op)
    axes = _axes(op, scales, sizes)
    if axes is None:
        can_compute = op.scope.rank(op.input(0)) is not None and op.scope.target_opset >= 9
        nodes = _at_run_time(op, scales, sizes) if can_compute else None
        if nodes is None:
            raise RefusedError(reason, "give its data and result fixed sizes, so that it can be written out")
        return nodes
    return interpolate(op, axes)


def _at_run_time(op: Writer, scales: str, sizes: str) -> list[NodeProto] | None:
    """The node with sizes that are computed at run time, by the rules in text; None if none of them is for it."""
    node = NodeProto()
    node.CopyFrom(op.node)
    node.input[:] = [op.input(0), "", scales, sizes]
    set_attribute(node, "axes", [place for place, _ in _changing(op, scales, sizes)])
    written = first(rules_for("Resize", "called"), node, op.scope, 18)
    return None if written is None else written.nodes


@rule("Resize", "below 18")
def _lower_axes(op: Writer) -> list[NodeProto] | None:
    """State the axes that keep their size: with scale 1, or their own size; antialias becomes MatMul."""
    antialias = bool(op.attribute("antialias", 0)) and op.attribute("mode", "nearest") != "nearest"
    if not antialias:
        op.drop("antialias")
    if op.attribute("axes") is not None:
        _state_all_axes(op)
    op.drop("keep_aspect_ratio_policy")
    if antialias:
        return _written_out(op, "it uses antialias=1, which came with opset 18")
    return [*op.nodes, op.node] if op.nodes else None


def _state_all_axes(op: Writer) -> None:
    """Replace scales, sizes and roi of the stated axes by those of all axes."""
    rank = op.rank(0)
    places = [axis % rank for axis in op.attribute("axes")]
    roi, scales, sizes = (_present(op, index) for index in (1, 2, 3))
    if scales:
        base = op.constant(np.ones(rank), TensorProto.FLOAT, "unit_scales")
        scales = _for_all_axes(op, scales, base, places, TensorProto.FLOAT)
    if sizes:
        sizes = _for_all_axes(op, sizes, "", places, TensorProto.INT64)
    if roi:
        whole = op.constant([0] * rank + [1] * rank, op.scope.needed_element_type(roi), "whole")
        both = op.integers([*places, *(place + rank for place in places)], "roi_places")
        roi = op.add("ScatterElements", whole, both, roi, tail="roi", axis=0)
    op.drop("axes")
    _set_inputs(op, op.input(0), roi, scales, sizes)


def _for_all_axes(op: Writer, name: str, base: str, places: list[int], element_type: int) -> str:
    """Values of some axes, completed for all axes by `base`, or by the sizes of the data."""
    scope = op.scope
    value = scope.constant(name)
    shape = scope.shape(op.input(0)) if not base else ()
    if value is not None and shape is not None and None not in shape:
        whole = np.ones(scope.needed_rank(op.input(0))) if base else np.array(shape)
        whole[places] = value.reshape(-1)
        return op.constant(whole, element_type, "scales" if base else "sizes")
    indices = op.integers(places, "resized_axes")
    return op.add("ScatterElements", base or op.add("Shape", op.input(0)), indices, name, axis=0)


@rule("Resize", "below 13")
def _lower_optional(op: Writer) -> None:
    """Before opset 13 roi and scales were required; absent ones become constants without elements."""
    roi, scales = (op.input(index) or _empty(op.scope) for index in (1, 2))
    _set_inputs(op, op.input(0), roi, scales, op.input(3))


@rule("Resize", "from 13")
def _raise_exclusive(op: Writer) -> None:
    """Drop scales without elements beside sizes."""
    if op.input(3) and op.input(2):
        if all(_scales_and_sizes(op)):
            raise RefusedError("it has both scales and sizes, which is not valid")
        op.node.input[2] = ""


@rule("Resize", "below 11")
def _lower_coordinates(op: Writer) -> list[NodeProto] | None:
    """Before opset 11 there are only scales and asymmetric coordinates."""
    scales, sizes = _scales_and_sizes(op)
    if sizes and (multiples := _multiples(op, sizes)) is not None:
        scales, sizes = op.scope.add_constant(multiples, "scales"), ""
        _set_inputs(op, op.input(0), op.input(1), scales)
    axes = _axes(op, scales, sizes)
    if not _fits_asymmetric(op, scales, axes):
        transformation = op.attribute("coordinate_transformation_mode", "half_pixel")
        what = f"mode={op.attribute('mode', 'nearest')} with {transformation}{' and sizes' if sizes else ''}"
        return _written_out(op, f"it uses {what}, which came with opset 11")
    if not scales:
        assert axes is not None
        factors = np.ones(op.rank(0), np.float32)
        for axis in axes:
            factors[axis.place] = axis.scale
        scales = op.scope.add_constant(factors, "scales")
    kept = filter(None, (attribute_of(op.node, "mode"),))
    return op.yields("Resize", op.input(0), scales, copied=kept)


def _multiples(op: Writer, sizes: str) -> Array | None:
    """The scales, if every goal size is a known multiple of the data's size, which may be unknown."""
    before, after = op.scope.known(op.input(0)).shape, op.scope.known(sizes).elements
    if before is None or after is None or len(before) != len(after) or op.scope.constant(sizes) is not None:
        return None
    factors = [None if goal is None else over(goal, size) for goal, size in zip(after, before, strict=True)]
    return np.array(factors, np.float32) if all(isinstance(factor, int) and factor > 0 for factor in factors) else None


def _fits_asymmetric(op: Writer, scales: str, axes: list[Axis] | None) -> bool:
    """Whether scales and asymmetric coordinates give the same result."""
    mode = op.attribute("mode", "nearest")
    transformation = op.attribute("coordinate_transformation_mode", "half_pixel")
    if axes is not None:
        if not axes:
            return str(mode) != "cubic"
        if not scales and any(_scaled(axis.before, axis.scale) != axis.after for axis in axes):
            return False
    elif not scales:
        return False
    if mode == "linear":
        return str(transformation) == "asymmetric"
    if mode != "nearest":
        return False
    rounding = op.attribute("nearest_mode", "round_prefer_floor")
    value = op.scope.constant(scales) if axes is None else None
    if axes is None and value is None:
        return False
    factors = [axis.scale for axis in axes or ()] if value is None else [float(each) for each in value.reshape(-1)]
    if transformation == "asymmetric":
        needed = "floor" if all(factor >= 1 for factor in factors) else "ceil"
        return str(rounding) == needed and (needed == "floor" or all(factor <= 1 for factor in factors))
    # If each element is repeated a whole number of times, its copies are nearest to it under any rounding.
    return bool(
        transformation in ("half_pixel", "pytorch_half_pixel")
        and rounding in ("round_prefer_floor", "round_prefer_ceil")
        and all(factor >= 1 and factor == int(factor) for factor in factors)
    )


@rule("Resize", "absent as of 10", opset=9)
def _resize_by_upsample(op: Writer) -> list[NodeProto]:
    """Upsample, if nothing is reduced."""
    return _as_upsample(op, op.input(1))


def _as_upsample(op: Writer, scales: str) -> list[NodeProto]:
    factors: Any = op.scope.constant(scales)
    if factors is None or not (factors >= 1).all():
        resize = NodeProto(op_type="Resize", name=op.node.name, output=op.node.output)
        resize.input.extend([op.input(0), "", scales])
        mode = op.attribute("mode", "nearest")
        resize.attribute.extend(op.node.attribute)
        set_attribute(resize, "coordinate_transformation_mode", "asymmetric")
        if mode == "nearest" and factors is None:
            # Enlarging rounds down, reducing rounds up.
            raise RefusedError(
                "its scales are computed at run time, so nothing tells whether it enlarges or reduces",
                f"make {scales!r} a constant, or stay at opset 10 or above",
            )
        if mode == "nearest" and not (factors <= 1).all():
            raise RefusedError("it enlarges one axis and reduces another, which opset 9 cannot")
        set_attribute(resize, "nearest_mode", "ceil")
        return _written_out(Writer(resize, op.scope), "it reduces, or may, which came with opset 10")
    return op.yields("Upsample", op.input(0), scales, copied=op.node.attribute)
