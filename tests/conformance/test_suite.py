"""The suite is valid, the same everywhere, says of its nodes what the engine says, and expects what is right."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import fields

import numpy as np
import onnxruntime
from onnx import checker, load_model_from_string

from reducelower import Target, legalize
from reducelower.adapters.reductions import REDUCTIONS
from reducelower.conformance.case import Case, Features
from reducelower.conformance.judging import judge
from reducelower.conformance.process import Answer
from reducelower.conformance.suite import suite
from reducelower.errors import RefusedError
from reducelower.model.schemas import latest_opset
from reducelower.runtimes import Evidence, Fact, Ranges, Runtime
from reducelower.runtimes.facts import When
from reducelower.runtimes.features import Features as Found
from tests.conformance.made import DAY, everything, reductions
from tests.pairwise import thinned
from tests.watching import calls_of

EXTREME = ("huge", "tiny")


def test_every_model_is_valid() -> None:
    for case in everything():
        checker.check_model(load_model_from_string(case.model), full_check=True)


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(case.name for case in everything()).items() if count > 1] == []


def test_every_reduction_is_there_in_all_its_forms() -> None:
    for operator in REDUCTIONS:
        cases = reductions(operator)
        assert {case.features.axes for case in cases} == {
            *("attribute", "initializer", "constant", "dynamic", "absent", "omitted", "empty")
        }
        assert {case.features.keepdims for case in cases} == {"0", "1", "unset"}
        assert {case.features.noop for case in cases} == {"0", "1", "unset"}
        assert {case.features.rank for case in cases} == {0, 1, 2, 3, 4, 5}
        assert {case.features.element_types for case in cases} >= {"float", "float16", "double", "int32", "int64"}
        assert {case.opset for case in cases} >= set(range(7, min(26, latest_opset()) + 1))


def test_it_is_the_same_in_another_process() -> None:
    code = (
        "from reducelower.conformance.suite import suite; print(*[case.digest for case in suite(['ReduceL2', 'Cast'])])"
    )
    ran = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert ran[0] == ran[1] == [case.digest for case in suite(["ReduceL2", "Cast"])]


def test_the_digest_tells_expected_values_apart() -> None:
    case = reductions("ReduceSum")[0]
    other = Case(
        case.name, case.operator, case.opset, case.features, case.model, case.inputs, (case.expected[0] + 1,), case.tag
    )
    assert case.digest != other.digest


def _run(case: Case) -> Answer:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
        return Answer("outputs", tuple(session.run(None, dict(case.inputs))))
    except Exception as error:  # onnxruntime raises a class per status code
        return Answer("error", text=str(error))


def test_onnxruntime_gives_what_is_expected_but_for_extremes() -> None:
    # The same graph means the same at the opset versions that have it, so the newest stands for all.
    graphs = {(load_model_from_string(case.model).graph.SerializeToString(), case.tag): case for case in everything()}
    verdicts = [(case, judge(case, _run(case)).word) for case in graphs.values()]
    assert [case.name for case, word in verdicts if word == "wrong" and case.tag not in EXTREME] == []
    refused = [case for case, word in verdicts if word == "refused"]
    # It takes no uint32, reads opset versions as far as it is new, and Clip of 11 in float only.
    assert [
        case.name
        for case in refused
        if case.opset < 24 and case.features.element_types != "uint32" and case.operator != "Clip"
    ] == []


def test_extremes_have_finite_results_that_are_not_zero() -> None:
    extremes = [case for case in everything() if case.tag in EXTREME]
    assert extremes
    for case in extremes:
        assert np.isfinite(case.expected[0]).all(), case.name
        assert (case.expected[0] != 0).all(), case.name


def test_integers_tell_truncation_from_rounding() -> None:
    for case in everything():
        if case.operator in ("ReduceLogSum", "ReduceLogSumExp") and case.features.element_types == "int32":
            data = case.inputs["data"].astype(np.float64)
            inner = np.exp(data) if case.operator == "ReduceLogSumExp" else data
            axes = (1,) if case.features.axes_count == 1 else (0, 1, 2)
            if case.features.noop != "1":
                real = np.log(np.sum(inner, axis=axes, keepdims=case.features.keepdims == "1"))
                np.testing.assert_array_equal(case.expected[0], np.trunc(real), case.name)
                assert (np.round(real) != np.trunc(real)).any(), case.name


def test_features_are_those_that_the_engine_sees() -> None:
    nowhere = When(rank=Ranges.parse("99"))
    fact = Fact("Nothing.", "wrong", Evidence(measured="fake 1.0", on=DAY), frozenset(REDUCTIONS), when=nowhere)
    cases = {(case.operator, case.features, case.opset): case for case in reductions(*REDUCTIONS)}
    for row in thinned(list(cases)):
        case = cases[row]
        runtime = Runtime(
            case.name, "1.0", "", Ranges.parse("7-"), case.opset, (fact,)
        )  # of which nothing is remembered
        with calls_of(Found.__init__) as calls:
            legalize(load_model_from_string(case.model), Target(case.opset, runtime=runtime))
        assert _seen(calls[0][1]["self"]) == case.features, case.name


def _seen(found: Found) -> Features:
    values = {}
    for field in fields(Features):
        try:
            values[field.name] = getattr(found, field.name)
        except RefusedError:
            values[field.name] = None
    return Features(**values)
