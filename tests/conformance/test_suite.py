"""The suite is valid, the same everywhere, says of its nodes what they are, and expects what is right."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import onnxruntime
import pytest
from onnx import checker, load_model_from_string

from reducelower.conformance.case import Case
from reducelower.conformance.judging import judge
from reducelower.conformance.process import Answer
from reducelower.conformance.suite import suite
from reducelower.model.schemas import REDUCTIONS, latest_opset
from tests.conformance.made import everything, reductions

pytestmark = pytest.mark.xdist_group("the suite")

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
    other = Case(case.name, case.operator, case.opset, case.model, case.inputs, (case.expected[0] + 1,), case.tag)
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


KNOWN = {
    "ReduceSum-18 float[2,3,4] axes=dynamic(1) keepdims=0": {
        "axes": "dynamic", "rank": 3, "rank_out": None, "axes_count": None, "all_axes": None, "negative_axes": None,
        "fed": True,
    },
    "ReduceSum-18 float[2,3,4] axes=initializer(-1) keepdims=unset": {
        "axes": "initializer", "keepdims": "unset", "rank_out": 3, "axes_count": 1, "all_axes": False,
        "negative_axes": True, "fed": False,
    },
    "ReduceSum-18 float[2,3,4] axes=absent keepdims=0": {
        "axes": "absent", "keepdims": "0", "noop": "unset", "rank_out": 0, "axes_count": 3, "all_axes": True,
    },
    "Add-13 float broadcast": {"element_types": "float", "broadcast": True, "vector": True, "fed": True, "axes": ""},
    "Where-13 int32": {"element_types": "bool", "output_types": "int32", "data": "dynamic", "rank_second": 2},
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_features_of_a_node_are_those_that_its_text_says(name: str) -> None:
    (case,) = (case for case in everything() if case.name == name)
    assert {feature: getattr(case.features, feature) for feature in KNOWN[name]} == KNOWN[name]
