"""The measure of economy still measures, and no operator takes more nodes than it did."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.opset(23)


@pytest.fixture(scope="module")
def economy() -> Any:
    folder = Path(__file__).parents[2] / "benchmarks"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("economy", folder / "economy.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["economy"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def test_operators_take_no_more_nodes_than_an_expert_would_write(economy: Any) -> None:
    assert {name: ours for name, expert, ours in economy.operators() if ours > expert} == {}


def test_a_model_is_measured_at_every_older_target(economy: Any) -> None:
    exported = next(one for one in economy.of_repository() if one.name == "torch_mean_dyn_18")
    found = list(economy.measured(exported, (9, 13, 18), 1))
    assert [(one.opset, one.target) for one in found] == [(18, 9), (18, 13)]
    assert all(one.nodes[1] >= 1 and one.time for one in found)
