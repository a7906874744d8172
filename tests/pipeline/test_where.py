"""Where a model runs: on each runtime, with what is in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from reducelower.pipeline.inspection import inspect_file
from reducelower.pipeline.where import OnRuntime
from reducelower.runtimes import load_runtime

On = Callable[[onnx.ModelProto, str], OnRuntime]


def model(body: str, opset: int = 18, inputs: str = "float[2,3] x", head: str = "ir_version: 8") -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<{head}, opset_import: ["": {opset}]> g ({inputs}) => (y) {body}')


@pytest.fixture
def on(tmp_path: Path) -> On:
    def found(source: onnx.ModelProto, runtime: str) -> OnRuntime:
        path = tmp_path / "m.onnx"
        onnx.save(source, path)
        (each,) = inspect_file(str(path), runtimes=[load_runtime(runtime)]).runtimes
        return each

    return found


PLAIN = "{ y = Relu (x) }"


@pytest.mark.parametrize(
    ("body", "runtime", "word", "kinds"),
    [
        (PLAIN, "opencv", "runs", []),
        (PLAIN, "tvm", "nothing known against it", []),
        (PLAIN, "tensorrt", "nothing known against it", []),
        ("{ y = ReduceL2 <keepdims = 1> (x) }", "onnxruntime", "runs", ["overflows"]),
        ("{ y = ReduceSumSquare (x) }", "mnn", "runs after --for", ["wrong"]),
        ("{ y = Shrink (x) }", "mnn", "runs after --for", ["wrong"]),
        ("{ y = Multinomial (x) }", "tensorrt", "does not run", ["absent"]),
        ("{ a, y = TopK (x, k) }", "coreml", "nothing known against it", ["elsewhere"]),
    ],
)
def test_a_word_and_what_is_in_the_way(on: On, body: str, runtime: str, word: str, kinds: list[str]) -> None:
    source = model(body)
    if "TopK" in body:
        source.graph.initializer.append(onnx.helper.make_tensor("k", 7, [1], [2]))
    found = on(source, runtime)
    assert (found.word, list(found.faults)) == (word, kinds)


@pytest.mark.parametrize(
    ("body", "runtime", "is_documented"),
    [
        (PLAIN, "tensorrt", True),
        (PLAIN, "opencv", False),
        (PLAIN, "onnxruntime-webgpu", False),
    ],
)
def test_what_nobody_measured_is_said_to_be_documented(on: On, body: str, runtime: str, is_documented: bool) -> None:
    assert on(model(body), runtime).is_documented == is_documented


@pytest.mark.parametrize(
    ("opset", "head", "ml", "word"),
    [
        (19, "ir_version: 9", 3, "runs"),
        (20, "ir_version: 9", 3, "runs after --for"),
        (19, "ir_version: 10", 3, "runs after --for"),
        (19, "ir_version: 9", 5, "runs after --for"),
    ],
)
def test_a_version_that_is_not_read_is_refused(on: On, opset: int, head: str, ml: int, word: str) -> None:
    source = model(PLAIN, opset, head=head)
    source.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", ml))
    found = on(source, "onnxruntime@1.16")
    assert (found.word, found.faults) == (word, () if word == "runs" else ("refused",))


def test_a_local_function_is_a_feature_of_the_model(on: On) -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 18, "own": 1]> g (float[3] x) => (float[3] y) { y = own.Twice (x) }'
        '<domain: "own", opset_import: ["": 18]> Twice (x) => (y) { y = Add (x, x) }'
    )
    found = on(onnx.parser.parse_model(text), "openvino")
    assert (found.word, found.faults) == ("runs after --for", ("refused",))


@pytest.mark.parametrize(
    "source",
    [
        model(PLAIN, inputs="float[n,3] x"),
        model("{ s = SequenceConstruct (x, x) i = Constant <value = int64 {0}> () y = SequenceAt (s, i) }"),
    ],
    ids=["named sizes", "sequences"],
)
def test_nothing_is_claimed_of_what_the_measurements_do_not_cover(on: On, source: onnx.ModelProto) -> None:
    assert on(source, "openvino").word == "nothing known against it"


def test_of_an_operator_that_nobody_measured_fitting_the_others_claims_nothing(on: On) -> None:
    source = model("{ a = Shrink (x) y = my.ops.Custom (a) }")
    source.opset_import.append(onnx.helper.make_opsetid("my.ops", 1))
    assert on(source, "mnn").word == "nothing known against it after --for"


def test_the_worst_is_told_first(on: On) -> None:
    inputs = "float[2,3] x, int64[2,1] i"
    found = on(model("{ a = GatherElements <axis = 1> (x, i) y = Shrink (a) }", inputs=inputs), "mnn")
    assert (found.word, found.faults) == ("runs after --for", ("wrong", "overflows"))


def test_tensors_that_are_stored_as_a_runtime_does_not_read_them_are_a_feature(on: On) -> None:
    source = model("{ a = Where (c, x, x) y = Where (c, a, x) }")
    source.graph.initializer.append(onnx.helper.make_tensor("c", 9, [1], [True]))
    assert on(source, "mnn").faults == ("refused",)


def test_an_operator_of_another_domain_that_a_runtime_lacks_is_named(on: On) -> None:
    source = model("{ y = com.microsoft.FastGelu (x) }", 17, head="ir_version: 8")
    source.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    found = on(source, "mnn")
    assert (found.word, found.faults) == ("does not run", ("refused",))
    assert on(source, "openvino").word == "nothing known against it"
