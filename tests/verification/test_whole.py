from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from reducelower import convert_version
from reducelower.errors import UnreadableModelError
from reducelower.verification import verify
from reducelower.verification.running.source import CannotRunError, Source
from reducelower.verification.whole.runs import SourceRuns
from tests.models import model

SUM = "g (float[N, M] x) => (float[N, 1] y) <int64[1] axes = {1}> { y = ReduceSum (x, axes) }"


def sum_at_11(keepdims: int = 1, axis: int = 1) -> onnx.ModelProto:
    return model(
        f"g (float[N, M] x) => (float[A, B] y) {{ y = ReduceSum <axes = [{axis}], keepdims = {keepdims}> (x) }}", 11
    )


def runs_in_onnxruntime(given: onnx.ModelProto) -> bool:
    try:
        onnxruntime.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


# Before 1.32 onnxruntime does not run the newest opset version that onnx 1.23 knows.
NOT_THE_NEWEST = pytest.mark.skipif(
    runs_in_onnxruntime(model(SUM, onnx.defs.onnx_opset_version(), 11)), reason="onnxruntime runs the newest opset"
)


@NOT_THE_NEWEST
def test_opsets_onnxruntime_does_not_support_run_in_the_reference_evaluator() -> None:
    newest = onnx.defs.onnx_opset_version()
    found = verify(model(SUM, newest, 11), model(SUM, newest, 11))
    assert (found.equivalent, found.ran, found.runtime) == (True, True, "reference")


@NOT_THE_NEWEST
def test_sides_that_need_different_runtimes_are_each_run_where_they_run() -> None:
    found = verify(model(SUM), model(SUM, onnx.defs.onnx_opset_version(), 11))
    assert found.equivalent
    assert found.runtime == "onnxruntime / reference"
    assert found.notes


def test_an_unknown_input_or_runtime_name_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="there is no input 'z'"):
        verify(model(SUM), model(SUM), inputs={"z": np.ones(1)})
    with pytest.raises(ValueError, match="no runtime is called 'abacus'"):
        verify(model(SUM), model(SUM), runtimes=("abacus",))


def test_models_with_external_data_run_from_their_path(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    weights = np.arange(2000, dtype=np.float32).reshape(2, 1000)
    before = model("g (float[N, 2] x) => (float[N, 1000] y) { y = MatMul (x, w) }")
    before.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(before, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert verify(path, str(path)).ran
    assert verify(path, path, runtimes=("reference",)).ran
    detached = onnx.load(path, load_external_data=False)
    assert "give its path" in verify(detached, detached).reason
    assert verify(detached, path, base_dir=tmp_path).runtime == "onnxruntime"


@pytest.fixture
def with_external_constant(tmp_path: Path) -> Path:
    """A model whose only external data is the value of a Constant node."""
    (tmp_path / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    given = model("g (float[4] x) => (float[4] y) { y = Add (x, c) }")
    given.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=tensor))
    path = tmp_path / "model.onnx"
    path.write_bytes(given.SerializeToString())
    return path


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
def test_external_data_of_constant_nodes_is_found(with_external_constant: Path, runtime: str) -> None:
    path = with_external_constant
    assert verify(path, path, runtimes=(runtime,)).runtime == runtime
    detached = onnx.load(path, load_external_data=False)
    assert verify(detached, detached, runtimes=(runtime,), base_dir=path.parent).runtime == runtime


def test_external_data_of_constant_nodes_that_is_out_of_reach_is_told(with_external_constant: Path) -> None:
    detached = onnx.load(with_external_constant, load_external_data=False)
    assert "give its path" in verify(detached, detached).reason


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
def test_unreadable_files_are_one_kind_of_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableModelError, match=r"model\.onnx"):
        verify(path, path)


def test_nothing_reaches_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    verify(model(SUM), model(SUM, onnx.defs.onnx_opset_version(), 11))
    body = "g (float[2, 3] x, int64[N] i) => (float[M, 3] y) { y = Gather (x, i) }"
    verify(model(body), model(body))
    assert capfd.readouterr() == ("", "")


def test_the_facts_are_json(tmp_path: Path) -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    after = model(
        "g (float[N, M] x) => (float[N, 1] y) <int64[1] axes = {1}, float z = {0}> { s = ReduceSum (x, "
        "axes)  y = Div (s, z) }"
    )
    text = json.dumps(verify(model(SUM), after).to_dict())
    plain = json.loads(text, parse_constant=refuse)
    assert plain["equivalent"] is False
    assert plain["outputs"][0]["name"] == "y"


def test_the_callers_models_are_not_changed() -> None:
    before, after = model(SUM), sum_at_11()
    kept = before.SerializeToString(), after.SerializeToString()
    verify(before, after)
    assert (before.SerializeToString(), after.SerializeToString()) == kept


def test_a_symbol_that_no_input_has_is_refused() -> None:
    given = model("g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu (x) }", 18, 10)
    with pytest.raises(ValueError, match="there is no symbolic dimension 'bach'"):
        verify(given, given, dims={"bach": 4})
    assert verify(given, given, dims={"batch": 4}).equivalent
    with pytest.raises(ValueError, match=r"shape \[2,3\] was given, but batch is 4 by --dim"):
        verify(given, given, inputs={"x": np.ones((2, 3), np.float32)}, dims={"batch": 4})


def test_a_size_below_zero_is_one_that_is_not_known() -> None:
    """Paddle2ONNX and others write -1, which onnxruntime and the checker take."""
    stated = model("g (float[N, 3] x) => (float[N, 3] y) { y = Neg (x) }")
    stated.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert verify(stated, model("g (float[N, 3] x) => (float[N, 3] y) { y = Neg (x) }")).equivalent


def test_last_digits_of_an_output_are_not_looked_into() -> None:
    """Values near 0 of an output differ by more of themselves than rounding by itself explains."""
    given = model(
        "g (float[64, 256] x) => (float[64, 40] y) { t = Tanh (x)  p = LayerNormalization (t, c)  q = MatMul (p, w) "
        "r = LayerNormalization (q, d)  s = MatMul (r, v)  y = LayerNormalization (s, e) }",
        18,
    )
    drawn = np.random.default_rng(0)
    for name, shape in {"c": (256,), "w": (256, 64), "d": (64,), "v": (64, 40), "e": (40,)}.items():
        weight = drawn.standard_normal(shape).astype(np.float32)
        given.graph.initializer.append(numpy_helper.from_array(weight, name))
    found = verify(given, convert_version(given, 13))
    assert found.equivalent, found
    (output,) = found.outputs
    assert 0 < output.max_relative < 8 * np.finfo(np.float32).eps
    assert not any("rounding which the model amplifies" in note for note in found.notes)


def test_what_is_watched_inside_is_of_the_run_that_is_made_anyway() -> None:
    source = model("g (float[3] x) => (float[3] y) { a = Neg (x)  s = SequenceConstruct (a)  y = Abs (a) }")
    runs = SourceRuns(Source(source), {"x": np.array([1, -2, 3], np.float32)})
    seen = runs.seen(("onnxruntime",), ["a", "y"])
    run = runs.run(("onnxruntime",), [])
    assert seen["a"] is run.inside["a"]
    assert (seen["a"] == [-1, 2, -3]).all()
    assert (seen["y"] == [1, 2, 3]).all()
    assert [len(results) for results in run.results] == [1] * len(run.cases)


def test_where_nothing_inside_is_given_the_source_is_run_all_the_same() -> None:
    source = model("g (float[3] x) => (float[3] y) { a = Optional <type = float[3]> ()  y = Abs (x) }")
    runs = SourceRuns(Source(source), {})
    assert "x" in runs.seen(("onnxruntime",), ["a"])
    assert runs.run(("onnxruntime",), []).runtime == "onnxruntime"


def test_that_the_source_takes_no_inputs_is_found_once() -> None:
    class Given(dict[str, Any]):
        asked = 0

        def __contains__(self, name: object) -> bool:
            Given.asked += 1
            return super().__contains__(name)

    reshapes = "g (float[2, 3] x) => (float[4] y) <int64[1] four = {4}> { y = Reshape (x, four) }"
    runs, asked = SourceRuns(Source(model(reshapes)), Given()), []
    for _ in range(2):
        with pytest.raises(CannotRunError, match="no inputs were found that it accepts"):
            runs.run(("onnxruntime",), [])
        asked.append(Given.asked)
    assert asked[0] == asked[1] > 0


def test_a_reason_of_onnxruntime_begins_after_the_place_in_its_code() -> None:
    given = model(
        """g (float[B, S, 32] q, float[B, S, 16] k, float[B, S, 16] v, float[B, 1, S, T] m, float[B, 2, P, 8] p,
            float[B, 2, P, 8] w) => (float[B, S, 32] y, float[B, 2, N, 8] a, float[B, 2, N, 8] b) {
            y, a, b = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v, m, p, w) }""",
        23,
    )
    with pytest.raises(CannotRunError, match=r"accepts: onnxruntime: inconsistent total_sequence_length"):
        SourceRuns(Source(given), {}).run(("onnxruntime",), [])
