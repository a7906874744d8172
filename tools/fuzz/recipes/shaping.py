"""Operators that move elements and change shapes."""

from __future__ import annotations

import math

import numpy as np

from tools.fuzz.drawing import Draft, NotDrawableError
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import draw_values


@recipe("Reshape")
def reshape(draft: Draft) -> None:
    data = draft.data(0)
    wanted = _another_shape(draft, data.shape)
    stated = list(wanted)
    allows_zero = False
    if "allowzero" in draft.schema.attributes and draft.flip(0.4):
        allows_zero = bool(draft.pick((0, 1, 1)))
        draft.attributes["allowzero"] = int(allows_zero)
    for index, size in enumerate(wanted):
        if index < data.ndim and data.shape[index] == size and not allows_zero and draft.flip(0.4):
            stated[index] = 0
        elif size == 0 and not allows_zero and not (index < data.ndim and data.shape[index] == 0):
            raise NotDrawableError("a size of 0 cannot be said here")
    if stated and data.size and draft.flip(0.4):
        stated[draft.integer(0, len(stated) - 1)] = -1
    if "shape" in draft.schema.attributes:
        draft.attributes["shape"] = stated
    else:
        draft.give(1, np.asarray(stated, np.int64), parameter=True)


def _another_shape(draft: Draft, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with as many elements: some neighbours joined, some sizes split, some ones added."""
    sizes = list(shape)
    for _ in range(draft.integer(0, 3)):
        how = draft.integer(0, 3)
        if how == 0 and len(sizes) > 1:
            at = draft.integer(0, len(sizes) - 2)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        elif how == 1 and sizes:
            at = draft.integer(0, len(sizes) - 1)
            for factor in (2, 3, 5):
                if sizes[at] % factor == 0 and sizes[at]:
                    sizes[at : at + 1] = [factor, sizes[at] // factor]
                    break
        elif how == 2 and len(sizes) < 5:
            sizes.insert(draft.integer(0, len(sizes)), 1)
        elif how == 3 and 1 in sizes:
            sizes.remove(1)
    assert math.prod(sizes) == math.prod(shape)
    return tuple(sizes)


@recipe("Flatten")
def flatten(draft: Draft) -> None:
    rank = draft.data(0, 0 if draft.opset >= 11 else 1).ndim
    if draft.flip(0.7) or not rank:
        draft.attributes["axis"] = draft.integer(-rank if draft.opset >= 11 else 0, rank)


@recipe("Squeeze")
def squeeze(draft: Draft) -> None:
    shape = draft.shape(0, 5)
    if 1 not in shape:
        shape = (*shape[:4], 1)
        shape = tuple(shape[int(index)] for index in draft.rng.permutation(len(shape)))
    draft.tensor(0, shape)
    ones = [index for index, size in enumerate(shape) if size == 1]
    chosen = ones[: draft.integer(1, len(ones))]
    if draft.flip(0.75):
        draft.state("axes", [axis - len(shape) if draft.opset >= 11 and draft.flip(0.4) else axis for axis in chosen])


@recipe("Unsqueeze")
def unsqueeze(draft: Draft) -> None:
    rank = draft.data(0, 0, 3).ndim
    count = draft.integer(1, 2)
    axes = sorted(int(axis) for axis in draft.rng.permutation(rank + count)[:count])
    draft.state("axes", [axis - rank - count if draft.opset >= 11 and draft.flip(0.4) else axis for axis in axes])


@recipe("Transpose")
def transpose(draft: Draft) -> None:
    rank = draft.data(0).ndim
    if draft.flip(0.8):
        draft.attributes["perm"] = [int(axis) for axis in draft.rng.permutation(rank)]


@recipe("Expand")
def expand(draft: Draft) -> None:
    data = draft.data(0, 0, 4)
    wanted = [draft.integer(1, 3) if size == 1 and draft.flip() else draft.pick((size, 1)) for size in data.shape]
    wanted = wanted[draft.integer(0, len(wanted)) :] if draft.flip(0.3) else wanted
    if draft.flip(0.3) and len(wanted) == data.ndim:
        wanted.insert(0, draft.integer(1, 2))
    draft.give(1, np.asarray(wanted, np.int64), parameter=True)


@recipe("Tile")
def tile(draft: Draft) -> None:
    if draft.schema.since_version < 6:
        data = draft.data(0, 1, 4)
        dtype = data.dtype
        draft.give(1, np.array([draft.integer(1, 3)], dtype), parameter=True)
        draft.give(2, np.array([draft.integer(0, data.ndim - 1)], dtype), parameter=True)
        return
    data = draft.data(0, 0, 4)
    repeats = [draft.pick((1, 1, 2, 3, 0) if draft.flip(0.2) else (1, 2, 3)) for _ in data.shape]
    draft.give(1, np.asarray(repeats, np.int64), parameter=True)


@recipe("Pad")
def pad(draft: Draft) -> None:
    data = draft.data(0, 1, 4)
    modes = ["constant", "reflect", "edge"] + (["wrap"] if draft.schema.since_version >= 19 else [])
    mode = draft.maybe("mode", modes, "constant")
    axes: list[int] | None = None
    if draft.takes("axes") and draft.flip(0.4):
        axes = draft.axes(data.ndim, least=1)
    ends = []
    for axis in axes if axes is not None else range(data.ndim):
        size = data.shape[axis]
        most = min(3, size - 1 if mode == "reflect" else size if mode == "wrap" else 3)
        if mode != "constant" and not size:
            most = 0
        low = -1 if mode == "constant" and size > 2 and draft.flip(0.15) else 0
        ends.append((draft.integer(low, max(most, 0)), draft.integer(low, max(most, 0))))
    pads = [end[0] for end in ends] + [end[1] for end in ends]
    name = "paddings" if "paddings" in draft.schema.attributes else "pads"
    draft.state(name, pads)
    if axes is not None:
        draft.state("axes", axes)
    if draft.flip():
        if "value" in draft.schema.attributes:
            draft.attributes["value"] = draft.integer(-4, 4) / 2
        else:
            draft.give(2, draw_values(draft.rng, draft.type_of(0), (), edge=False), parameter=True)


@recipe("Slice")
def slice_(draft: Draft) -> None:
    data = draft.data(0, 1)
    takes_steps = draft.schema.since_version >= 10
    axes = draft.axes(data.ndim, least=0 if draft.flip(0.1) else 1)
    all_axes = draft.flip(0.2)
    if all_axes:
        axes = list(range(data.ndim))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = data.shape[axis]
        step = draft.pick((1, 1, 2, -1, -2)) if takes_steps else 1
        starts.append(draft.integer(-size - 1, size + 1))
        ends.append(draft.pick((draft.integer(-size - 1, size + 1), 2**31 - 1 if step > 0 else -(2**31) + 1)))
        steps.append(step)
    with_steps = takes_steps and draft.flip()
    if not with_steps:
        steps = [1] * len(steps)
    if not axes and "starts" in draft.schema.attributes:
        raise NotDrawableError("an empty list cannot be stated")
    draft.state("starts", starts)
    draft.state("ends", ends)
    if not all_axes or draft.flip():
        draft.state("axes", axes)
    if with_steps:
        draft.state("steps", steps)


@recipe("Split")
def split(draft: Draft) -> None:
    shape = draft.shape(1)
    axis = draft.axis(len(shape))
    draft.tensor(0, shape)
    if axis or draft.flip():
        draft.attributes["axis"] = axis
    else:
        axis = 0
    size = shape[axis]
    count = draft.integer(1, 3)
    how = draft.pick(("sizes", "sizes", "equal"))
    if how == "sizes":
        cuts = sorted(draft.integer(0, size) for _ in range(count - 1))
        sizes = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
        if draft.schema.since_version == 1 and draft.flip(0.4):
            draft.give(1, np.asarray(sizes).astype(draft.inputs[0].value.dtype), parameter=True)  # type: ignore[union-attr]
        else:
            draft.state("split", sizes)
    elif "num_outputs" in draft.schema.attributes:
        draft.attributes["num_outputs"] = count
        if count > size:
            raise NotDrawableError("more parts than elements")
    elif size % count:
        raise NotDrawableError("parts would differ")
    draft.outputs = count


@recipe("Concat")
def concat(draft: Draft) -> None:
    shape = list(draft.shape(1))
    axis = draft.axis(len(shape))
    draft.attributes["axis"] = axis
    element_type = draft.type_of(0)
    for position in range(draft.integer(1, 3)):
        if position:
            shape[axis] = draft.integer(0 if draft.flip(0.1) else 1, 3)
        draft.give(position, draw_values(draft.rng, element_type, tuple(shape), edge=draft.edge))
    if "axis" in draft.attributes and draft.schema.since_version == 1 and axis == 1 and draft.flip():
        del draft.attributes["axis"]
