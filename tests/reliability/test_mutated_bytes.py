"""Broken models, the same ones every time: converted or refused, and nothing else."""

from __future__ import annotations

import sys

import pytest

from tests.reliability.bytes_run import run_numbers

FOUND = (
    27, 1005, 1063, 1123, 1247, 1519, 2599, 3205, 4161, 5007, 10383, 12368, 14526, 14887, 17997, 23677, 26963,
    34125, 39847, 64405, 92666, 102589, 137487, 154123,
)  # fmt: skip
"""Numbers of models that were once taken for a fault of ours, one for each cause."""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on time and memory are POSIX's")
def test_broken_models_are_converted_or_refused() -> None:
    statuses, findings = run_numbers([*FOUND, *range(2_000_000, 2_001_500)])
    assert findings == []
    assert set(statuses) == {0, 1, 2}


@pytest.mark.skipif(sys.platform == "win32", reason="limits on time and memory are POSIX's")
def test_broken_models_are_verified_or_refused() -> None:
    statuses, findings = run_numbers([7_006_625, *range(3_000_000, 3_000_250)], verify=True)
    assert findings == []
    assert set(statuses) == {0, 1, 2}
