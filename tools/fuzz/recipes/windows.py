"""Operators over windows and images: convolutions, pools, resizing."""

from __future__ import annotations

import numpy as np

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.by_case import like_a_case
from tools.fuzz.recipes.registry import recipe


def _windows(draft: Draft, sizes: tuple[int, ...], *, stated_kernel: bool = True, ceil: bool = True) -> list[int]:
    """State kernel, strides, pads and dilations for data of some sizes; returns the kernel."""
    count = len(sizes)
    dilations = [1] * count
    if "dilations" in draft.schema.attributes and draft.flip(0.3):
        dilations = draft.attributes["dilations"] = [draft.integer(1, 2) for _ in range(count)]
    kernel = [
        draft.integer(1, max(1, min(3, (size - 1) // step + 1))) for size, step in zip(sizes, dilations, strict=True)
    ]
    if stated_kernel:
        draft.attributes["kernel_shape"] = kernel
    if draft.flip():
        draft.attributes["strides"] = [draft.integer(1, 3) for _ in range(count)]
    if draft.flip(0.25) and "auto_pad" in draft.schema.attributes:
        draft.attributes["auto_pad"] = draft.pick(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
    elif draft.flip():
        draft.attributes["pads"] = [draft.integer(0, size - 1) for size in [*kernel, *kernel]]
    if ceil and "ceil_mode" in draft.schema.attributes and draft.flip(0.4):
        draft.attributes["ceil_mode"] = draft.integer(0, 1)
    return kernel


def _image(draft: Draft, channels: int | None = None, low: int = 1, high: int = 3) -> tuple[int, ...]:
    ranks = (low, min(low + 1, high), min(low + 1, high), high)
    sizes = tuple(draft.integer(2, 6) for _ in range(draft.pick(ranks)))
    return (draft.integer(1, 2), channels or draft.integer(1, 3), *sizes)


@recipe("AveragePool", "MaxPool", "LpPool")
def pool(draft: Draft) -> None:
    shape = _image(draft)
    draft.tensor(0, shape)
    _windows(draft, shape[2:])
    if "count_include_pad" in draft.schema.attributes and draft.flip():
        draft.attributes["count_include_pad"] = draft.integer(0, 1)
    if draft.schema.name == "LpPool" and draft.flip():
        draft.attributes["p"] = draft.integer(1, 3) if draft.schema.since_version > 1 else float(draft.integer(1, 3))
    if draft.schema.name == "MaxPool":
        draft.outputs = draft.integer(1, draft.schema.max_output)
        if "storage_order" in draft.schema.attributes and draft.flip(0.3):
            draft.attributes["storage_order"] = draft.integer(0, 1)


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(draft: Draft) -> None:
    draft.tensor(0, _image(draft))
    if draft.schema.name == "GlobalLpPool" and draft.flip():
        draft.attributes["p"] = draft.integer(1, 3) if draft.schema.since_version > 1 else float(draft.integer(1, 3))


@recipe("Conv")
def conv(draft: Draft) -> None:
    group = draft.integer(1, 2)
    each_in, each_out = draft.integer(1, 2), draft.integer(1, 2)
    shape = _image(draft, group * each_in)
    draft.tensor(0, shape)
    kernel = _windows(draft, shape[2:], stated_kernel=draft.flip(), ceil=False)
    draft.tensor(1, (group * each_out, each_in, *kernel))
    if draft.flip():
        draft.tensor(2, (group * each_out,))
    if group > 1 or draft.flip(0.3):
        draft.attributes["group"] = group


@recipe("MaxRoiPool")
def max_roi_pool(draft: Draft) -> None:
    data = draft.tensor(0, (draft.integer(1, 2), draft.integer(1, 3), 4, 4), edge=False)
    boxes = [[0, draft.integer(0, 1), draft.integer(0, 1), 3, draft.integer(2, 3)] for _ in range(draft.integer(1, 3))]
    draft.give(1, np.asarray(boxes).astype(data.dtype))
    draft.attributes.update(pooled_shape=[draft.integer(1, 2), draft.integer(1, 2)], spatial_scale=1.0)


@recipe("Upsample")
def upsample(draft: Draft) -> None:
    shape = _image(draft, low=2, high=2)
    draft.tensor(0, shape, edge=False)
    draft.maybe("mode", ("nearest", "linear" if draft.opset >= 7 else "bilinear"), "nearest")
    scales = [1.0, 1.0, float(draft.integer(1, 3)), float(draft.integer(1, 6)) / 2 + 0.5]
    if "scales" in draft.schema.attributes:
        draft.attributes["scales"] = scales
    elif "height_scale" in draft.schema.attributes:
        draft.attributes.update(height_scale=scales[2], width_scale=scales[3])
    else:
        draft.give(1, np.asarray(scales, np.float32), parameter=True)


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn")


@recipe("Resize")
def resize(draft: Draft) -> None:
    """Below opset 13, which onnx's cases are for, scales or sizes of the two spatial axes."""
    if draft.schema.since_version >= 13:
        like_a_case(draft)
        return
    shape = _image(draft, low=2, high=2)
    draft.tensor(0, shape, edge=False)
    mode = draft.maybe("mode", ("nearest", "linear"), "nearest")
    scales = np.asarray([1, 1, *(draft.pick((0.5, 1, 2, 1.5)) for _ in shape[2:])], np.float32)
    if draft.schema.since_version == 10:
        draft.give(1, scales, parameter=True)
        return
    draft.maybe("coordinate_transformation_mode", _COORDINATES, "half_pixel")
    if mode == "nearest":
        draft.maybe("nearest_mode", ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"), "round_prefer_floor")
    draft.give(1, np.zeros(0, np.float32), parameter=True)
    if draft.flip():
        draft.give(2, scales, parameter=True)
    else:
        draft.give(2, np.zeros(0, np.float32), parameter=True)
        draft.give(3, np.asarray([*shape[:2], draft.integer(1, 7), draft.integer(1, 7)], np.int64), parameter=True)
