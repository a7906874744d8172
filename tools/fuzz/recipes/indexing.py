"""Operators that pick and place elements by index."""

from __future__ import annotations

import numpy as np

from tools.fuzz.drawing import Draft, NotDrawableError
from tools.fuzz.recipes.registry import recipe


def _indices(draft: Draft, size: int, shape: tuple[int, ...]) -> np.ndarray:
    if not size and np.prod(shape):
        raise NotDrawableError("nothing to index")
    low = -size if draft.opset >= 11 else 0
    return np.asarray(draft.rng.integers(low, max(size, low + 1), shape))


def _stated_axis(draft: Draft, rank: int, default: int = 0) -> int:
    axis = draft.axis(rank)
    if axis != default or draft.flip():
        draft.attributes["axis"] = axis
    return axis


@recipe("Gather")
def gather(draft: Draft) -> None:
    data = draft.data(0, 1, 4)
    axis = _stated_axis(draft, data.ndim)
    draft.whole(1, _indices(draft, data.shape[axis], draft.shape(0, 2)), parameter=draft.flip())


@recipe("GatherElements")
def gather_elements(draft: Draft) -> None:
    data = draft.data(0, 1, 4)
    axis = _stated_axis(draft, data.ndim)
    shape = [draft.integer(min(size, 1), size) for size in data.shape]
    shape[axis] = draft.integer(1, 4)
    draft.whole(1, _indices(draft, data.shape[axis], tuple(shape)), parameter=draft.flip())


@recipe("GatherND")
def gather_nd(draft: Draft) -> None:
    data = draft.data(0, 1, 4)
    batch = 0
    if "batch_dims" in draft.schema.attributes and draft.flip():
        batch = draft.attributes["batch_dims"] = draft.integer(0, min(data.ndim - 1, 2))
    draft.give(1, _tuples(draft, data.shape, batch), parameter=draft.flip())


def _tuples(draft: Draft, shape: tuple[int, ...], batch: int = 0, *, unlike: bool = False) -> np.ndarray:
    """Index tuples into the dimensions after the batch; all different if they are written to."""
    depth = draft.integer(1, len(shape) - batch)
    inner = shape[batch : batch + depth]
    if 0 in inner or 0 in shape[:batch]:
        raise NotDrawableError("nothing to index")
    middle = draft.shape(0, 2) if not unlike else (draft.integer(1, min(int(np.prod(inner)), 3)),)
    count = int(np.prod((*shape[:batch], *middle)))
    chosen = (
        draft.rng.permutation(int(np.prod(inner)))[:count] if unlike else draft.rng.integers(0, np.prod(inner), count)
    )
    places = np.stack(np.unravel_index(np.asarray(chosen, np.int64), inner), axis=-1).astype(np.int64)
    if draft.opset >= 11 and draft.flip(0.4):
        places = np.where(draft.rng.random(places.shape) < 0.3, places - np.asarray(inner), places)
    return places.astype(np.int64).reshape((*shape[:batch], *middle, depth))


def _reduction(draft: Draft) -> str:
    since = draft.schema.since_version
    choices = ("none", "add", "mul", "max", "min") if since >= 18 else ("none", "add", "mul")
    return draft.maybe("reduction", choices, "none")


@recipe("Scatter", "ScatterElements")
def scatter_elements(draft: Draft) -> None:
    data = draft.data(0, 1, 4)
    axis = _stated_axis(draft, data.ndim)
    shape = [draft.integer(min(size, 1), size) for size in data.shape]
    if 0 in data.shape:
        raise NotDrawableError("nothing to write to")
    reduction = _reduction(draft)
    if reduction == "none":  # with duplicates the result is not defined
        order = np.argsort(draft.rng.random(data.shape), axis=axis)
        indices = order[tuple(slice(0, size) for size in shape)]
    else:
        indices = _indices(draft, data.shape[axis], tuple(shape))
    draft.whole(1, indices, parameter=draft.flip())
    draft.tensor(2, shape)


@recipe("ScatterND")
def scatter_nd(draft: Draft) -> None:
    data = draft.data(0, 1, 4)
    indices = _tuples(draft, data.shape, unlike=_reduction(draft) == "none")
    draft.give(1, indices, parameter=draft.flip())
    draft.tensor(2, (*indices.shape[:-1], *data.shape[indices.shape[-1] :]))
