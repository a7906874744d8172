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
from reducelower.verification import Tolerance, verify

from .models import model

SUM = "g (float[N, M] x) => (float[N, 1] y) <int64[1] axes = {1}> { y = ReduceSum (x, axes) }"


def sum_at_11(keepdims: int = 1, axis: int = 1) -> onnx.ModelProto:
    return model(
        f"g (float[N, M] x) => (float[A, B] y) {{ y = ReduceSum <axes = [{axis}], keepdims = {keepdims}> (x) }}", 11
    )


def test_a_right_conversion_is_equivalent() -> None:
    found = verify(model(SUM), sum_at_11())
    assert (found.equivalent, found.ran, found.runtime) == (True, True, "onnxruntime")
    (output,) = found.outputs
    assert (output.name, output.element_type, output.verdict, output.max_ulp) == ("y", "float", "equal", 0)
    assert found.coverage.outputs == ("y",)
    assert found.cases >= 3


def test_a_result_of_unknown_rank_takes_no_less() -> None:
    before, after = (model("g (float[N, 4] x) => (float[A, 4] y) { y = Cast <to = 1> (x) }") for _ in range(2))
    after.graph.input[0].type.tensor_type.ClearField("shape")
    assert verify(before, after).equivalent


def test_sizes_that_the_source_does_not_take_are_no_loss() -> None:
    """It declares any size and takes four alone, or was asked about with four alone."""
    text = "g (float[{0}, 4] x) => (float[4, 2, 2] y) <int64[3] s = {{4, 2, 2}}> {{ y = Reshape (x, s) }}"
    source, fixed = model(text.format("N")), model(text.format(4))
    assert verify(source, fixed, dims={"N": 4}).verdict == "equivalent"
    given = {"x": np.ones((4, 4), np.float32)}
    assert verify(source, fixed, inputs=given).verdict == "equivalent"
    wide = "g (float[{0}, 4] x) => (float[{0}, 4] y) {{ y = Relu (x) }}"
    assert verify(model(wide.format("N")), model(wide.format(4)), dims={"N": 4}).verdict == "equivalent"


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


def test_an_old_softmax_is_not_excused_by_the_reference_evaluator() -> None:
    before = model("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", 11)
    wrong = model(
        "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", onnx.defs.onnx_opset_version(), 11
    )
    assert not verify(before, wrong).equivalent


def test_random_operators_are_named_and_not_failed() -> None:
    body = (
        "g (float[N, 4] x) => (float[N, 4] y, float[N, 1] z) "
        "{ r = RandomNormalLike (x)  y = Add (x, r)  z = ReduceSum <axes = [1]> (x) }"
    )
    redrawn = body.replace("r = Random", "q = RandomNormalLike (x)  r = Random")
    found = verify(model(body, 11), model(redrawn, 11))
    assert found.verdict == "not shown"
    assert "output 'y' was not compared" in found.unseen[0]
    assert [item.verdict for item in found.outputs] == ["not compared", "equal"]
    assert "RandomNormalLike" in found.outputs[0].reason
    only = "g (float[N, 4] x) => (float[N, 4] y) { y = RandomNormalLike (x) }"
    alone = verify(model(only), model(only.replace("y = ", "q = RandomNormalLike (x)  y = ")))
    assert (alone.verdict, alone.ran) == ("not shown", False)


def test_indices_that_must_stay_in_range_are_found() -> None:
    body = "g (float[2, 3] x, int64[N] i) => (float[M, 3] y) { y = Gather (x, i) }"
    found = verify(model(body), model(body))
    assert found.ran
    assert any("small" in note or "zeros" in note for note in found.notes)


def test_symbols_are_bound_consistently_and_unnamed_sizes_by_axis() -> None:
    body = (
        "g (float[batch, k] a, float[k, m] b, float[?, 5] c, float[?, 5] d) => (float[batch, m] y, "
        "float[q, 5] z) { y = MatMul (a, b)  z = Add (c, d) }"
    )
    found = verify(model(body), model(body), dims={"batch": 4})
    assert found.ran
    assert found.cases == 4
    assert {output.shape_before[0] for output in found.outputs if output.name == "y"} == {4}


def test_rank_zero_and_unknown_rank_are_covered() -> None:
    before = model("g (float x) => (float y) { y = Abs (x) }")
    assert verify(before, before).ran
    free = model("g (float[] x) => (float y) { y = ReduceMax <keepdims = 0> (x) }")
    free.graph.input[0].type.tensor_type.ClearField("shape")
    assert verify(free, free).ran


def test_a_default_that_a_caller_may_override_has_to_stay_one() -> None:
    body = "g (float[N, M] x, int64[1] axes) => (float[A, B] y) { y = ReduceSum (x, axes) }"
    before = model(body)
    before.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    assert verify(before, before).equivalent
    frozen = verify(before, sum_at_11())
    assert frozen.verdict == "different"


def test_optional_and_sequence_inputs_are_skipped_with_a_word() -> None:
    body = "g (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence <axis = 0> (s) }"
    found = verify(model(body), model(body))
    assert not found.ran
    assert "no values are made for input 's' (sequence)" in found.reason
    given = verify(model(body), model(body), inputs={"s": [np.ones(2, np.float32), np.zeros(1, np.float32)]})
    assert given.ran
    assert given.equivalent


def test_sequence_outputs_are_compared_item_by_item() -> None:
    body = "g (float[4] x) => (seq(float[2]) s) { s = SplitToSequence (x, two) }"
    before, after = model(body), model(body)
    before.graph.initializer.append(numpy_helper.from_array(np.array(2), "two"))
    after.graph.initializer.append(numpy_helper.from_array(np.array(1), "two"))
    assert [item.name for item in verify(before, before).outputs] == ["s.length", "s[0]", "s[1]"]
    assert not verify(before, after).equivalent


def test_given_inputs_and_expected_outputs_are_used() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    right = verify(model(SUM), sum_at_11(), inputs={"x": x}, expected=[x.sum(1, keepdims=True)])
    assert (right.equivalent, right.cases) == (True, 1)
    wrong = verify(model(SUM), sum_at_11(), inputs={"x": x}, expected=[x.sum(1, keepdims=True) + 1])
    assert not wrong.equivalent
    assert "against the expected one" in str(wrong)


def test_sizes_of_given_inputs_bind_the_symbols_of_the_others() -> None:
    body = "g (float[N, M] a, float[N, M] b) => (float[N, M] y) { y = Add (a, b) }"
    found = verify(model(body), model(body), inputs={"a": np.ones((5, 9), np.float32)})
    assert found.outputs[0].shape_before == (5, 9)


def test_an_unknown_input_or_runtime_name_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no input called 'z'"):
        verify(model(SUM), model(SUM), inputs={"z": np.ones(1)})
    with pytest.raises(ValueError, match="no runtime is called 'abacus'"):
        verify(model(SUM), model(SUM), runtimes=("abacus",))


def test_tolerances_can_be_set() -> None:
    after = model(
        "g (float[N, M] x) => (float[N, 1] y) <int64[1] axes = {1}, float e = {0.01}> { s = ReduceSum "
        "(x, axes)  y = Add (s, e) }"
    )
    assert not verify(model(SUM), after).equivalent
    assert verify(model(SUM), after, tolerances={"float": Tolerance(ulp=64, absolute=0.02)}).equivalent


def test_both_sides_can_run_in_the_reference_evaluator() -> None:
    assert verify(model(SUM), sum_at_11(), runtimes=("reference",)).runtime == "reference"


def test_a_used_up_budget_says_so() -> None:
    found = verify(model(SUM), model(SUM), budget=0.0)
    assert (found.verdict, found.ran) == ("not shown", False)
    assert "budget" in found.reason


def test_a_run_that_outlasts_the_budget_is_stopped() -> None:
    body = (
        "g (int64 n, float[64, 64] x) => (float[64, 64] y) <bool go = {1}> { y = Loop (n, go, x) <body "
        "= b (int64 i, bool c, float[64, 64] v) => (bool d, float[64, 64] w) "
        "{ d = Identity (c)  t = MatMul (v, v)  w = Tanh (t) }> }"
    )
    found = verify(model(body), model(body), inputs={"n": np.array(10**9)}, budget=0.5)
    assert not found.ran
    assert "did not finish" in found.reason or "budget" in found.reason


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


def test_maps_from_classifiers_are_compared() -> None:
    inputs = [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", 2])]
    kind = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    )
    outputs = [helper.make_value_info("z", kind)]
    nodes = [helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])]
    imports = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)]
    classifier = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=imports, ir_version=8)
    found = verify(classifier, classifier)
    assert found.equivalent
    assert "z[0].values" in {item.name for item in found.outputs}


def test_a_symbol_that_no_input_has_is_refused() -> None:
    given = model("g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu (x) }", 18, 10)
    with pytest.raises(ValueError, match="no symbolic dimension called 'bach'"):
        verify(given, given, dims={"bach": 4})
    assert verify(given, given, dims={"batch": 4}).equivalent


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
