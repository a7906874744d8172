"""onnx's own node tests as conformance cases: those with a single node on tensors, as they are and with constants."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from onnx import ModelProto, load_model_from_string, numpy_helper
from onnx.backend.test.loader import load_model_tests

from reducelower import check
from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict, judge
from reducelower.conformance.process import Answer
from reducelower.model.numbers import Array
from reducelower.options import Target
from reducelower.runtimes import Runtime

WRONG = Path(__file__).parents[2] / "tests" / "runtimes" / "measured" / "wrong_nodes.json"
"""The cases that come out wrong, by target."""

_CHANCE = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}
"""Operators with random results."""


@cache
def node_cases() -> dict[str, Case]:
    """onnx's cases with a single node on tensors, by name, as they are and with constants."""
    with np.errstate(all="ignore"):
        tests = load_model_tests(kind="node")
    cases = []
    for test in tests:
        model = test.model
        if len(model.graph.node) != 1 or model.graph.node[0].domain or model.functions or not test.data_sets:
            continue
        given, expected = test.data_sets[0]
        if not given or any(
            not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" for array in (*given, *expected)
        ):
            continue  # sequences, strings, and types that numpy lacks
        inputs = {value.name: array for value, array in zip(model.graph.input, given, strict=True)}
        case = _case(test.name.removeprefix("test_"), model, inputs, expected)
        cases += [case, _with_constants(case)] if len(inputs) > 1 else [case]
    return {case.name: case for case in cases}


def judged_cases() -> list[Case]:
    """The cases whose results are not random."""
    return [case for case in node_cases().values() if case.operator not in _CHANCE]


def _case(name: str, model: ModelProto, inputs: dict[str, Array], expected: list[Array]) -> Case:
    data = model.SerializeToString(deterministic=True)
    opset = model.opset_import[0].version
    return Case(name, model.graph.node[0].op_type, opset, data, inputs, tuple(expected))


def _with_constants(case: Case) -> Case:
    """All inputs except the first as initializers, like the weights and sizes of most models."""
    made = load_model_from_string(case.model)
    first, *others = case.inputs
    made.graph.initializer.extend(numpy_helper.from_array(case.inputs[name], name) for name in others)
    del made.graph.input[1:]
    made.ir_version = max(4, made.ir_version)  # before IR 4, an initializer was an input too
    data = made.SerializeToString(deterministic=True)
    return replace(case, name=f"{case.name} with constants", model=data, inputs={first: case.inputs[first]})


def is_told(case: Case, runtime: Runtime) -> bool:
    """Whether a case fails according to a fact, or may fail for some values."""
    plan = check(load_model_from_string(case.model), target=Target(case.opset, runtime=runtime))
    return bool(plan.refusals or plan.sites or plan.unmended)


def judge_roughly(case: Case, answer: Answer, tolerance: float = 0.0) -> Verdict:
    """Judge with a tolerance within which runtimes of one precision agree; onnx's own values are not more exact."""
    verdict = judge(case, answer, tolerance)
    if verdict.word != "wrong" or len(answer.outputs) != len(case.expected):
        return verdict
    pairs = zip(answer.outputs, case.expected, strict=True)
    is_right = all(
        got.shape == wanted.shape and got.dtype.kind in "fiub" and _is_close(got, wanted) for got, wanted in pairs
    )
    return Verdict("right") if is_right else verdict


def _is_close(got: Array, wanted: Array) -> bool:
    if wanted.dtype.kind == "f":
        near = 1e-2 if wanted.dtype == np.float16 else 2e-3
        with np.errstate(all="ignore"):
            return bool(np.isclose(got.astype(float), wanted.astype(float), near, near, equal_nan=True).all())
    step = int(wanted.dtype in (np.int8, np.uint8))  # one step of a quantizer
    with np.errstate(all="ignore"):
        return bool((np.abs(got.astype(object) - wanted.astype(object)) <= step).all())
