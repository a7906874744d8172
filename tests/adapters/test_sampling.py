"""GridSample between its versions, and written out where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.adapters.single import converted, model_of, operators_of, yields

RANDOM = np.random.default_rng(13)
IMAGE = RANDOM.normal(size=(1, 2, 5, 6)).astype(np.float32)
GRID = (RANDOM.random((1, 4, 3, 2)) * 2 - 1).astype(np.float32)


def test_the_default_sampling_mode_gets_the_name_of_its_opset() -> None:
    inputs = {"x": IMAGE, "grid": GRID}
    for source, target, name in ((20, 16, b"bilinear"), (16, 20, b"linear")):
        node = converted(model_of("GridSample", inputs, opset=source, ir_version=10), target).graph.node[0]
        assert [attribute.s for attribute in node.attribute if attribute.name == "mode"] == [name]


NAMED: dict[str, Any] = {"x": ("N", "C", "H", "W"), "grid": ("N", "P", "Q", 2)}


@pytest.mark.parametrize("target", [15, 11])
@pytest.mark.parametrize(
    ("image", "grid", "result"),
    [
        ((0, 2, 5, 6), (0, 4, 3, 2), (0, 2, 4, 3)),
        ((1, 2, 5, 6), (1, 0, 3, 2), (1, 2, 0, 3)),
        ((1, 2, 5, 6), (1, 4, 0, 2), (1, 2, 4, 0)),
        ((1, 0, 5, 6), (1, 4, 3, 2), (1, 0, 4, 3)),
    ],
)
@pytest.mark.parametrize("shapes", [{}, NAMED])
def test_nothing_is_sampled_from_or_at_no_elements(
    shapes: dict[str, Any],
    image: tuple[int, ...],
    grid: tuple[int, ...],
    result: tuple[int, ...],
    target: int,
) -> None:
    inputs = {"x": np.zeros(image, np.float32), "grid": np.zeros(grid, np.float32)}
    model = model_of("GridSample", inputs, opset=16, shapes=shapes)
    assert yields(converted(model, target), inputs)[0].shape == result


@pytest.mark.parametrize(("mode", "most"), [("bilinear", 26), ("nearest", 21), ("bicubic", 30)])
def test_sampling_takes_few_nodes(mode: str, most: int) -> None:
    model = model_of("GridSample", {"x": IMAGE, "grid": GRID}, opset=16, mode=mode)
    assert len(operators_of(converted(model, 13))) <= most
