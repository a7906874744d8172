"""On a terminal there are tables and bars; elsewhere plain lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def on_a_terminal(*arguments: object) -> str:
    """What a user sees, without the codes that colour it."""
    import pty

    own, terminal = pty.openpty()
    command = [sys.executable, "-m", "reducelower", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "120", "LINES": "40", "TERM": "xterm"}
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
