"""The list of what runtimes get wrong can be read, and says why."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from reducelower.model.schemas import all_operators, latest_opset
from tools.fuzz.gaps import CONDITIONS, Gap, facts_of, gap_of, known_gaps, never_run
from tools.fuzz.runtimes import RUNTIMES


@pytest.mark.parametrize("gap", known_gaps(), ids=lambda gap: f"{gap.runtime} {', '.join(sorted(gap.operators))}"[:60])
def test_a_gap_names_what_there_is_and_gives_a_reason(gap: Gap) -> None:
    assert gap.runtime in RUNTIMES
    assert set(gap.operators) <= set(all_operators())
    assert CONDITIONS.issuperset(gap.when)
    assert gap.opsets[0] <= min(gap.opsets[1], latest_opset())
    assert gap.operators or gap.types or gap.when
    assert len(gap.reason.split()) > 4


def test_operators_that_no_judge_runs_exist_and_have_a_reason() -> None:
    assert set(never_run()) <= set(all_operators())
    assert all(never_run().values())


def text(opset: int, body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[2] x) => (float[2] y) {{ {body} }}'
    )


def test_a_gap_concerns_its_operator_at_its_opset_versions_wherever_it_stands() -> None:
    pooled, relu = "y = AveragePool(x)", "y = Relu(x)"
    then, other = "t () => (float[2] a) {a = AveragePool(x)}", "e () => (float[2] b) {b = Abs(x)}"
    inside = f"c = Constant<value = bool {{1}}>() y = If(c)<then_branch = {then}, else_branch = {other}>"
    values = [np.ones(2, np.float32)]
    assert gap_of("reference", facts_of(text(6, pooled), values)) is not None
    assert gap_of("reference", facts_of(text(6, inside), values)) is not None
    assert gap_of("reference", facts_of(text(7, pooled), values)) is None
    assert gap_of("reference", facts_of(text(6, relu), values)) is None


def test_a_gap_for_edge_values_concerns_no_ordinary_ones() -> None:
    model = text(18, "y = ReduceLogSumExp<keepdims = 1, noop_with_empty_axes = 1>(x)")
    assert gap_of("onnxruntime", facts_of(model, [np.array([1, 2], np.float32)])) is None
    assert gap_of("onnxruntime", facts_of(model, [np.array([1, np.nan], np.float32)])) is not None
