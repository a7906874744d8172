"""Attention across its versions, and in functions whose calls state its heads."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import converted, floats, run

FEEDS = {name: floats(1, 3, 4) for name in "qkv"}


def attended(heads: int) -> np.ndarray:
    """softmax(q k^T / sqrt(d)) v for each head, as the operator's page has it."""
    q, k, v = (FEEDS[name].reshape(3, heads, -1).transpose(1, 0, 2).astype(np.float64) for name in "qkv")
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights @ v).transpose(1, 0, 2).reshape(1, 3, 4)


def test_heads_that_a_call_of_a_function_states_are_known_to_the_body() -> None:
    model = onnx.parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 23, "local" : 1]>
    g (float[1,3,4] q, float[1,3,4] k, float[1,3,4] v) => (float[1,3,4] y) { y = local.f <heads = 2> (q, k, v) }
    <domain: "local", opset_import: ["" : 23]>
    f <heads> (q, k, v) => (y) { y = Attention <q_num_heads: int = @heads, kv_num_heads: int = @heads> (q, k, v) }
    """)
    np.testing.assert_allclose(run(converted(model, 18), FEEDS)[0], attended(2), rtol=1e-5)


@pytest.mark.parametrize("outputs", ["y, k2", 'y, "", v2'])
def test_one_of_the_caches_alone_is_still_yielded_from_opset_25_on(outputs: str) -> None:
    model: ModelProto = onnx.parser.parse_model(f"""
    <ir_version: 10, opset_import: ["" : 23]>
    g (float[1,1,3,4] q, float[1,1,3,4] k, float[1,1,3,4] v)
        => (float[1,1,3,4] y, float[a,b,c,d] {outputs.rsplit(" ", 1)[-1]})
    {{ {outputs} = Attention(q, k, v) }}
    """)
    feeds = {name: value.reshape(1, 1, 3, 4) for name, value in FEEDS.items()}
    results = ReferenceEvaluator(converted(model, 25)).run(None, feeds)
    np.testing.assert_allclose(results[1], feeds[outputs[-2]])
