"""What is written is what is read."""

from __future__ import annotations

import pytest

from reducelower.conformance.target_file import target_text
from reducelower.runtimes import load_runtime, read_runtime, shipped_names
from tests.conformance.made import REFUSED, distilled, reductions


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_targets_survive(name: str) -> None:
    runtime = load_runtime(name)
    assert read_runtime(target_text(runtime), name) == runtime


def test_what_was_distilled_survives() -> None:
    runtime = distilled(
        reductions("ReduceSum", "ReduceMax"),
        lambda case: case.features.keepdims == "unset" or (not case.features.all_axes and case.opset > 17),
        REFUSED,
    ).runtime
    assert runtime.facts
    assert read_runtime(target_text(runtime, ["A remark."]), "fake") == runtime


def test_any_text_survives() -> None:
    from dataclasses import replace

    runtime = replace(load_runtime("openvino"), about='Quotes " and \\ and\ttabs, \x7f, \u2028 and é.')
    assert read_runtime(target_text(runtime), "odd").about == runtime.about
