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
    assert (found.word, [fault.kind for fault in found.faults]) == (word, kinds)


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


def test_an_opset_that_is_not_read_is_a_feature_of_the_model(on: On) -> None:
    found = on(model("{ y = Relu (x) }", 20, head="ir_version: 10"), "onnxruntime@1.16")
    assert found.word == "runs after --for"
    assert [(fault.about, fault.says) for fault in found.faults] == [
        ("opset 20", "It reads opsets 7-19."),
        ("IR version 10", "It reads IR versions up to 9."),
    ]


def test_a_local_function_is_a_feature_of_the_model(on: On) -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 18, "own": 1]> g (float[3] x) => (float[3] y) { y = own.Twice (x) }'
        '<domain: "own", opset_import: ["": 18]> Twice (x) => (y) { y = Add (x, x) }'
    )
    found = on(onnx.parser.parse_model(text), "openvino")
    assert found.word == "runs after --for"
    assert [(fault.kind, fault.about) for fault in found.faults] == [("refused", "1 local function")]


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


def test_nodes_that_a_fact_is_about_are_counted(on: On) -> None:
    (fault,) = on(model("{ a = Shrink (x) b = Relu (a) y = Shrink (b) }"), "mnn").faults
    assert (fault.about, fault.nodes) == ("Shrink", 2)


def test_what_is_said_of_the_tensors_of_a_model_counts_them(on: On) -> None:
    source = model("{ a = Where (c, x, x) y = Where (c, a, x) }")
    source.graph.initializer.append(onnx.helper.make_tensor("c", 9, [1], [True]))
    assert [fault.about for fault in on(source, "mnn").faults] == ["1 tensor"]


def test_an_import_that_is_too_new_is_named_though_nothing_uses_it(on: On) -> None:
    source = model(PLAIN, 17)
    source.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 5))
    found = on(source, "onnxruntime@1.16")
    assert found.word == "runs after --for"
    assert [fault.about for fault in found.faults] == ["ai.onnx.ml 5"]


def test_an_operator_of_another_domain_that_a_runtime_lacks_is_named(on: On) -> None:
    source = model("{ y = com.microsoft.FastGelu (x) }", 17, head="ir_version: 8")
    source.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    found = on(source, "mnn")
    assert (found.word, [fault.kind for fault in found.faults]) == ("does not run", ["refused"])
    assert on(source, "openvino").word == "nothing known against it"
