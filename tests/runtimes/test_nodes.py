"""What comes out wrong of onnx's own node tests on a runtime, as it was measured, is told."""

from __future__ import annotations

import json

import pytest

from reducelower.runtimes import load_runtime
from tests.conformance.operators import WRONG, is_told, node_cases

MEASURED: dict[str, list[str]] = json.loads(WRONG.read_text("utf-8"))


@pytest.mark.parametrize("name", MEASURED)
def test_nothing_wrong_is_left_untold(name: str) -> None:
    runtime = load_runtime(name)
    wrong = [node_cases()[case] for case in MEASURED[name]]
    assert not [case.name for case in wrong if case.opset in runtime.reads and not is_told(case, runtime)]
