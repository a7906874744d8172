"""GridSample between its versions, and written out where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.adapters.single import converted, model_of, operators_of, yields

RANDOM = np.random.default_rng(13)
FLOAT = TensorProto.FLOAT
IMAGE = RANDOM.normal(size=(1, 2, 5, 6)).astype(np.float32)
GRID = (RANDOM.random((1, 4, 3, 2)) * 2 - 1).astype(np.float32)


@pytest.mark.parametrize(("new", "old"), [("linear", "bilinear"), ("cubic", "bicubic"), ("nearest", "nearest")])
def test_sampling_modes_are_renamed_both_ways(new: str, old: str) -> None:
    inputs = {"x": IMAGE, "grid": GRID}
    newer = model_of("GridSample", inputs, opset=20, ir_version=10, mode=new)
    older = model_of("GridSample", inputs, opset=16, mode=old)
    expected = yields(older, inputs)[0]
    np.testing.assert_allclose(yields(converted(newer, 16), inputs)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(yields(converted(older, 22), inputs)[0], expected, rtol=1e-5, atol=1e-6)


def test_the_default_sampling_mode_gets_the_name_of_its_opset() -> None:
    inputs = {"x": IMAGE, "grid": GRID}
    for source, target, name in ((20, 16, b"bilinear"), (16, 20, b"linear")):
        node = converted(model_of("GridSample", inputs, opset=source, ir_version=10), target).graph.node[0]
        assert [attribute.s for attribute in node.attribute if attribute.name == "mode"] == [name]


@pytest.mark.parametrize("target", [15, 11, 9])
@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_sampling_is_written_out_where_there_is_none(mode: str, padding: str, aligned: int, target: int) -> None:
    inputs = {"x": IMAGE, "grid": (GRID * 2.5).astype(np.float32)}
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    model = model_of("GridSample", inputs, opset=16, **attributes)
    result = converted(model, target)
    assert "GridSample" not in operators_of(result)
    np.testing.assert_allclose(yields(result, inputs)[0], yields(model, inputs)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sampling_a_volume_is_written_out_below_20(mode: str) -> None:
    inputs = {
        "x": RANDOM.normal(size=(1, 2, 3, 4, 5)).astype(np.float32),
        "grid": (RANDOM.random((1, 2, 2, 3, 3)) * 3 - 1.5).astype(np.float32),
    }
    outputs = {"y": (FLOAT, (1, 2, 2, 2, 3))}
    model = model_of("GridSample", inputs, opset=20, ir_version=10, outputs=outputs, mode=mode)
    result = converted(model, 16)
    np.testing.assert_allclose(yields(result, inputs)[0], yields(model, inputs)[0], rtol=1e-4, atol=1e-5)


NAMED: dict[str, Any] = {"x": ("N", "C", "H", "W"), "grid": ("N", "P", "Q", 2)}


@pytest.mark.parametrize("shapes", [{}, NAMED])
@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_places_that_are_no_number_or_far_away_are_where_onnxruntime_has_them(
    mode: str, aligned: int, shapes: dict[str, Any]
) -> None:
    places = np.array([np.nan, np.inf, -np.inf, 3e38, -1e38, 1e19, -1e19, 1e6, -1e6, 1.5, -1.5, 1, -1], np.float32)
    grid = np.stack(np.meshgrid(places, places), axis=-1)[None]
    inputs = {"x": IMAGE, "grid": grid}
    model = model_of("GridSample", inputs, opset=16, shapes=shapes, mode=mode, align_corners=aligned)
    np.testing.assert_allclose(yields(converted(model, 13), inputs)[0], yields(model, inputs)[0], rtol=1e-4, atol=1e-5)


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
