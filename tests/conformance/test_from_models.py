"""Facts from real models: what fails is found, told as narrowly as it was measured, and avoided."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from reducelower.conformance.case import WHOLE, Case
from reducelower.conformance.from_models import facts_from_models
from reducelower.conformance.judging import judge
from reducelower.conformance.process import Answer, Worker
from reducelower.conformance.whole_models import exporter_models
from reducelower.pipeline.model_cases import case_of, exporter_cases, inside, read_case
from reducelower.runtimes import read_runtime
from reducelower.verification.running.evaluator import Evaluator
from reducelower.verification.running.source import CannotRunError, Source
from tests.conformance.made import fake
from tests.table import combinations, rows
from tests.verification.tables import written

KNOWN = """
[runtime]
name = "fake"
version = "1.0"
about = "A runtime for tests."
[opsets]
reads = "13-18"
prefer = 17
"""


ROWS = rows(
    Path(__file__).with_name("from_models.toml"),
    fields={"fake", "graph", "each", "known", "operators", "part", "left", "holds"},
)


@pytest.mark.parametrize("claim", ROWS)
def test_what_is_found_of_a_model_that_fails(claim: str) -> None:
    """The first fact of these ``operators``, the smallest ``part`` that fails, and whether it is ``left``."""
    row = ROWS[claim]
    for chosen in combinations(row.get("each", {})):
        made = written({"opset": 17}, row["graph"], chosen)
        known = read_runtime(KNOWN + row.get("known", ""), "known.toml")
        case = case_of("model.onnx", Source.of(made))
        with Worker(fake(row["fake"]), 60) as worker:
            found = facts_from_models(worker, [case], known, inside, date(2026, 1, 2))
        if "part" in row:
            assert found.parts["model.onnx"].names == row["part"]
        assert row.get("left", False) is ([case.name for case in found.left] == ["model.onnx"])
        assert not (row.get("left", False) and found.added)
        names = {"found": found}
        if "operators" in row:
            fact = next(each for each in found.runtime.facts if each.operators == set(row["operators"]))
            names |= {"fact": fact, "when": dict(fact.when.conditions)}
        assert [held for held in row.get("holds", ()) if not eval(held, names)] == []


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
    case = Case("m", "whole model", 17, b"", {}, (np.array(wanted, np.float32),), WHOLE)
    assert judge(case, Answer("outputs", (np.array(got, np.float32),))).word == word


@pytest.mark.parametrize(("kind", "word"), [(np.int8, "right"), (np.uint8, "right"), (np.int64, "wrong")])
def test_only_integers_of_eight_bits_may_be_off_by_one(kind: type, word: str) -> None:
    case = Case("m", "whole model", 17, b"", {}, (np.array([3, 4], kind),), WHOLE)
    assert judge(case, Answer("outputs", (np.array([3, 5], kind),))).word == word
    assert judge(case, Answer("outputs", (np.array([3, 6], kind),))).word == "wrong"


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
