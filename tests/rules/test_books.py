"""Every shipped rule, on every element type, form of the call and edge value, against exact arithmetic."""

from __future__ import annotations

import pytest
from onnx import TensorProto, defs

from reducelower.rulebook import load_book
from tools.exact.trial import Trial, try_operator, try_rule

OWN = [(name, op_type) for name in ("stable", "core", "portable") for op_type in load_book(name).own]


def trials(name: str, op_type: str) -> list[Trial]:
    return list(try_operator(load_book(name), op_type))


TAKES_MAXIMUM_OF_NO_BOOLS = defs.onnx_opset_version() > 27
"""Before onnx 1.23 the reference evaluator gives True for it."""


@pytest.mark.parametrize(("name", "op_type"), OWN)
def test_a_rule_is_right_on_every_element_type(name: str, op_type: str) -> None:
    for trial in trials(name, op_type):
        if trial.runtime == "onnx.reference" and trial.element_type == "bool" and not TAKES_MAXIMUM_OF_NO_BOOLS:
            continue
        assert not trial.wrong, f"{trial.rule} on {trial.element_type}: {trial.wrong[0]}"
        # Pools take data of fewer shapes than reductions do.
        assert trial.results > (60 if op_type.startswith("Reduce") else 40)


@pytest.mark.parametrize(("name", "op_type"), [pair for pair in OWN if pair[0] != "portable"])
def test_float16_is_right_where_every_operator_rounds_to_float16(name: str, op_type: str) -> None:
    book = load_book(name)
    rule = book.find(op_type, TensorProto.FLOAT16)
    assert rule is not None
    trial = try_rule(book, rule, TensorProto.FLOAT16, "onnx.reference")
    if op_type.startswith("Reduce"):
        assert not trial.wrong, trial.wrong[0]
    else:
        # A normalization divides one rounded sum by the root of another: half a ULP for each of some six steps.
        assert trial.largest_error <= 3


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceSumSquare"])
def test_the_specification_is_right_where_only_the_answer_can_overflow(op_type: str) -> None:
    assert not any(trial.wrong for trial in trials("spec", op_type))


@pytest.mark.parametrize("op_type", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
def test_the_specification_is_wrong_at_the_extremes(op_type: str) -> None:
    for element_type in (TensorProto.FLOAT, TensorProto.DOUBLE):
        rule = load_book("spec").find(op_type, element_type)
        assert rule is not None
        assert try_rule(load_book("spec"), rule, element_type, "onnxruntime").wrong
