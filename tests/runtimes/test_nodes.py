"""What comes out wrong of onnx's own node tests on a runtime, as it was measured, is told."""

from __future__ import annotations

import json

import pytest

from reducelower.runtimes import load_runtime
from tests.conformance.operators import WRONG, is_told, node_cases

MEASURED: dict[str, list[str]] = json.loads(WRONG.read_text("utf-8"))

FED_AXES_OF_NO_NUMBER = {
    "reduce_mean_default_axes_keepdims_example",
    "reduce_mean_default_axes_keepdims_random",
    "reduce_sum_default_axes_keepdims_example",
    "reduce_sum_default_axes_keepdims_random",
    "reduce_sum_empty_axes_input_noop",
    "reduce_sum_empty_axes_input_noop_example",
}
"""Axes that a model is fed are right but where they are none, and that no look at the model tells."""


@pytest.mark.parametrize("name", MEASURED)
def test_nothing_wrong_is_left_untold(name: str) -> None:
    runtime = load_runtime(name)
    wrong = [node_cases()[case] for case in MEASURED[name] if case not in FED_AXES_OF_NO_NUMBER]
    assert not [case.name for case in wrong if case.opset in runtime.reads and not is_told(case, runtime)]
