"""The comparison of ways to run jobs in processes still compares."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from reducelower.batch.processes import run_in_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes under /proc")


@pytest.fixture(scope="module")
def workers() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "workers.py"
    spec = importlib.util.spec_from_file_location("workers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["workers"] = module  # where processes find what they are to do
    spec.loader.exec_module(module)
    return module


def test_every_way_converts_all_models(workers: Any) -> None:
    ways = dict(workers.ways())
    assert list(ways)[:2] == ["here", "ProcessPoolExecutor"]
    for run in ways.values():
        seconds, failed = workers.converted(run, 4, 0)
        assert (seconds > 0, failed) == (True, 0)


def test_a_model_that_kills_its_worker_is_lost_alone_here(workers: Any) -> None:
    assert workers.converted(run_in_processes, 6, 3)[1] == 0


def test_nobody_is_left_behind_here(workers: Any) -> None:
    assert workers.left_behind("here") == 0
