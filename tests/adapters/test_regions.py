"""RoiAlign and NonMaxSuppression written out where the target has none, against onnxruntime's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reducelower
from tests.adapters.models import converted, floats, one, run

IMAGES = floats(2, 3, 7, 9)
REGIONS = np.array(
    [[0, 0, 3, 3], [1.2, 2.5, 8.1, 6.6], [-3, -2, 4, 3], [5, 5, 5.2, 5.1], [20, 20, 30, 30], [4, 4, 2, 1]], np.float32
)
SHAPE: dict[str, Any] = {"output_height": 3, "output_width": 2}


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 1, 3])
@pytest.mark.parametrize("count", [len(REGIONS), 0])
def test_regions_of_any_size_are_pooled(count: int, samples: int, mode: str) -> None:
    feeds = {"x": IMAGES, "rois": REGIONS[:count], "batch": np.array([0, 1, 1, 0, 0, 1])[:count]}
    made = one(
        "RoiAlign", feeds, 16, sampling_ratio=samples, spatial_scale=0.5, coordinate_transformation_mode=mode, **SHAPE
    )
    (expected,) = run(made, feeds)
    for target in (15, 9):
        (result,) = run(converted(made, target), feeds)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_the_largest_of_weighed_elements_is_refused() -> None:
    feeds = {"x": IMAGES, "rois": REGIONS, "batch": np.array([0, 1, 1, 0, 0, 1])}
    with pytest.raises(reducelower.ConversionError, match="mode=max"):
        reducelower.convert_version(one("RoiAlign", feeds, 10, mode="max", **SHAPE), 9)


@pytest.mark.parametrize("ranked", [[], ["b", "s"]])
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("most", [0, 2, 100])
@pytest.mark.parametrize("lowest", [None, 0.4])
def test_boxes_that_overlap_better_ones_are_dropped(
    lowest: float | None, most: int, center: int, ranked: list[str]
) -> None:
    rng = np.random.default_rng(5)
    boxes = rng.uniform(0, 4, (2, 8, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (2, 3, 8)).round(1).astype(np.float32)  # with ties
    constants = {"most": np.array([most]), "overlap": np.array([0.3], np.float32)}
    if lowest is not None:
        constants["lowest"] = np.array([lowest], np.float32)
    feeds = {"b": boxes, "s": scores}
    made = one("NonMaxSuppression", feeds, 11, constants=constants, ranked=ranked, center_point_box=center)
    np.testing.assert_array_equal(run(converted(made, 9), feeds)[0], run(made, feeds)[0])
