"""What was measured on runtimes: what comes out wrong of onnx's own node tests is told, and nothing is made worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reducelower.runtimes import load_runtime
from tools.conformance.nodes import WRONG, is_told, node_cases
from tools.conformance.proof import MEASURED as PAGE

MEASURED: dict[str, list[str]] = json.loads(WRONG.read_text("utf-8"))


@pytest.mark.xdist_group("onnx's cases")
@pytest.mark.opset(28)  # The cases are those of onnx 1.23.
@pytest.mark.parametrize("name", MEASURED)
def test_nothing_wrong_is_left_untold(name: str) -> None:
    runtime = load_runtime(name)
    wrong = [node_cases()[case] for case in MEASURED[name]]
    assert not [case.name for case in wrong if case.opset in runtime.reads and not is_told(case, runtime)]


@pytest.mark.parametrize("file", sorted(PAGE.glob("*.json")), ids=lambda file: file.stem)
def test_nothing_right_is_made_worse_and_nothing_wrong_left_silently(file: Path) -> None:
    entries = json.loads(file.read_text("utf-8"))
    assert entries
    for entry in entries:
        assert entry.get("worse", 0) == 0, entry
        assert "note" in entry or entry["told"] == entry["after"][1], entry
