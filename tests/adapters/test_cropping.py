"""CenterCropPad below opset 18."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.models import converted, floats, one, run


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("target", [17, 13])
def test_a_shape_of_either_width_crops_and_pads(dtype: type, target: int) -> None:
    data = {"x": floats(4, 3)}
    made = one("CenterCropPad", data, 18, constants={"shape": np.array([2, 5], dtype)})
    expected = np.pad(data["x"][1:3], ((0, 0), (1, 1)))
    np.testing.assert_array_equal(run(converted(made, target), data)[0], expected)
