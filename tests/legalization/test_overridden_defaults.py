"""Nothing that is written may follow from the default of an input, since callers may override it."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, parser

import reducelower
from reducelower.verification import verify

_CASES = {
    "sizes of Resize": (
        "float[1,1,4,4] x, int64[4] k",
        "int64[4] k = {1,1,8,8}",
        'z = Resize <mode = "linear"> (x, , , k) y = Relu(z)',
        [1, 1, 3, 5],
    ),
    "repeats of Tile, which decide what Resize reads": (
        "float[1,1,4,4] x, int64[4] k",
        "int64[4] k = {1,1,1,1}, int64[4] s = {1,1,5,5}",
        'z = Tile(x, k) y = Resize <mode = "nearest"> (z, , , s)',
        [1, 1, 2, 1],
    ),
    "sizes of Split": (
        "float[1,1,4,4] x, int64[2] k",
        "int64[2] k = {1,3}, int64[4] s = {1,1,5,5}",
        'z, rest = Split <axis = 3> (x, k) y = Resize <mode = "nearest"> (z, , , s)',
        [3, 1],
    ),
    "a shape, before Trilu": (
        "float[2,8] x, int64[2] k",
        "int64[2] k = {4,4}",
        "z = Reshape(x, k) y = Trilu(z)",
        [2, 8],
    ),
    "indices of OneHot, some below zero": (
        "float[1] x, int64[2] k",
        "int64[2] k = {-1,2}, int64 d = {5}, float[2] v = {0,1}",
        "h = OneHot(k, d, v) y = Mul(h, x)",
        [3, -2],
    ),
    "a shape, before CumSum": (
        "float[2,8] x, int64[2] k",
        "int64[2] k = {4,4}, int64 a = {1}",
        "z = Reshape(x, k) y = CumSum(z, a)",
        [1, 16],
    ),
    "a shape, before Softmax": (
        "float[2,8] x, int64[2] k",
        "int64[2] k = {4,4}",
        "z = Reshape(x, k) y = Softmax <axis = 0> (z)",
        [8, 2],
    ),
}


def _model(inputs: str, defaults: str, body: str, opset: int = 18) -> ModelProto:
    sizes = "a, b, c, d" if "[1,1,4,4]" in inputs else "a, b"
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (float[{sizes}] y) <{defaults}> {{ {body} }}'
    return parser.parse_model(text)


def _run(model: ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], feeds)[0])


@pytest.mark.parametrize("target", [7, 9, 10, 13])
@pytest.mark.parametrize("case", _CASES)
def test_the_result_follows_what_a_caller_gives(case: str, target: int) -> None:
    inputs, defaults, body, given = _CASES[case]
    source = _model(inputs, defaults, body)
    try:
        made = reducelower.convert_version(source, target)
    except reducelower.ConversionError:
        assert target < 9
        return
    checker.check_model(made, full_check=True)
    (shape,) = (value.type.tensor_type.shape.dim for value in source.graph.input if value.name == "x")
    sizes = [dim.dim_value for dim in shape]
    x = np.random.default_rng(1).standard_normal(sizes).astype(np.float32)
    for feeds in ({"x": x}, {"x": x, "k": np.array(given)}):
        expected = _run(source, feeds)
        np.testing.assert_allclose(_run(made, feeds), expected, rtol=1e-5, atol=1e-6)


def test_types_follow_from_defaults_that_are_frozen_and_the_proof_sees_it() -> None:
    inputs, defaults, body, _ = _CASES["sizes of Resize"]
    source = _model(inputs, defaults, body)
    frozen = reducelower.convert_version(source, 10, freeze_defaults=True)
    x = np.random.default_rng(1).standard_normal((1, 1, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(_run(frozen, {"x": x}), _run(source, {"x": x}), rtol=1e-5, atol=1e-6)
    assert verify(source, frozen).verdict == "different"
    del source.graph.input[1]
    assert verify(source, frozen).verdict == "equivalent"
