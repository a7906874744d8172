"""Attention across its versions: a value of another type than its query, heads of calls, one cache alone."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import converted, floats, run

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


FEEDS = {name: floats(1, 3, 4) for name in "qkv"}


def attended(heads: int) -> np.ndarray:
    """softmax(q k^T / sqrt(d)) v for each head, as the operator's page has it."""
    q, k, v = (FEEDS[name].reshape(3, heads, -1).transpose(1, 0, 2).astype(np.float64) for name in "qkv")
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights @ v).transpose(1, 0, 2).reshape(1, 3, 4)


def test_heads_that_a_call_of_a_function_states_are_known_to_the_body() -> None:
    model = parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 23, "local" : 1]>
    g (float[1,3,4] q, float[1,3,4] k, float[1,3,4] v) => (float[1,3,4] y) { y = local.f <heads = 2> (q, k, v) }
    <domain: "local", opset_import: ["" : 23]>
    f <heads> (q, k, v) => (y) { y = Attention <q_num_heads: int = @heads, kv_num_heads: int = @heads> (q, k, v) }
    """)
    np.testing.assert_allclose(run(converted(model, 18), FEEDS)[0], attended(2), rtol=1e-5)


@pytest.mark.parametrize("outputs", ["y, k2", 'y, "", v2'])
def test_one_of_the_caches_alone_is_still_yielded_from_opset_25_on(outputs: str) -> None:
    model: ModelProto = parser.parse_model(f"""
    <ir_version: 10, opset_import: ["" : 23]>
    g (float[1,1,3,4] q, float[1,1,3,4] k, float[1,1,3,4] v)
        => (float[1,1,3,4] y, float[a,b,c,d] {outputs.rsplit(" ", 1)[-1]})
    {{ {outputs} = Attention(q, k, v) }}
    """)
    feeds = {name: value.reshape(1, 1, 3, 4) for name, value in FEEDS.items()}
    results = ReferenceEvaluator(converted(model, 25)).run(None, feeds)
    np.testing.assert_allclose(results[1], feeds[outputs[-2]])
