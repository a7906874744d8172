"""How models are loaded: small ones without threads, which would take longer to start than the model to run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from reducelower import expand, verify
from reducelower.verification.running.runtimes import OnnxRuntime, ReferenceRuntime
from reducelower.verification.running.source import CannotRunError, Source
from tests.models import model


def options_of(source: Source) -> Any:
    session: Any = OnnxRuntime().load(source)
    return session._session.get_session_options()


SMALL = model("g (float[N] x) => (float[N] y) { y = Neg (x) }")


def of_a_million_values() -> onnx.ModelProto:
    given = model("g (float[N] x) => (float[N] y) { y = Add (x, w) }")
    given.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [1 << 20], bytes(4 << 20), raw=True))
    return given


@pytest.mark.parametrize(("given", "threads"), [(SMALL, 1), (of_a_million_values(), 0)], ids=["small", "large"])
def test_threads_for_models_in_memory(given: onnx.ModelProto, threads: int) -> None:
    assert options_of(Source(given)).intra_op_num_threads == threads


def test_threads_do_not_spin_between_runs() -> None:
    """Verification runs models one after the other, and leaves the processor to other processes meanwhile."""
    assert options_of(Source(of_a_million_values())).get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_a_scan_that_the_reference_evaluator_lacks_says_nothing_against_the_model() -> None:
    given = model(
        "g (float[3, 4] x) => (float[4, 3] y) { y = Scan <num_scan_inputs = 1, scan_input_axes = [1], "
        "body = b (float[3] v) => (float[3] w) { w = Neg (v) }> (x) }"
    )
    with pytest.raises(CannotRunError) as caught:
        ReferenceRuntime().load(Source(given)).run({"x": np.zeros((3, 4), np.float32)})
    assert caught.value.unsupported


def test_an_error_of_onnxruntime_is_told_without_the_place_in_its_code() -> None:
    given = model(
        "g (float[2, 3] x, int64[K] s) => (float[a, b] y) { r = Reshape (x, s)  y = Concat <axis = 0> (x, r) }"
    )
    with pytest.raises(CannotRunError) as caught:
        OnnxRuntime().load(Source(given)).run({"x": np.zeros((2, 3), np.float32), "s": np.array([6])})
    assert str(caught.value).startswith("onnxruntime: Ranks of input data are different")


def test_inputs_that_onnxruntime_writes_statistics_over_stay_as_they_are() -> None:
    given = model(
        "g (float[N, 3, 4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[N, 3, 4] y, float[3] n) "
        "{ y, r, q = BatchNormalization <training_mode = 1> (x, s, b, m, v)  n = Add (r, q) }",
        15,
    )
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    feeds = {"x": x, **{name: np.full(3, 2, np.float32) for name in "sbmv"}}
    OnnxRuntime().load(Source(given)).run(feeds)
    assert all((feeds[name] == 2).all() for name in "sbmv")


_TRACT = """
import os
import numpy as np
import onnx as package
import onnxruntime

class TractError(Exception): pass
class DatumType: I64 = 0

class Value:
    def __init__(self, value): self.value = value
    def datum_type(self): return 0
    def to_numpy(self): return self.value

class Model:
    def __init__(self, path): self.model = package.load(path)
    def into_model(self): return self
    def into_runnable(self): return self
    def run(self, inputs):
        if any(node.op_type == "REFUSED" for node in self.model.graph.node):
            os.abort()
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        return [Value(value) for value in session.run(None, dict(zip(names, inputs)))]

class onnx:
    def load(self, path): return Model(path)
"""
"""A runtime made up for tests, under the name of one that there is an adapter for."""


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter is a shell script")
@pytest.mark.parametrize(("refused", "verdict"), [("Sqrt", "different"), ("Neg", "not shown"), ("None", "equivalent")])
def test_a_result_that_the_runtime_ends_on_is_different_unless_the_source_is_refused_too(
    refused: str, verdict: str, tmp_path: Path
) -> None:
    source = model("g (float[2, 3] x) => (float[2, 3] y) { n = Neg (x) l = ReduceL2 (n) y = Mul (n, l) }", 18)
    (tmp_path / "tract.py").write_text(_TRACT.replace("REFUSED", refused))
    installed = tmp_path / "tract-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: tract\nVersion: 1.0\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    found = verify(source, expand(source, rules="stable"), runtimes=[f"tract:{python}"])
    assert found.verdict == verdict, str(found)
    assert ("the converted model does not" in found.reason) is (verdict != "equivalent")
