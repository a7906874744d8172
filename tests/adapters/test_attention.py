"""Attention across its versions: a value of another type than its query, heads of calls, one cache alone."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError
from reducelower.model.schemas import versions
from tests.adapters.models import converted, floats, run

pytestmark = pytest.mark.opset(24)

_NAMES = {np.float16: "float16", np.float32: "float"}
_TYPES = {name: kind for kind, name in _NAMES.items()}


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


def attended_under(mask: np.ndarray | None, scale: float | None) -> np.ndarray:
    """What the operator's page says, in double, with the weights of a row that is masked as a whole at zero."""
    q, k, v = (WIDE[name].astype(np.float64) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask.astype(np.float64))
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
    return np.where(np.isnan(weights), 0, weights) @ v


WIDE = {"q": floats(2, 3, 4, 8), "k": floats(2, 3, 6, 8, seed=1), "v": floats(2, 3, 6, 5, seed=2)}
SOME = np.random.default_rng(3).random((2, 1, 4, 6)) < 0.6
MASKS = {
    "none": None,
    "bools": SOME,
    "a row masked as a whole": SOME & (np.arange(4) != 2)[:, None],
    "numbers": floats(4, 6, seed=4),
    "infinities": np.where(SOME[0, 0] & (np.arange(4) != 1)[:, None], 0.5, -np.inf).astype(np.float32),
}


@pytest.mark.parametrize("target", [22, 13, 9])
@pytest.mark.parametrize("source", [23, 24])
@pytest.mark.parametrize("scale", [None, 0.25])
@pytest.mark.parametrize("kind", MASKS)
def test_as_many_heads_in_keys_as_in_queries_take_a_dozen_nodes(
    kind: str, scale: float | None, source: int, target: int
) -> None:
    mask = MASKS[kind]
    given = ""
    if mask is not None:
        shape = ", ".join(map(str, mask.shape))
        given = f", {'bool' if mask.dtype == np.bool_ else 'float'}[{shape}] m"
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": {source}]>
        g (float[2, 3, 4, 8] q, float[2, 3, 6, 8] k, float[2, 3, 6, 5] v{given}) => (float[2, 3, 4, 5] y)
        {{ y = Attention {"" if scale is None else f"<scale = {scale}>"} (q, k, v{", m" if given else ""}) }}"""
    )
    made = converted(model, target)
    assert len(made.graph.node) <= (12 if target > 9 else 17)  # 9 has neither Where nor Equal of floats
    feeds = WIDE | ({} if mask is None else {"m": mask})
    np.testing.assert_allclose(run(made, feeds)[0], attended_under(mask, scale), rtol=2e-5, atol=2e-6)


def test_what_a_known_mask_leaves_needs_no_look_at_masked_rows() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]>
        g (float[1, 2, 2, 4] q, float[1, 2, 2, 4] k, float[1, 2, 2, 4] v) => (float[1, 2, 2, 4] y)
        <float[2, 2] m = {0, -1, 2, 0}> { y = Attention (q, k, v, m) }"""
    )
    assert "ReduceMax" not in [node.op_type for node in converted(model, 18).graph.node]


def test_quantized_keys_and_values_are_not_moved_before_they_are_multiplied() -> None:
    """onnxruntime 1.31 carries their quantization past what only moves them, and then does not load the model."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]>
        g (float[1, 2, 3, 4] q, float[1, 2, 3, 4] k, float[1, 2, 3, 4] v) => (float[1, 2, 3, 4] y)
        <float s = {0.05}, int8 z = {3}> {
            k8 = QuantizeLinear (k, s, z)  kf = DequantizeLinear (k8, s, z)
            v8 = QuantizeLinear (v, s, z)  vf = DequantizeLinear (v8, s, z)  y = Attention (q, kf, vf)
        }"""
    )
    feeds = {"q": floats(1, 2, 3, 4), "k": floats(1, 2, 3, 4, seed=1), "v": floats(1, 2, 3, 4, seed=2)}
    made = converted(model, 21)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, feeds)
    q, k, v = (value.astype(np.float64) for value in feeds.values())
    k, v = (np.clip(np.rint(value / np.float32(0.05)) + 3, -128, 127) * 0.05 - 0.15 for value in (k, v))
    weights = np.exp(q @ k.swapaxes(-1, -2) / 2)
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


_ROWS, _COLUMNS = np.indices((3, 5))
_NEAR = (_ROWS - _COLUMNS < 2) & (_COLUMNS - _ROWS < 3)


@pytest.mark.parametrize("target", [24, 23, 22, 18])
@pytest.mark.parametrize(
    ("opset", "node", "inputs", "attended"),
    [
        (25, "<left_window_size = 1, right_window_size = 2> (q, k, v)", "", _NEAR),
        (24, "(q, k, v,,,, n)", ", int64[1] n", _COLUMNS < 4),
        (24, "(q, k, v, m)", ", bool[3, 4] m", _COLUMNS < 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["float", "float16"])
def test_what_came_after_opset_23_is_written_out(
    opset: int, node: str, inputs: str, attended: np.ndarray, target: int, kind: str
) -> None:
    if target >= opset or (kind == "float16" and opset == 24):
        return
    if opset not in versions("Attention"):
        pytest.skip("the installed onnx has no Attention of this opset version")
    sizes = "[1, 1, 5, 4]"
    model = parser.parse_model(f"""
    <ir_version: 10, opset_import: ["" : {opset}]>
    g (float[1, 1, 3, 4] q, float{sizes} k, {kind}{sizes} v{inputs}) => (float[1, 1, 3, 4] y) {{ y = Attention {node} }}
    """)
    feeds = {"q": floats(1, 1, 3, 4), "k": floats(1, 1, 5, 4, seed=1), "v": floats(1, 1, 5, 4, seed=2)}
    q, k, v = (value.astype(np.float64) for value in feeds.values())
    weights = np.where(attended, np.exp(q @ k.swapaxes(-1, -2) / 2), 0)
    given = {"n": np.array([4]), "m": np.ones((3, 4), bool)}
    feeds |= {name: given[name] for name in inputs[-1:]} | {"v": feeds["v"].astype(_TYPES[kind])}
    (result,) = ReferenceEvaluator(converted(model, target)).run(None, feeds)
    expected = weights @ v / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(result, expected, atol=1e-3 if kind == "float16" else 1e-6)


@pytest.mark.parametrize(("mask", "most"), [("", 5), (", bool[3, 3] m", 8), (", float[3, 3] m", 8)])
def test_attention_takes_few_nodes(mask: str, most: int) -> None:
    heads = "float[1, 2, 3, 4]"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 23]> g ({heads} q, {heads} k, {heads} v{mask}) => ({heads} y) '
        f"{{ y = Attention (q, k, v{', m' if mask else ''}) }}"
    )
    assert len(converted(model, 13).graph.node) <= most


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_rows_that_are_masked_as_a_whole_yield_zeros(kind: str) -> None:
    heads = "float[1, 2, 3, 4]"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 23]> g ({heads} q, {heads} k, {heads} v, {kind}[3, 3] m) => ({heads} y) '
        "{ y = Attention (q, k, v, m) }"
    )
    allowed = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0]], bool)
    mask = allowed if kind == "bool" else np.where(allowed, 0, -np.inf).astype(np.float32)
    q, k, v = (floats(1, 2, 3, 4, seed=seed) for seed in range(3))
    session = onnxruntime.InferenceSession(converted(model, 13).SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"q": q, "k": k, "v": v, "m": mask})
    weights = np.exp(q.astype(np.float64) @ k.swapaxes(-1, -2) / 2) * allowed
    expected = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30) @ v
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.opset(25)
@pytest.mark.parametrize("target", [24, 23])
def test_a_past_without_a_present_runs_below_25_too(target: int) -> None:
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 25]>
        g (float[1,1,2,4] q, float[1,1,2,4] k, float[1,1,2,4] v, float[1,1,3,4] pk, float[1,1,3,4] pv)
            => (float[1,1,2,4] y)
        { y = Attention(q, k, v, , pk, pv) }
    """)
    feeds = {name: floats(1, 1, 3 if name[0] == "p" else 2, 4, seed=seed) for seed, name in enumerate(["q", "k", "v"])}
    feeds |= {"pk": floats(1, 1, 3, 4, seed=3), "pv": floats(1, 1, 3, 4, seed=4)}
    result = converted(model, target)
    found = onnxruntime.InferenceSession(result.SerializeToString()).run(["y"], feeds)[0]
    keys, values = (np.concatenate([feeds[f"p{name}"], feeds[name]], 2)[0, 0].astype(np.float64) for name in "kv")
    scores = feeds["q"][0, 0].astype(np.float64) @ keys.T / 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(found[0, 0], weights / weights.sum(-1, keepdims=True) @ values, rtol=1e-5)
    assert [output.name for output in result.graph.output] == ["y"]


@pytest.mark.opset("opset")
@pytest.mark.parametrize(("opset", "outputs"), [(24, 'y, "", "", s'), (25, "y, k, v, s")])
@pytest.mark.parametrize("windows", ["", "<left_window_size = 1>"])
def test_scores_that_are_stated_without_the_past_are_refused(opset: int, outputs: str, windows: str) -> None:
    """Inference of onnx 1.23 leaves the past out of their size, so that a model may be valid that states it so."""
    if windows and opset < 25:
        pytest.skip("windows came with opset 25")
    text = f"""
        <ir_version: 10, opset_import: ["": {opset}]>
        g (float[2, 2, 1, 4] x, float[2, 2, 2, 4] p) => (float[2, 2, 1, %d] s)
        {{ {outputs} = Attention {windows} (x, x, x, "", p, p) }}
    """
    with pytest.raises(ConversionError, match="of 1 keys, and past and present are 3"):
        reducelower.convert_version(parser.parse_model(text % 1), 17)
    checker.check_model(reducelower.convert_version(parser.parse_model(text % 3), 17), full_check=True)
