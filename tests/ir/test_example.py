"""The example of rules as onnxscript functions runs, and prints what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxscript")

ROOT = Path(__file__).parents[2]


def test_a_rule_as_an_onnxscript_function_expands() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "onnxscript_rules.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = {line.split()[0]: line.split() for line in ran.stdout.splitlines()}  # onnxscript may add some of its own
    expanded, verified = lines["expanded:"], lines["verified"]
    assert "ReduceLogSumExp" not in expanded
    assert verified[1:3] == ["equal", "on"]
