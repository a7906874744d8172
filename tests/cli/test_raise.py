"""`reducelower raise`: operators come back, verified, and nothing is written that does not hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import reducelower
from tests.conftest import Ran
from tools.exact.normalizations import exact_normalization

Cli = Callable[..., Ran]


def test_weights_in_the_file_are_not_read(cli: Cli, tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2, 3] x) => (float[2, 1] y, float[512, 512] z) '
        "<int64[1] a = {1}> { s = Mul(x, x) t = ReduceSum(s, a) y = Sqrt(t) z = Identity(w) }"
    )
    weight = numpy_helper.from_array(np.arange(512 * 512, dtype=np.float32).reshape(512, 512), "w")
    model.graph.initializer.append(weight)
    onnx.save(model, tmp_path / "in.onnx")
    assert cli("raise", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx").status == 0
    written = onnx.load(tmp_path / "out.onnx")
    assert [node.op_type for node in written.graph.node] == ["ReduceL2", "Identity"]
    assert written.graph.initializer[1].raw_data == weight.raw_data


# Normalizations in half precision, for runtimes that have them and for one that has not

HALF = """<ir_version: 8, opset_import: ["" : 13]>
g (float16[2,64] x, float16[64] s, float16[64] b) => (float16[2,64] y) <float16 two = {16384}, float16 epsilon = {168}>
{ m = ReduceMean<axes = [-1]>(x)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean<axes = [-1]>(q)
  e = Add(v, epsilon)  r = Sqrt(e)  n = Div(d, r)  c = Mul(n, s)  y = Add(c, b) }"""
"""The text holds float16 as bits: 2 and 1e-5."""

WITHOUT_NORMALIZATIONS = """
[runtime]
name = "toy"
version = "1"
about = "A runtime without normalizations."

[opsets]
reads = "7-23"

[[fact]]
says = "There is no such operator."
operators = ["LayerNormalization", "InstanceNormalization"]
is = "absent"
evidence = { documented = "nowhere" }
"""


def half_precision(model: onnx.ModelProto) -> tuple[np.ndarray, np.ndarray]:
    """What a model yields where squares overflow float16, and what it should."""
    random = np.random.default_rng(2)
    x, s, b = random.normal(0, 1e4, (2, 64)), random.normal(1, 0.1, 64), random.normal(0, 0.1, 64)
    x, s, b = (value.astype(np.float16) for value in (x, s, b))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": x, "s": s, "b": b})
    exact = exact_normalization("LayerNormalization", [x, s, b], {"axis": -1, "epsilon": 1e-5})
    return found.astype(np.float64), exact.astype(np.float64)


@pytest.mark.parametrize("runtime", ["mnn", "openvino", "opencv", "tract", "onnxruntime"])
def test_half_precision_is_raised_for_a_runtime_that_has_the_operator(cli: Cli, tmp_path: Path, runtime: str) -> None:
    onnx.save(onnx.parser.parse_model(HALF), tmp_path / "m.onnx")
    output = tmp_path / "out.onnx"
    ran = cli("convert", tmp_path / "m.onnx", "-o", output, "--opset", 17, "--for", runtime, "--raise", "--no-verify")
    assert ran.status == 0, ran.err
    model = onnx.load(output)
    assert [node.op_type for node in model.graph.node] == ["LayerNormalization"]
    assert cli("check", output, "--for", runtime, "--opset", 17).status == 0
    found, exact = half_precision(model)
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=2e-3)


def test_half_precision_for_tensorrt_is_computed_in_float(cli: Cli, tmp_path: Path) -> None:
    """As its page recommends: put together, and then written in float."""
    onnx.save(onnx.parser.parse_model(HALF), tmp_path / "m.onnx")
    raised, output = tmp_path / "raised.onnx", tmp_path / "out.onnx"
    assert cli("convert", tmp_path / "m.onnx", "-o", raised, "--opset", 17, "--raise").status == 0
    assert cli("convert", raised, "-o", output, "--for", "tensorrt").status == 0
    found, exact = half_precision(onnx.load(output))
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=2e-3)


def test_half_precision_is_written_out_safely_for_a_runtime_without_the_operator(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text(WITHOUT_NORMALIZATIONS)
    spelled = onnx.parser.parse_model(HALF)
    assert not np.isfinite(half_precision(spelled)[0]).all() or not np.isclose(*half_precision(spelled)).all()
    onnx.save(reducelower.raise_reductions(reducelower.convert_version(spelled, 17)), tmp_path / "m.onnx")
    output = tmp_path / "out.onnx"
    ran = cli("convert", tmp_path / "m.onnx", "-o", output, "--for", tmp_path / "toy.toml", "--raise")
    assert ran.status == 0, ran.err
    assert "LayerNormalization was not raised: on toy 1: There is no such operator (documented)" in " ".join(
        ran.out.split()
    )
    assert "InstanceNormalization" not in ran.out
    model = onnx.load(output)
    assert "LayerNormalization" not in {node.op_type for node in model.graph.node}
    found, exact = half_precision(model)
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=2e-3)
