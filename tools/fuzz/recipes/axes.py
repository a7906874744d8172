"""Operators that work along axes: reductions, softmaxes, normalizations, running sums."""

from __future__ import annotations

import numpy as np

from tools.fuzz.drawing import Draft, NotDrawableError
from tools.fuzz.recipes.registry import recipe

_REDUCE = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


@recipe(*_REDUCE)
def reduce_axes(draft: Draft) -> None:
    rank = draft.data(0).ndim
    axes = draft.axes(rank)
    if "axes" in draft.schema.attributes:
        if axes and draft.flip(0.8):
            draft.attributes["axes"] = axes
    elif draft.flip(0.8):
        draft.state("axes", np.asarray(axes, np.int64))
    if draft.flip():
        draft.attributes["keepdims"] = draft.integer(0, 1)
    if "noop_with_empty_axes" in draft.schema.attributes and draft.flip(0.4):
        draft.attributes["noop_with_empty_axes"] = draft.integer(0, 1)


@recipe("ArgMax", "ArgMin")
def arg_extreme(draft: Draft) -> None:
    shape = draft.shape(1)
    axis = draft.axis(len(shape))
    if not shape[axis] or not shape[0]:
        raise NotDrawableError("nothing has no extreme")
    draft.tensor(0, shape, edge=False)
    if axis or draft.flip():
        draft.attributes["axis"] = axis
    for name in ("keepdims", "select_last_index"):
        if name in draft.schema.attributes and draft.flip():
            draft.attributes[name] = draft.integer(0, 1)


@recipe("Softmax", "LogSoftmax", "Hardmax")
def softmax(draft: Draft) -> None:
    rank = draft.data(0, 1 if draft.opset >= 13 else 2).ndim
    axis = draft.axis(rank)
    if draft.flip(0.8):
        draft.attributes["axis"] = axis


@recipe("GroupNormalization")
def group_normalization(draft: Draft) -> None:
    groups, each = draft.integer(1, 3), draft.integer(1, 3)
    draft.tensor(0, (draft.integer(1, 2), groups * each, *draft.shape(1, 2)))
    draft.attributes["num_groups"] = groups
    size = groups if draft.opset < 21 else groups * each
    for position in (1, 2):
        draft.tensor(position, (size,), edge=False)


@recipe("BatchNormalization")
def batch_normalization(draft: Draft) -> None:
    rank_low = 2 if draft.opset >= 9 else 3
    data = draft.data(0, rank_low, 4)
    spatial = draft.attributes.get("spatial", 1)
    if "spatial" in draft.schema.attributes and draft.flip(0.3):
        spatial = draft.attributes["spatial"] = draft.integer(0, 1)
    shape = (data.shape[1],) if spatial else data.shape[1:]
    for variable in ("T1", "T2"):
        if any(one.type_param_str == variable for one in draft.schema.type_constraints) and draft.flip(0.7):
            draft.types.setdefault(variable, draft.types["T"])
    for position in range(1, 5):
        made = draft.tensor(position, shape, edge=False)
        if position == 4:
            draft.give(4, np.abs(made.astype(np.float32)).astype(made.dtype).reshape(shape))
    if "training_mode" in draft.schema.attributes and draft.flip(0.3):
        draft.attributes["training_mode"] = 1
        draft.outputs = draft.pick((1, 3))
    if "is_test" in draft.schema.attributes:
        draft.attributes["is_test"] = 1


@recipe("TopK")
def top_k(draft: Draft) -> None:
    shape = draft.shape(1)
    axis = draft.axis(len(shape))
    if axis in (-1, len(shape) - 1) and draft.flip():
        axis = -1
    else:
        draft.attributes["axis"] = axis
    data = draft.tensor(0, shape, edge=False)
    if data.size and data.dtype.kind in "iuf":  # equal elements may come in any order
        unlike = draft.rng.permutation(data.size).astype(data.dtype).reshape(shape)
        draft.give(0, unlike)
    count = draft.integer(0, min(shape[axis], 3)) if draft.flip(0.3) else min(shape[axis], draft.integer(1, 3))
    if draft.schema.since_version < 10:
        draft.attributes["k"] = count
    else:
        draft.give(1, np.array([count], np.int64), parameter=True)
    if "largest" in draft.schema.attributes and draft.flip():
        draft.attributes["largest"] = draft.integer(0, 1)
    if "sorted" in draft.schema.attributes and draft.flip(0.3):
        draft.attributes["sorted"] = 1
    draft.outputs = 2
