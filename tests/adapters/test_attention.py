"""Attention where the target has none, with a value of another float type than its query."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import converted, floats

pytestmark = pytest.mark.opset(24)

_NAMES = {np.float16: "float16", np.float32: "float"}


@pytest.mark.parametrize("target", [22, 15])
@pytest.mark.parametrize(("query", "value"), [(np.float16, np.float32), (np.float32, np.float16)])
def test_query_and_value_may_be_of_different_types(query: type, value: type, target: int) -> None:
    left, right = _NAMES[query], _NAMES[value]
    made = parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["": 24]>
        g ({left}[1, 2, 3, 4] q, {left}[1, 2, 5, 4] k, {right}[1, 2, 5, 4] v)
            => ({left}[1, 2, 3, 4] y, {left}[1, 2, 3, 5] z)
        {{ y, , , z = Attention <qk_matmul_output_mode = 0> (q, k, v) }}
        """
    )
    feeds = {
        "q": floats(1, 2, 3, 4).astype(query),
        "k": floats(1, 2, 5, 4, seed=1).astype(query),
        "v": floats(1, 2, 5, 4, seed=2).astype(value),
    }
    result, product = ReferenceEvaluator(converted(made, target)).run(None, feeds)
    q, k, v = (feeds[name].astype(np.float64) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) / 2
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert (result.dtype, product.dtype) == (query, query)
    np.testing.assert_allclose(product, scores, rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(result, weights @ v, rtol=5e-3, atol=5e-3)
