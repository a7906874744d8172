"""Gelu, Celu, Sign and IsInf where the target has none: at the ends of the numbers, too."""

from __future__ import annotations

import numpy as np
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import converted, one


def test_infinities_of_bfloat16_where_is_inf_takes_none() -> None:
    import ml_dtypes

    data = np.array([np.inf, -np.inf, np.nan, 3.3e38], ml_dtypes.bfloat16)
    lowered = converted(one("IsInf", {"x": data}, 20), 13)
    (result,) = ReferenceEvaluator(lowered).run(None, {"x": data})
    np.testing.assert_array_equal(result, [True, True, False, False])
