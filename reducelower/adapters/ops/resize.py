"""Resize and Upsample across their versions, in both directions.

What a version lacks is first said otherwise where it is the same (nearest neighbours under another name, a size as a
scale), then written out for known sizes (`interpolation`), and refused where neither will do.

Sources: https://onnx.ai/onnx/operators/onnx__Resize.html (10, 11, 13, 18, 19),
https://onnx.ai/onnx/operators/onnx__Upsample.html (1, 7, 9); which way Resize of 10 rounds is what its test data and
runtimes do: down where it enlarges, up where it reduces.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.interpolation import Axis, interpolate
from reducelower.adapters.ops.run_time_interpolation import can_interpolate_at_run_time, interpolate_at_run_time
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope


def _given(node: NodeProto, index: int, scope: Scope) -> str:
    """The name of an input, empty where it is absent or a constant without elements, which says the same."""
    name = node.input[index] if len(node.input) > index else ""
    if not name:
        return ""
    value = scope.constant(name)
    return "" if value is not None and value.size == 0 else name


def _set_inputs(node: NodeProto, names: list[str]) -> None:
    while names and not names[-1]:
        names.pop()
    del node.input[:]
    node.input.extend(names)


def _empty(scope: Scope) -> str:
    return scope.add_constant(np.zeros(0, np.float32), "no_roi")


def _axes(node: NodeProto, scope: Scope, scales: str, sizes: str) -> list[Axis] | None:
    """The axes that change, in order; None where sizes before and after are not known for all that may."""
    before = scope.type(node.input[0])
    if before is None or not before.tensor_type.HasField("shape"):
        return None
    dims = before.tensor_type.shape.dim
    rank = len(dims)
    named = value_of(node, "axes", None)
    places = range(rank) if named is None else [axis % rank for axis in named]
    factors = scope.constant(scales) if scales else None
    wanted = _known_sizes(node, scope, sizes, len(places)) if sizes and _plain(node) else None
    found = []
    for number, place in sorted(enumerate(places), key=lambda pair: pair[1]):
        size = dims[place].dim_value if dims[place].WhichOneof("value") == "dim_value" else None
        if factors is not None:
            scale = float(factors.reshape(-1)[number])
            if scale == 1.0:
                continue
            after = None if size is None else _scaled(size, scale)
        else:
            if wanted is None:
                return None
            asked = wanted[number]
            after = asked if isinstance(asked, int) else None
            if asked is not None and asked == (dims[place].dim_param if size is None else size):
                continue
            scale = after / size if after is not None and size else 1.0
        if size is None or after is None:
            return None
        found.append(Axis(place, size, after, scale))
    return found


def _changing(node: NodeProto, scope: Scope, scales: str, sizes: str, rank: int) -> list[int]:
    """The axes that may change."""
    factors = scope.constant(scales) if scales else None
    if factors is not None:
        return [place for place, factor in enumerate(factors.reshape(-1).tolist()) if factor != 1.0]
    before, wanted = scope.type(node.input[0]), _known_sizes(node, scope, sizes, rank) if sizes else None
    if wanted is None or before is None or len(before.tensor_type.shape.dim) != rank:
        return list(range(rank))
    given = [dim.dim_value or dim.dim_param or None for dim in before.tensor_type.shape.dim]
    return [place for place in range(rank) if wanted[place] is None or wanted[place] != given[place]]


def _scaled(size: int, scale: float) -> int | None:
    """The size after scaling; None where it depends on whether single or double precision is used."""
    after = math.floor(np.float32(size) * np.float32(scale))
    return after if after == math.floor(size * float(np.float32(scale))) else None


def _known_sizes(node: NodeProto, scope: Scope, sizes: str, rank: int) -> list[int | str | None] | None:
    """The sizes asked for: numbers, names that stand for unknown ones, or None where nothing is known."""
    value = scope.constant(sizes)
    if value is not None:
        return [int(size) for size in value.reshape(-1)]
    result = scope.type(node.output[0])
    if result is None or len(result.tensor_type.shape.dim) != rank:
        return None
    return [
        dim.dim_value if dim.WhichOneof("value") == "dim_value" else dim.dim_param or None
        for dim in result.tensor_type.shape.dim
    ]


def _written_out(node: NodeProto, scope: Scope, reason: str) -> list[NodeProto]:
    """The node as Gather and MatMul, or with sizes taken at run time; refused with the reason where neither does."""
    scales, sizes = _given(node, 2, scope), _given(node, 3, scope)
    axes = _axes(node, scope, scales, sizes)
    if axes is None:
        rank = scope.rank(node.input[0])
        if rank is None or scope.target_opset < 9 or not _plain(node) or not can_interpolate_at_run_time(node):
            raise RefusedError(reason, "give its data and result fixed sizes, so that it can be written out")
        return interpolate_at_run_time(node, scope, _changing(node, scope, scales, sizes, rank), scales, sizes)
    scope.release(*node.input[1:])
    return interpolate(node, scope, axes)


@lowers("Resize", 19)
def _lower_symmetric(node: NodeProto, scope: Scope) -> Outcome:
    if value_of(node, "coordinate_transformation_mode", "half_pixel") != "half_pixel_symmetric":
        return None
    if _plain(node) and not _given(node, 2, scope) and value_of(node, "mode", "nearest") != "nearest":
        # Sizes make scales that fit, where the symmetric correction vanishes but for rounding.
        set_attribute(node, "coordinate_transformation_mode", "half_pixel")
        return None
    # Sizes known at run time only are worked out for all axes.
    known = _axes(node, scope, _given(node, 2, scope), _given(node, 3, scope)) is not None
    added = [] if known or value_of(node, "axes") is None or not _plain(node) else _of_all_axes(node, scope)
    return [*added, *_written_out(node, scope, "it uses half_pixel_symmetric, and opset 19 is the oldest that has it")]


def _plain(node: NodeProto) -> bool:
    """Whether sizes are meant as they are."""
    return bool(value_of(node, "keep_aspect_ratio_policy", "stretch") == "stretch")


@lowers("Resize", 18)
def _lower_axes(node: NodeProto, scope: Scope) -> Outcome:
    """Axes that are not named keep their size: scale 1, or the size they have; antialias and the policy go."""
    antialias = bool(value_of(node, "antialias", 0)) and value_of(node, "mode", "nearest") != "nearest"
    if not antialias:
        drop_attribute(node, "antialias")
    added: list[NodeProto] = []
    if not _plain(node):
        found = _with_policy(node, scope, _given(node, 3, scope))
        if isinstance(found, list):
            return interpolate(node, scope, found)
        _set_inputs(node, [node.input[0], _given(node, 1, scope), *found])
        drop_attribute(node, "axes")
    elif value_of(node, "axes") is not None:
        added = _of_all_axes(node, scope)
    drop_attribute(node, "keep_aspect_ratio_policy")
    if antialias:
        return [*added, *_written_out(node, scope, "it uses antialias=1, and opset 18 is the oldest that has it")]
    return [*added, node] if added else None


def _of_all_axes(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Let a node that names axes state scales, sizes and roi of all; returns the nodes that compute these."""
    rank = scope.needed_rank(node.input[0])
    body = Writer(node, scope)
    places = [axis % rank for axis in value_of(node, "axes")]
    roi, scales, sizes = (_given(node, index, scope) for index in (1, 2, 3))
    if scales:
        base = body.constant(np.ones(rank), TensorProto.FLOAT, "unit_scales")
        scales = _spread(body, scales, base, places, TensorProto.FLOAT)
    if sizes:
        sizes = _spread(body, sizes, "", places, TensorProto.INT64)
    if roi:
        whole = body.constant([0] * rank + [1] * rank, scope.needed_element_type(roi), "whole")
        both = body.integers([*places, *(place + rank for place in places)], "roi_places")
        roi = body.add("ScatterElements", whole, both, roi, tail="roi", axis=0)
    drop_attribute(node, "axes")
    _set_inputs(node, [node.input[0], roi, scales, sizes])
    return body.nodes


def _spread(body: Writer, name: str, base: str, places: list[int], element_type: int) -> str:
    """Put values for some axes in their places among those for all: ones, or the sizes of the data."""
    scope = body.scope
    value = scope.constant(name)
    shape = scope.shape(body.input(0)) if not base else ()
    if value is not None and shape is not None and None not in shape:
        whole = np.ones(scope.needed_rank(body.input(0))) if base else np.array(shape)
        whole[places] = value.reshape(-1)
        scope.release(name)
        return body.constant(whole, element_type, "scales" if base else "sizes")
    indices = body.integers(places, "resized_axes")
    return body.add("ScatterElements", base or body.add("Shape", body.input(0)), indices, name, axis=0)


def _with_policy(node: NodeProto, scope: Scope, sizes: str) -> tuple[str, str] | list[Axis]:
    """What keep_aspect_ratio_policy comes down to.

    Returns:
        The names of scales and sizes, of which one is empty; or the axes where neither says it.
    """
    value = scope.constant(sizes) if sizes else None
    shape = scope.shape(node.input[0])
    if value is None or shape is None:
        raise RefusedError("it keeps the aspect ratio of sizes not known here, which came with opset 18")
    axes = [axis % len(shape) for axis in value_of(node, "axes") or range(len(shape))]
    before = [shape[axis] for axis in axes]
    if not all(before):
        size = "no" if 0 in before else "unknown"
        raise RefusedError(f"it keeps the aspect ratio of data of {size} size, which came with opset 18")
    pick = min if value_of(node, "keep_aspect_ratio_policy", "stretch") == "not_larger" else max
    scale = pick(int(wanted) / size for wanted, size in zip(value.reshape(-1), before, strict=True) if size)
    scaled = np.array([np.float32(scale) * np.float32(size) for size in before if size is not None])
    rounded = np.floor(scaled + 0.5)
    scope.release(sizes)
    if np.array_equal(scaled, rounded) and None not in shape:
        whole = np.array(shape)
        whole[axes] = rounded
        return "", scope.add_constant(whole.astype(np.int64), "sizes")
    scalable = all(_scaled(size or 0, scale) == after for size, after in zip(before, rounded, strict=True))
    if scalable and not value_of(node, "antialias", 0):
        factors = np.ones(len(shape), np.float32)
        factors[axes] = scale
        return scope.add_constant(factors, "scales"), ""
    return [
        Axis(place, size or 0, int(after), scale)
        for place, size, after in zip(axes, before, rounded, strict=True)
        if size != after
    ]


@lowers("Resize", 13)
def _lower_optional(node: NodeProto, scope: Scope) -> Outcome:
    """Roi and scales have to be there before 13, if without elements."""
    inputs = [*node.input, "", "", ""][:4]
    inputs[1] = inputs[1] or _empty(scope)
    inputs[2] = inputs[2] or _empty(scope)
    _set_inputs(node, inputs)
    return None


@raises("Resize", 13)
def _raise_exclusive(node: NodeProto, scope: Scope) -> Outcome:
    """Scales without elements beside sizes became an error, and a transformation for nearest lost its name."""
    if len(node.input) > 3 and node.input[3] and node.input[2]:
        if _given(node, 2, scope):
            raise RefusedError("it has both scales and sizes, which is not valid")
        scope.release(node.input[2])
        node.input[2] = ""
    if value_of(node, "coordinate_transformation_mode", "half_pixel") != "tf_half_pixel_for_nn":
        return None
    rounding = _SAME_AS_TF.get(value_of(node, "nearest_mode", "round_prefer_floor"))
    if value_of(node, "mode", "nearest") == "nearest" and rounding is not None:
        set_attribute(node, "coordinate_transformation_mode", "half_pixel")
        set_attribute(node, "nearest_mode", rounding)
        return None
    # No longer listed, and nothing else says the same; runtimes still take it.
    return None


# x is (i + 0.5) / scale; half_pixel's coordinate is x - 0.5.
_SAME_AS_TF = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}


@lowers("Resize", 11)
def _lower_coordinates(node: NodeProto, scope: Scope) -> Outcome:
    """Before 11 there are scales and asymmetric coordinates only."""
    scales, sizes = _given(node, 2, scope), _given(node, 3, scope)
    axes = _axes(node, scope, scales, sizes)
    if not _fits_asymmetric(node, scope, scales, axes):
        transformation = value_of(node, "coordinate_transformation_mode", "half_pixel")
        what = f"mode={value_of(node, 'mode', 'nearest')} with {transformation}{' and sizes' if sizes else ''}"
        return _written_out(node, scope, f"it uses {what}, and opset 11 is the oldest that has it")
    if not scales:
        assert axes is not None
        factors = np.ones(scope.needed_rank(node.input[0]), np.float32)
        for axis in axes:
            factors[axis.place] = axis.scale
        scales = scope.add_constant(factors, "scales")
    for name in node.input[1:]:
        if name and name != scales:
            scope.release(name)
    kept = filter(None, (attribute_of(node, "mode"),))
    return Writer(node, scope).yields("Resize", node.input[0], scales, copied=kept)


def _fits_asymmetric(node: NodeProto, scope: Scope, scales: str, axes: list[Axis] | None) -> bool:
    """Whether scales and asymmetric coordinates give the same: they are asked for, or no rounding can tell."""
    mode = value_of(node, "mode", "nearest")
    transformation = value_of(node, "coordinate_transformation_mode", "half_pixel")
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
    rounding = value_of(node, "nearest_mode", "round_prefer_floor")
    factors = _factors(scope, scales, axes)
    if factors is None:
        return False
    if transformation == "asymmetric":
        wanted = "floor" if all(factor >= 1 for factor in factors) else "ceil"
        return str(rounding) == wanted and (wanted == "floor" or all(factor <= 1 for factor in factors))
    # Where each element is repeated a whole number of times, its copies are nearest to it in every rounding.
    return bool(
        transformation in ("half_pixel", "pytorch_half_pixel")
        and rounding in ("round_prefer_floor", "round_prefer_ceil")
        and all(factor >= 1 and factor == int(factor) for factor in factors)
    )


def _factors(scope: Scope, scales: str, axes: list[Axis] | None) -> list[float] | None:
    if axes is not None:
        return [axis.scale for axis in axes]
    value = scope.constant(scales)
    return None if value is None else [float(factor) for factor in value.reshape(-1)]


@raises("Resize", 11)
def _raise_coordinates(node: NodeProto, scope: Scope) -> Outcome:
    """Say what was implied: asymmetric coordinates, rounded down where it enlarges and up where it reduces."""
    scales = node.input[1]
    value = scope.constant(scales)
    factors = None if value is None else value.astype(np.float64)
    if value_of(node, "mode", "nearest") != "nearest":
        return _with_coordinates(node, scope, "")
    if factors is not None and (factors >= 1).all():
        return _with_coordinates(node, scope, "floor")
    if factors is not None and (factors <= 1).all():
        return _with_coordinates(node, scope, "ceil")
    # One after the other, each where it has something to do.
    body = Writer(node, scope)
    one = body.constant([1.0], TensorProto.FLOAT, "one")
    enlarging, reducing = body.add("Max", scales, one), body.add("Min", scales, one)
    said: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    roi = _empty(scope)
    larger = body.add("Resize", node.input[0], roi, enlarging, tail="enlarged", nearest_mode="floor", **said)
    return body.yields("Resize", larger, roi, reducing, nearest_mode="ceil", **said)


def _with_coordinates(node: NodeProto, scope: Scope, rounding: str) -> Outcome:
    _set_inputs(node, [node.input[0], _empty(scope), node.input[1]])
    set_attribute(node, "coordinate_transformation_mode", "asymmetric")
    if rounding:
        set_attribute(node, "nearest_mode", rounding)
    return None


@expresses("Resize", opset=9, reads=10)
def _resize_by_upsample(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Upsample, where nothing is reduced; any older Resize is brought to that of opset 10 first."""
    return _as_upsample(node, scope, node.input[1])


def _as_upsample(node: NodeProto, scope: Scope, scales: str) -> list[NodeProto]:
    factors: Any = scope.constant(scales)
    if factors is None or not (factors >= 1).all():
        old = NodeProto(op_type="Resize", name=node.name, output=node.output)
        old.input.extend([node.input[0], "", scales])
        mode = value_of(node, "mode", "nearest")
        old.attribute.extend(node.attribute)
        set_attribute(old, "coordinate_transformation_mode", "asymmetric")
        if mode == "nearest" and factors is None:
            # What is enlarged is rounded down, what is reduced is rounded up.
            raise RefusedError(
                "its scales are computed at run time, so nothing tells whether it enlarges or reduces",
                f"make {scales!r} a constant, or stay at opset 10 or above",
            )
        if mode == "nearest" and not (factors <= 1).all():
            raise RefusedError("it enlarges one axis and reduces another, which opset 9 cannot")
        set_attribute(old, "nearest_mode", "ceil")
        return _written_out(old, scope, "it reduces, or may, and opset 10 is the oldest that can")
    return Writer(node, scope).yields("Upsample", node.input[0], scales, copied=node.attribute)


@expresses("Upsample", opset=11, reads=9)
def _upsample_by_coordinates(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    """It only ever enlarges, so that asymmetric coordinates are rounded down."""
    if scope.target_opset < 11:
        return None
    body = Writer(node, scope)
    nodes = body.yields("Resize", node.input[0], _empty(scope), node.input[1], copied=node.attribute)
    set_attribute(nodes[-1], "coordinate_transformation_mode", "asymmetric")
    if value_of(node, "mode", "nearest") == "nearest":
        set_attribute(nodes[-1], "nearest_mode", "floor")
    return nodes


@expresses("Upsample", opset=10, reads=9)
def _upsample_by_resize(node: NodeProto, scope: Scope) -> list[NodeProto]:
    return Writer(node, scope).yields("Resize", *node.input, copied=node.attribute)


_OLD_MODES = {"linear": "bilinear", "bilinear": "linear"}


@lowers("Upsample", 7)
def _lower_scales(node: NodeProto, scope: Scope) -> Outcome:
    """Two factors, of height and width, instead of one per axis."""
    scales = value_of(node, "scales")
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1:
        raise RefusedError(f"its scales {list(scales)} are not those of images, which Upsample is for before opset 7")
    drop_attribute(node, "scales")
    set_attribute(node, "height_scale", scales[2])
    set_attribute(node, "width_scale", scales[3])
    mode = value_of(node, "mode", "nearest")
    set_attribute(node, "mode", _OLD_MODES.get(mode, mode))
    return None


@raises("Upsample", 7)
def _raise_scales(node: NodeProto, scope: Scope) -> Outcome:
    scales = [1.0, 1.0, float(value_of(node, "height_scale")), float(value_of(node, "width_scale"))]
    drop_attribute(node, "height_scale")
    drop_attribute(node, "width_scale")
    set_attribute(node, "scales", scales)
    mode = value_of(node, "mode", "nearest")
    set_attribute(node, "mode", _OLD_MODES.get(mode, mode))
    return None
