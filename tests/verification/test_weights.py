"""Large weights beside their models: the same numbers, wherever they are held and however they are spelled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower.files.external import external_tensors
from reducelower.verification import verify
from reducelower.verification.running.runtimes import OnnxRuntime, ReferenceRuntime
from reducelower.verification.running.source import Source
from reducelower.verification.running.weights import (
    held_by,
    held_name,
    in_files,
    is_held,
    with_weights,
    without_weights,
)
from tests.models import model

SIZE = 200
X = np.random.default_rng(1).standard_normal((2, SIZE)).astype(np.float32)
W = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)


def multiplying(value: np.ndarray = W, *, raw: bool = True, opset: int = 18) -> ModelProto:
    given = model(f"g (float[N, {SIZE}] x) => (float[N, {SIZE}] y) {{ y = MatMul (x, w) }}", opset)
    tensor = numpy_helper.from_array(value, "w")
    if not raw:
        tensor = helper.make_tensor("w", TensorProto.FLOAT, value.shape, value.ravel().tolist())
    given.graph.initializer.append(tensor)
    return given


def test_equal_values_have_one_name_and_others_another() -> None:
    other = W.copy()
    other[0, 0] = np.nextafter(other[0, 0], np.float32(9))
    kept = [without_weights(given) for given in (multiplying(), multiplying(raw=False), multiplying(other))]
    names = [held_name(given.graph.initializer[0]) for given, _ in kept]
    assert names[0] == names[1] != names[2]
    assert kept[0][1][0] is kept[1][1][0]


def test_values_that_differ_in_the_bits_of_a_nan_or_a_zero_have_names_of_their_own() -> None:
    zeros = np.zeros((SIZE, SIZE), np.float32)
    kept = [without_weights(multiplying(value)) for value in (zeros, -zeros)]
    assert held_name(kept[0][0].graph.initializer[0]) != held_name(kept[1][0].graph.initializer[0])


def test_a_model_gets_its_weights_back() -> None:
    given = multiplying()
    bare, weights = without_weights(given)
    assert len(bare.SerializeToString()) < 1000 < W.nbytes == weights[0].nbytes
    assert with_weights(bare) == given
    assert all(map(is_held, external_tensors(bare)))


@pytest.mark.parametrize("runtime", [OnnxRuntime(), ReferenceRuntime()], ids=["onnxruntime", "reference"])
def test_it_runs_as_the_model_does(runtime: OnnxRuntime | ReferenceRuntime) -> None:
    given = multiplying()
    source = Source.of(given)
    assert held_by(source.proto)
    (result,) = runtime.load(source).run({"x": X})
    (expected,) = ort.InferenceSession(given.SerializeToString()).run(None, {"x": X})
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_weights_in_a_file_are_read_from_there(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(multiplying(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    source = Source.of(onnx.load(path, load_external_data=False), tmp_path)
    placed, folder = in_files(source.proto)
    assert (held_by(placed), folder) == ({}, tmp_path)
    (expected,) = ort.InferenceSession(str(path)).run(None, {"x": X})
    np.testing.assert_allclose(OnnxRuntime().load(source).run({"x": X})[0], expected, rtol=1e-5, atol=1e-5)
    (tmp_path / "w.bin").write_bytes(np.zeros_like(W).tobytes())  # what is mapped is not read anew
    assert in_files(source.proto) == (source.proto, None)


def test_what_is_wrong_with_a_model_is_said_of_the_model() -> None:
    given = multiplying()
    given.graph.node[0].op_type = "Conv"
    found = verify(given, given)
    assert found.verdict == "not shown"
    assert "held in memory" not in str(found)


def test_small_weights_files_and_defaults_stay_in_the_model() -> None:
    default = multiplying()
    default.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [SIZE, SIZE]))
    assert without_weights(default) == (default, [])
    small = multiplying(W[:10, :10])
    assert without_weights(small) == (small, [])


def test_a_large_constant_is_the_same_value_as_an_initializer() -> None:
    given, spelled = multiplying(), multiplying()
    del spelled.graph.initializer[:]
    spelled.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(W)))
    onnx.checker.check_model(spelled)
    found = verify(given, spelled)
    assert found.verdict == "equivalent"
    assert not found.sites


def test_a_large_constant_that_one_side_alone_reads_is_one_of_its_own() -> None:
    given, other = (
        model(f"g (float[N, 200] x) => (float[N, 200] y, float[200] z) {{ z = Neg (w)  y = {body} }}")
        for body in ("Mul (x, w)", "Identity (x)")
    )
    for each in (given, other):
        value = numpy_helper.from_array(np.ones(SIZE, np.float32))
        each.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=value))
    assert verify(given, other).verdict == "equivalent"


def test_one_element_of_a_large_weight_is_seen() -> None:
    other = W.copy()
    other[7, 9] += 1
    assert verify(multiplying(), multiplying(other)).verdict == "different"


ROWS = 3000
TABLE = np.random.default_rng(3).standard_normal((ROWS, 30)).astype(np.float32)


def looking_up(table: np.ndarray, body: str) -> ModelProto:
    given = model(body)
    given.graph.initializer.append(numpy_helper.from_array(table, "w"))
    return given


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("g (int64[N] i) => (float[A, B] y) { y = Gather (w, i) }", "different"),
        ("g (int64[7] i) => (float[A, B] y) { y = Gather (w, i) }", "different"),
        ("g (int32[2, N] i) => (float[A, B, C] y) { y = Gather (w, i) }", "different"),
        (
            "g (int64[N, 1] i) => (float[A, B] y) <int64[1] f = {-1}> { j = Reshape (i, f)  y = Gather (w, j) }",
            "different",
        ),
        ("g (int64[1] i) => (float[A, B] y) { y = Gather (w, i) }", "different"),
        ("g (int64[N, 1] i) => (float[A, B] y) { y = GatherND (w, i) }", "not shown"),
    ],
)
def test_one_row_of_a_large_table_is_seen_or_it_is_said_that_it_was_not(body: str, verdict: str) -> None:
    other, rounded = TABLE.copy(), TABLE * np.float32(1 + 1e-7)
    other[2345, 6] += 1
    assert verify(looking_up(TABLE, body), looking_up(other, body)).verdict == verdict
    assert verify(looking_up(TABLE, body), looking_up(TABLE, body)).verdict == "equivalent"
    assert verify(looking_up(TABLE, body), looking_up(rounded, body)).verdict == "equivalent"
