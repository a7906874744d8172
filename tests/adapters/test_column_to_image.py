"""Col2Im where the target has none, against a loop over blocks."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.models import assert_same, floats, int64s, model, one, refusal

CASES = {
    "plain": ((5, 6), (2, 3), (1, 1), (1, 1), (0, 0, 0, 0)),
    "strides": ((5, 7), (2, 3), (2, 3), (1, 1), (0, 0, 0, 0)),
    "dilations": ((6, 7), (2, 3), (1, 1), (2, 3), (0, 0, 0, 0)),
    "pads": ((5, 5), (3, 3), (2, 1), (1, 1), (1, 0, 2, 1)),
    "three axes": ((3, 4, 5), (2, 2, 2), (1, 2, 1), (1, 1, 2), (0, 0, 0, 0, 0, 0)),
}


def _starts(name: str) -> list[range]:
    sizes, kernel, strides, dilations, pads = CASES[name]
    rank = len(sizes)
    return [
        range(-pads[a], sizes[a] + pads[a + rank] - (kernel[a] - 1) * dilations[a], strides[a]) for a in range(rank)
    ]


def _image(data: np.ndarray, name: str) -> np.ndarray:
    sizes, kernel, _, dilations, _ = CASES[name]
    columns = data.reshape(data.shape[0], -1, int(np.prod(kernel)), data.shape[2])
    image = np.zeros((*columns.shape[:2], *sizes), data.dtype)
    for block, start in enumerate(product(*_starts(name))):
        for row, element in enumerate(np.ndindex(*kernel)):
            place = tuple(s + e * d for s, e, d in zip(start, element, dilations, strict=True))
            if all(0 <= at < size for at, size in zip(place, sizes, strict=True)):
                image[(slice(None), slice(None), *place)] += columns[:, :, row, block]
    return image


@pytest.mark.parametrize("name", CASES)
def test_blocks_are_added_where_they_lie(name: str) -> None:
    sizes, kernel, strides, dilations, pads = CASES[name]
    data = floats(2, 3 * int(np.prod(kernel)), int(np.prod([len(starts) for starts in _starts(name)])))
    data[0, 0, 0] = np.inf
    constants = {"image": int64s(*sizes), "block": int64s(*kernel)}
    settings = {"strides": list(strides), "dilations": list(dilations), "pads": list(pads)}
    made = one("Col2Im", {"x": data}, 18, constants=constants, **settings)
    assert_same(made, {"x": data}, 13, _image(data, name))


@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32])
def test_sums_wrap_around_and_any_truth_is_true(dtype: Any, ranked: list[str]) -> None:
    sizes, kernel, _, _, pads = CASES["pads"]
    data = np.random.default_rng(4).integers(0, 2 if dtype is bool else 2**15, (1, 9, 12)).astype(dtype)
    constants = {"image": int64s(*sizes), "block": int64s(*kernel)}
    made = one("Col2Im", {"x": data}, 18, constants=constants, ranked=ranked, strides=[2, 1], pads=list(pads))
    for target in (17, 13):
        assert_same(made, {"x": data}, target, _image(data, "pads"))


def test_an_image_of_computed_size_is_refused() -> None:
    feeds = {"x": floats(1, 4, 4), "image": int64s(3, 3), "block": int64s(2, 2)}
    assert "make 'image' a constant" in refusal(one("Col2Im", feeds, 18), 17)


def test_strings_are_refused() -> None:
    head = "(string[1,4,4] x) => (string[a,b,c,d] y) <int64[2] image = {3, 3}, int64[2] block = {2, 2}>"
    assert "strings" in refusal(model(f"{head} {{ y = Col2Im(x, image, block) }}", 21), 14)
