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


def test_another_axis_is_found_though_shapes_agree() -> None:
    found = verify(model(SUM), sum_at_11(axis=0), dims={"N": 1, "M": 1})
    assert {item.verdict for item in found.outputs} == {"equal"}  # nothing to see at these sizes
    assert found.verdict == "different"  # but at others, by itself


def test_another_shape_is_a_mismatch() -> None:
    found = verify(model(SUM), sum_at_11(keepdims=0))
    assert not found.equivalent
    assert "shape" in found.outputs[0].reason
    assert "'y'" in str(found)


def test_another_element_type_is_a_mismatch() -> None:
    after = model(
        "g (float[N, M] x) => (double[N, 1] y) <int64[1] axes = {1}> { s = ReduceSum (x, axes)  y = "
        "Cast <to = 11> (s) }"
    )
    found = verify(model(SUM), after)
    assert "element type float before, double after" in found.outputs[0].reason


def test_other_outputs_are_a_mismatch() -> None:
    after = model("g (float[N, M] x) => (float[N, M] z) { z = Identity (x) }")
    found = verify(model(SUM), after)
    assert (found.equivalent, found.ran) == (False, False)
    assert "outputs" in found.reason


def test_an_input_the_source_does_not_have_is_a_mismatch() -> None:
    after = model("g (float[N, M] x, int64[1] axes) => (float[N, 1] y) { y = ReduceSum (x, axes) }")
    assert "axes" in verify(model(SUM), after).reason


NARROW = "g ({} x) => (float[A, 4] y) {{ y = Cast <to = 1> (x) }}"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("float[N, 4]", "float[4, 4]", "float[3, 4] for input 'x', which the converted model declares as float[4, 4]"),
        ("float[N, 4]", "float[3, 4]", "float[1, 4] for input 'x'"),
        ("float[3, 4]", "float[4, 4]", "float[3, 4] for input 'x'"),
        ("float[N, 4]", "float[N, 4, 1]", "declares as float[N, 4, 1]"),
        ("float[N, 4]", "double[N, 4]", "declares as double[N, 4]"),
        ("float[4, 4]", "float[N, 4]", ""),
        ("float[4, 4]", "float[N, N]", ""),
        ("float[N, 4]", "float[N, 4]", ""),
        ("float[N, 4]", "float", ""),
    ],
)
def test_a_result_that_takes_less_than_the_source_is_different(before: str, after: str, told: str) -> None:
    sides = [model(NARROW.format(declared)) for declared in (before, after)]
    if after == "float":
        sides[1].graph.input[0].type.tensor_type.ClearField("shape")
    found = verify(*sides)
    assert found.verdict == ("different" if told else "equivalent"), str(found)
    assert told in found.reason


def test_sizes_that_the_source_does_not_take_are_no_loss() -> None:
    """It declares any size and takes four alone, or was asked about with four alone."""
    text = "g (float[{0}, 4] x) => (float[4, 2, 2] y) <int64[3] s = {{4, 2, 2}}> {{ y = Reshape (x, s) }}"
    source, fixed = model(text.format("N")), model(text.format(4))
    assert verify(source, fixed, dims={"N": 4}).verdict == "equivalent"
    given = {"x": np.ones((4, 4), np.float32)}
    assert verify(source, fixed, inputs=given).verdict == "equivalent"
    wide = "g (float[{0}, 4] x) => (float[{0}, 4] y) {{ y = Relu (x) }}"
    assert verify(model(wide.format("N")), model(wide.format(4)), dims={"N": 4}).verdict == "equivalent"


def test_reordered_sums_pass_and_their_distance_is_told() -> None:
    before = model("g (float[1000] x) => (float s) { s = ReduceSum <keepdims = 0> (x) }")
    after = model(
        "g (float[1000] x) => (float s) <int64[2] shape = {8, 125}> "
        "{ r = Reshape (x, shape)  p = ReduceSum <keepdims = 0> (r, axes)  s = ReduceSum <keepdims = 0> (p) }".replace(
            "<int64[2]", "<int64[1] axes = {0}, int64[2]"
        )
    )
    found = verify(before, after)
    assert found.equivalent, str(found)


def test_a_cancelled_sum_passes_only_as_far_as_the_source_itself_is_sensitive() -> None:
    wide = np.concatenate([np.full(500, 1e4), np.full(500, -1e4)]).astype(np.float32) + np.linspace(
        0, 1, 1000, dtype="f"
    )
    before = model("g (float[1000] x) => (float s) { s = ReduceSum <keepdims = 0> (x) }")
    halves = (
        "<int64[1] axes = {0}, int64[2] shape = {2, 500}> { r = Reshape (x, shape)  p = ReduceSum "
        "<keepdims = 0> (r, axes)"
    )
    after = model(f"g (float[1000] x) => (float s) {halves}  s = ReduceSum <keepdims = 0> (p) }}")
    wrong = model(f"g (float[1000] x) => (float s) {halves}  q = Mul (p, p)  s = ReduceMax <keepdims = 0> (q) }}")
    assert verify(before, after, inputs={"x": wide}).equivalent
    assert not verify(before, wrong, inputs={"x": wide}).equivalent


@pytest.mark.parametrize("kind", ["uint32", "uint64", "bfloat16"])
def test_types_without_a_kernel_run_in_the_reference_evaluator(kind: str) -> None:
    before = model(f"g ({kind}[N, M] x) => ({kind}[N, 1] y) <int64[1] axes = {{1}}> {{ y = ReduceSum (x, axes) }}")
    after = model(f"g ({kind}[N, M] x) => ({kind}[N, 1] y) <int64[1] axes = {{-1}}> {{ y = ReduceSum (x, axes) }}", 21)
    found = verify(before, after)
    assert (found.equivalent, found.ran, found.runtime) == (True, True, "reference")
    assert any("reference" in note for note in found.notes)


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


def test_a_model_the_runtime_refuses_is_not_equivalent() -> None:
    broken = model("g (float[N, M] x) => (float[N, 1] y) <int64[1] axes = {7}> { y = ReduceSum (x, axes) }")
    found = verify(model(SUM), broken)
    assert not found.equivalent
    assert "converted model" in found.reason


def test_an_unknown_operator_leaves_the_verdict_open_unless_strict() -> None:
    body = "g (float[N] x) => (float[N] y) { y = Unheard (x) }"
    found = verify(model(body), model(body))
    assert (found.verdict, found.equivalent, found.ran) == ("not shown", False, False)
    assert "source model could not be run" in str(found)


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


def test_a_data_dependent_failure_on_every_input_is_told() -> None:
    body = "g (float[6] x) => (float[A, B] y) <int64[2] shape = {4, 4}> { y = Reshape (x, shape) }"
    found = verify(model(body), model(body))
    assert (found.verdict, found.ran) == ("not shown", False)
    assert "--input" in found.unseen[0]


@pytest.mark.parametrize(
    "kind",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "double", "string"],
)
def test_every_element_type_gets_inputs(kind: str) -> None:
    body = f"g ({kind}[N, 2] x) => ({kind}[N, 2] y) {{ y = Identity (x) }}"
    found = verify(model(body), model(body))
    assert (found.equivalent, found.runtime) == (True, "onnxruntime"), str(found)


@pytest.mark.parametrize("kind", ["float8e4m3fn", "float8e5m2", "uint4", "int4", "bfloat16", "complex64"])
def test_types_onnxruntime_takes_no_arrays_of_run_in_the_reference_evaluator(kind: str) -> None:
    body = f"g ({kind}[N, 2] x) => ({kind}[N, 2] y) {{ y = Identity (x) }}"
    found = verify(model(body, 21, 10), model(body, 21, 10))
    assert (found.equivalent, found.ran, found.runtime) == (True, True, "reference"), str(found)


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
    assert "'s' is a sequence" in found.reason
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


@pytest.mark.parametrize("size", [4_000_000_000, 2**62])
def test_values_for_more_elements_than_memory_holds_are_not_made(size: int) -> None:
    text = f"g (float[{size}, 3] x) => (float[{size}, 1] y) <int64[1] a = {{1}}> {{ y = ReduceSum (x, a) }}"
    found = verify(model(text), model(text))
    assert found.verdict == "not shown"
    assert "it takes about 1" in found.reason
    assert "GB of memory at these sizes, and --verify-memory allows 1.0 GB" in found.reason


def test_a_size_below_zero_is_one_that_is_not_known() -> None:
    """Paddle2ONNX and others write -1, which onnxruntime and the checker take."""
    stated = model("g (float[N, 3] x) => (float[N, 3] y) { y = Neg (x) }")
    stated.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert verify(stated, model("g (float[N, 3] x) => (float[N, 3] y) { y = Neg (x) }")).equivalent


@pytest.mark.parametrize(
    "body",
    [
        "a = Sub (one, e)  b = Mul (a, lowest)  s = Add ({}, b)  y = Softmax (s)",
        "p = ReduceProd <keepdims = 0> (e)  y = Div ({}, p)",
    ],
)
def test_integers_that_are_a_mask_are_zero_or_one(body: str) -> None:
    """Of others, or of one that is zero, no number is left."""
    text = (
        "g (float[2, 64] x, int64[2, 64] i) => (float[2, 64] y) <float one = {1}, float lowest = {-3.4e38}> "
        "{ e = Cast <to = 1> (i)  n = Neg (x)  k = Abs (x)  %s }"
    )
    source = model(text % body.format("n"), 13)
    found = verify(source, model(text % body.format("n"), 13))
    assert found.verdict == "equivalent", str(found)
    assert found.coverage.outputs == ("y",)
    assert verify(source, model(text % body.format("k"), 13)).verdict == "different"


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
