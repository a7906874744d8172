"""CumSum and CumProd where the target has none: empty data, and axes known at run time only."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.models import converted, one, run


def test_what_may_be_empty_along_another_axis_is_not_scanned() -> None:
    """Onnxruntime dies of a Scan over elements of no size, however many there are."""
    made = one("CumSum", {"x": np.ones((2, 3), np.float32)}, 14, constants={"axis": np.int64(0)})
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "n"
    (result,) = run(converted(made, 10), {"x": np.zeros((2, 0), np.float32)})
    assert result.shape == (2, 0)


@pytest.mark.opset(26)
def test_products_along_axes_computed_at_run_time() -> None:
    data = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for axis in (0, 1):
        feeds = {"x": data, "axis": np.array(axis, np.int64)}
        (result,) = run(converted(one("CumProd", feeds, 26, ranked=[]), 25), feeds)
        np.testing.assert_array_equal(result, np.cumprod(data, axis))
