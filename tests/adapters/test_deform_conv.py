"""DeformConv where the target has none, against bilinear interpolation written out."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from tests.models import converted, floats, model, refusal, run

ATTRIBUTES = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 1, 0, 2]}


def _pixel(image: np.ndarray, y: float, x: float) -> float:
    total = 0.0
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += float(image[row, column]) * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def _expected(feeds: dict[str, np.ndarray], groups: int, offset_groups: int) -> np.ndarray:
    data, weights, offset, bias, mask = (feeds[name].astype(np.float64) for name in "xwobm")
    (batch, channels), (results, per_group, tall, wide) = data.shape[:2], weights.shape
    (down, across), (top, left) = ATTRIBUTES["strides"], ATTRIBUTES["pads"][:2]
    found = np.zeros((batch, results, *offset.shape[2:]))
    moved = offset.reshape(batch, offset_groups, tall * wide, 2, *offset.shape[2:])
    shade = mask.reshape(batch, offset_groups, tall * wide, *offset.shape[2:])
    for n, r, i, j in np.ndindex(*found.shape):
        for c in range(per_group):
            channel = r // (results // groups) * per_group + c
            group = channel // (channels // offset_groups)
            for tap, (ki, kj) in enumerate(np.ndindex(tall, wide)):
                y = i * down - top + ki * ATTRIBUTES["dilations"][0] + moved[n, group, tap, 0, i, j]
                x = j * across - left + kj * ATTRIBUTES["dilations"][1] + moved[n, group, tap, 1, i, j]
                seen = _pixel(data[n, channel], y, x) * shade[n, group, tap, i, j]
                found[n, r, i, j] += weights[r, c, ki, kj] * seen
        found[n, r, i, j] += bias[r]
    return found


def _model(offset_groups: int, sizes: str = "N, 4, 6, 5", kind: str = "float") -> ModelProto:
    attributes = ", ".join(f"{name} = {value}" for name, value in ATTRIBUTES.items())
    return model(
        f"""({kind}[{sizes}] x, {kind}[6, 2, 3, 2] w, {kind}[2, {12 * offset_groups}, 3, 6] o, {kind}[6] b,
            {kind}[2, {6 * offset_groups}, 3, 6] m) => ({kind}[A, 6, 3, 6] y) {{
            y = DeformConv <{attributes}, group = 2, offset_group = {offset_groups}> (x, w, o, b, m) }}""",
        19,
        9,
    )


def _feeds(offset_groups: int) -> dict[str, np.ndarray]:
    return {
        "x": floats(2, 4, 6, 5),
        "w": floats(6, 2, 3, 2, seed=1),
        "o": 1.5 * floats(2, offset_groups * 12, 3, 6, seed=2),
        "b": floats(6, seed=3),
        "m": floats(2, offset_groups * 6, 3, 6, seed=4),
    }


@pytest.mark.parametrize("target", [18, 13, 10])
@pytest.mark.parametrize("offset_groups", [1, 2, 4])
def test_elements_are_taken_where_offsets_point(offset_groups: int, target: int) -> None:
    feeds = _feeds(offset_groups)
    (result,) = run(converted(_model(offset_groups), target), feeds)
    np.testing.assert_allclose(result, _expected(feeds, 2, offset_groups), rtol=1e-4, atol=1e-4)


def test_sums_of_halves_are_rounded_once() -> None:
    feeds = {name: value.astype(np.float16) for name, value in _feeds(2).items()}
    (result,) = run(converted(_model(2, kind="float16"), 13), feeds)
    np.testing.assert_allclose(result, _expected(feeds, 2, 2), rtol=2**-11, atol=1e-5)


def test_data_of_unknown_size_is_refused() -> None:
    assert "the sizes of 'x' are not known" in refusal(_model(1, "2, 4, H, 5"), 18)
