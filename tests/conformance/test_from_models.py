"""Facts from real models: what fails is found, told as narrowly as it was measured, and avoided."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from reducelower.conformance.case import Case
from reducelower.conformance.exporter_models import exporter_models
from reducelower.conformance.from_models import FromModels, facts_from_models
from reducelower.conformance.judging import judge_whole
from reducelower.conformance.process import Answer, Subject
from reducelower.pipeline.model_cases import case_of, exporter_cases, inside, read_case
from reducelower.runtimes import read_runtime
from reducelower.runtimes.runtime import Runtime
from reducelower.verification.running.evaluator import Evaluator
from reducelower.verification.running.source import CannotRunError, Source

HERE = Path(__file__).parent

KNOWN = """
[runtime]
name = "fake"
version = "1.0"
about = "A runtime for tests."
[opsets]
reads = "13-18"
prefer = 17
"""

SOFTMAX = """
<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y)
{ a = Exp (x) b = Softmax <axis = 0> (a) c = Softmax <axis = 1> (b) d = Relu (c) y = LogSoftmax (d) }
"""


def known(facts: str = "") -> Runtime:
    return read_runtime(KNOWN + facts, "known.toml")


def whole(text: str, name: str = "model.onnx") -> Case:
    return case_of(name, Source.of(parser.parse_model(text)))


@pytest.fixture(autouse=True)
def _beside_the_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def probed(fake: str, cases: list[Case], runtime: Runtime) -> FromModels:
    subject = Subject.of_function("fake", f"fakes:{fake}", sys.executable)
    return facts_from_models(subject, cases, runtime, inside, date(2026, 1, 2))


def test_a_fact_is_as_narrow_as_its_evidence() -> None:
    found = probed("without_softmax_over_rows", [whole(SOFTMAX)], known())
    (fact, *_) = [fact for fact in found.runtime.facts if fact.operators == {"Softmax"}]
    assert (fact.outcome, str(fact.opsets)) == ("refused", "13-")
    conditions = dict(fact.when.conditions)
    assert conditions["attributes"] == {"axis=0"}  # the Softmax over axis 1 ran
    assert conditions["element_types"] == {"float"}
    assert str(conditions["rank"]) == "2"
    assert fact.evidence.measured == "fake 1.0, Softmax of model.onnx"
    assert "Softmax on float, with axis=0 is refused" in fact.says


def test_the_model_is_right_with_the_facts_that_were_found() -> None:
    text = SOFTMAX.replace("LogSoftmax (d)", "HardSwish (d)")
    found = probed("without_hard_swish", [whole(text)], known())
    (change,) = found.changes
    assert (change.before.word, change.after.word) == ("refused", "right")
    assert found.parts["model.onnx"].names == "HardSwish"
    assert not found.left


def test_of_two_nodes_that_fail_together_the_fact_says_which_is_behind_which() -> None:
    text = SOFTMAX.replace("c = Softmax <axis = 1> (b)", "c = Elu (b)")
    found = probed("without_elu_behind_softmax", [whole(text)], known())
    fact = found.runtime.facts[0]
    assert fact.operators == {"Elu"}
    assert dict(fact.when.conditions)["after"] == {"Softmax"}
    assert found.parts["model.onnx"].names == "Softmax > Elu"


GATHERS = """
<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[2] y) <int64[2] i = {0, 2}, int64[2] j = {%s}>
{ a = Gather (x, i) b = Gather (x, j) y = Add (a, b) }
"""


def test_what_else_tells_a_node_from_a_right_one_is_stated() -> None:
    found = probed("without_negative_indices", [whole(GATHERS % "-1, 1")], known())
    (fact,) = found.added
    assert fact.operators == {"Gather"}
    assert dict(fact.when.conditions)["negative_indices"] is True


@pytest.mark.parametrize("first", ["i", "j"])
def test_of_nodes_that_nothing_tells_apart_there_is_no_fact(first: str) -> None:
    text = GATHERS % "2, 0"
    if first == "j":
        text = text.replace("a = Gather (x, i) b = Gather (x, j)", "b = Gather (x, j) a = Gather (x, i)")
    found = probed("without_falling_indices", [whole(text)], known())
    assert found.parts["model.onnx"].names == "Gather"
    assert not found.added
    assert [case.name for case in found.left] == ["model.onnx"]


def test_what_operators_of_other_domains_do_is_told_and_is_no_fact() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[2,3] x) => (float[2,3] y)'
        "{ a = Neg (x) b = com.microsoft.QuickGelu (a) y = Abs (b) }"
    )
    found = probed("without_quick_gelu", [whole(text)], known())
    assert found.parts["model.onnx"].names == "QuickGelu"
    assert not found.added
    assert [case.name for case in found.left] == ["model.onnx"]


def test_a_fact_that_refuses_what_runs_right_is_left_out() -> None:
    evidence = 'evidence = { measured = "fake 0.9", on = 2025-01-01 }'
    facts = f'[[fact]]\nsays = "No Erf."\noperators = ["Erf"]\nis = "absent"\n{evidence}\n'
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) { y = Erf (x) }'
    found = probed("right", [whole(text)], known(facts))
    assert [fact.says for fact in found.untrue] == ["No Erf."]
    assert not found.runtime.facts
    assert [change.after.word for change in found.changes] == ["right"]


def test_what_needs_names_of_sizes_to_fail_is_left_with_its_reason() -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n,3] x) => (float[n,3] y) { y = Erf (x) }'
    found = probed("without_names_of_sizes", [whole(text)], known())
    assert not found.parts and not found.added
    assert [case.name for case in found.left] == ["model.onnx"]


@pytest.mark.parametrize(
    ("wanted", "got", "word"),
    [
        ([1.0, 1000.0], [1.5, 1000.0], "right"),
        ([1.0, 1000.0], [1.0, 1001.5], "wrong"),
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], "right"),
        ([1.0, 2.0], [1.0, np.nan], "wrong"),
        ([1.0, np.inf], [1.0, 3e38], "wrong"),
        ([[1.0]], [1.0], "wrong"),
    ],
)
def test_values_may_be_off_by_a_part_of_the_largest(wanted: Any, got: Any, word: str) -> None:
    case = Case("m", "whole model", 17, b"", {}, (np.array(wanted, np.float32),))
    assert judge_whole(case, Answer("outputs", (np.array(got, np.float32),))).word == word


@pytest.mark.parametrize(("kind", "word"), [(np.int8, "right"), (np.uint8, "right"), (np.int64, "wrong")])
def test_only_integers_of_eight_bits_may_be_off_by_one(kind: type, word: str) -> None:
    case = Case("m", "whole model", 17, b"", {}, (np.array([3, 4], kind),))
    assert judge_whole(case, Answer("outputs", (np.array([3, 5], kind),))).word == word
    assert judge_whole(case, Answer("outputs", (np.array([3, 6], kind),))).word == "wrong"


def test_the_models_of_exporters_give_what_the_specification_says() -> None:
    for (name, model), case in zip(exporter_models(), exporter_cases(), strict=True):
        if "Quantize" in name:
            continue  # onnx.reference has no implementation for opset 17
        expected = Evaluator(model).run(None, dict(case.inputs))
        for got, wanted in zip(case.expected, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=name)
            assert got.size and np.ptp(got) > 0


def test_weights_in_another_file_are_read(tmp_path: Path) -> None:
    import onnx

    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y)'
        "<float[3] w = {1, 2, 3}> { y = Mul (x, w) }"
    )
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="w.bin")
    case = read_case(str(tmp_path / "m.onnx"))
    (value,) = ModelProto.FromString(case.model).graph.initializer
    assert value.data_location == TensorProto.DEFAULT
    np.testing.assert_allclose(case.expected[0], case.inputs["x"] * [1, 2, 3], rtol=1e-6)


def test_a_model_of_sequences_is_none_that_can_be_run() -> None:
    value = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [helper.make_node("SequenceLength", ["x"], ["y"])],
        "g",
        [value],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(CannotRunError, match=r"no values are made for input 'x' \(sequence\)"):
        case_of("m", Source.of(model))
