"""Unique below the opset version that brought it, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import assert_same, one, refusal

SHAPES = [((9,), None), ((3, 4), None), ((5, 2), 0), ((2, 6), -1), ((3, 4, 2), 1), ((0,), None)]


def _expected(data: np.ndarray, axis: int | None, is_sorted: bool) -> list[np.ndarray]:
    """What the page says; numpy puts in order, and the first places tell how it was."""
    found = np.unique(data, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, indices, inverse, counts = found
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(indices)
        values = np.take(values, order, axis=axis or 0)
        indices, counts, inverse = indices[order], counts[order], np.argsort(order)[inverse]
    return [values, *(part.astype(np.int64) for part in (indices, inverse, counts))]


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_unique_is_what_comparing_all_with_all_leaves(
    shape: tuple[int, ...], axis: int | None, dtype: type[np.generic], is_sorted: int, target: int
) -> None:
    data = np.random.default_rng(3).integers(0, 2, shape).astype(dtype)
    feeds = {"x": data}
    outputs = ["y", "i", "n", "c"]
    along = {} if axis is None else {"axis": axis}
    made = one("Unique", {"x": data.astype(np.float32)}, 13, outputs=outputs, ranked=["x"], sorted=is_sorted, **along)
    # onnxruntime has no kernel of Unique for every element type, so the type is stated afterwards.
    element_type = {np.float32: 1, np.int64: 7, np.bool_: 9}[dtype]  # type: ignore[index]
    for value in (made.graph.input[0], made.graph.output[0]):
        value.type.tensor_type.elem_type = element_type
    assert_same(made, feeds, target, *_expected(data, axis, bool(is_sorted)))


def test_nothing_older_puts_strings_in_order() -> None:
    made = one("Unique", {"x": np.array(["b", "a"], dtype=object)}, 13)
    assert "strings" in refusal(made, 9)
