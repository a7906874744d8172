"""The example of rules as onnxscript functions runs, and prints what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxscript.rewriter")

ROOT = Path(__file__).parents[2]


def test_a_rule_as_an_onnxscript_function_expands_and_raises() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "onnxscript_rules.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    expanded, verified, raised, rewritten = (line.split() for line in ran.stdout.splitlines())
    assert "ReduceLogSumExp" not in expanded
    assert expanded[0] == "expanded:"
    assert verified[0] == "Equivalent:"
    assert "ReduceLogSumExp" in raised
    assert not {"ReduceLogSumExp", "ReduceSumSquare"} & set(rewritten)
