"""On a terminal there are tables and bars; elsewhere plain lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def on_a_terminal(*arguments: object, columns: int = 120, start: Sequence[str] = ("-m", "reducelower")) -> str:
    """What a user sees, without the codes that colour it."""
    import pty

    own, terminal = pty.openpty()
    command = [sys.executable, *start, *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    seen = b""
    try:
        while data := os.read(own, 4096):
            seen += data
    except OSError:  # Linux says so when the other side is gone
        pass
    os.close(own)
    assert process.wait() in (0, 2)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


def test_rewrites_are_a_table(models: Path, tmp_path: Path) -> None:
    seen = on_a_terminal("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "out.onnx", "--opset", 13)
    assert "Rewrites" in seen
    assert re.search(r"│ +2 │ equal", seen)


def test_many_models_have_a_bar_and_a_table(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for at in range(5):
        shutil.copy(models / "torch_mean_dyn_18.onnx", folder / f"mean{at}.onnx")
    (folder / "[red]broken.onnx").write_bytes(b"no model")
    seen = on_a_terminal("convert", folder, "--output-dir", tmp_path / "out", "--opset", 13, "--no-verify")
    assert "6/6" in seen
    assert re.search(r"converted +│ +5 │", seen)
    assert "[red]broken.onnx" in seen


def test_quiet_is_quiet_on_a_terminal_too(models: Path, tmp_path: Path) -> None:
    assert not on_a_terminal(
        "convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "-q", "--no-verify"
    )


AFTER = """
import sys
from reducelower.cli import progress, run
progress._SOON = float(sys.argv[1])
sys.exit(run(sys.argv[2:]))
"""
AT_ONCE, LATE = ("-c", AFTER, "0"), ("-c", AFTER, "60")
"""To run it so that steps are shown from the start, or only where a machine is slower than any."""


def test_the_steps_of_one_model_are_shown_with_their_time(models: Path, tmp_path: Path) -> None:
    model = models / "skl_gmm_20.onnx"
    seen = on_a_terminal("convert", model, "-o", tmp_path / "out.onnx", "--opset", 12, start=AT_ONCE)
    assert "verifying" in seen
    assert re.search(r"read \d+\.\d s, rewrite \d+\.\d s, check \d+\.\d s, verify \d+\.\d s, write \d+\.\d s", seen)


def test_short_work_shows_no_steps(models: Path, tmp_path: Path) -> None:
    words = ["convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "--no-verify"]
    seen = on_a_terminal(*words, start=LATE)
    assert "reading" not in seen
    assert "read 0." not in seen


def test_many_models_show_a_rate_and_the_time_that_is_left(models: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for at in range(30):
        shutil.copy(models / "torch_mean_dyn_18.onnx", tmp_path / "models" / f"mean{at}.onnx")
    seen = on_a_terminal("convert", tmp_path / "models", "--output-dir", tmp_path / "out", "--opset", 13)
    assert re.search(r"30/30 +[\d.]+ models/s +0:00:\d\d +0:00:\d\d", seen)


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_text_ends_where_the_terminal_does(columns: int, models: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    model = models / "skl_gmm_20.onnx"
    seen = on_a_terminal("expand", model, "-o", output, "--no-verify", columns=columns, start=LATE)
    assert "WARNING" in seen
    told = seen.replace(str(output), "").replace(str(model), "").partition("Rewrites")[0]
    assert all(len(line.rstrip("\r")) <= columns for line in told.split("\n"))


def test_elsewhere_lines_stay_whole_and_no_steps_are_shown(models: Path, tmp_path: Path) -> None:
    words = ["convert", str(models / "skl_gmm_20.onnx"), "-o", str(tmp_path / "out.onnx"), "--opset", "12"]
    environment = {**os.environ, "COLUMNS": "40"}
    command = [sys.executable, *AT_ONCE, *words]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert any(len(line) > 60 for line in ran.stdout.splitlines())
