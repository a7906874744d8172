"""Interrupted in the midst of work: one sentence, a status of its own, whole outputs only, and a run that goes on."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import reducelower

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is left to end by itself elsewhere ends here")

SENTENCE = "error: interrupted; nothing is left half written"

STUCK = """
import os, signal, sys, time
from pathlib import Path
from reducelower.pipeline import conversion
from reducelower.cli import main

number, others, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
honest, here = conversion.write_model, os.getpid()

def stuck(made, output, **told):
    \"\"\"Write, but stop at one model, with its output all but written, and interrupt the command line.\"\"\"
    if Path(output).name != "b.onnx":
        return honest(made, output, **told)
    while others and not Path(others).exists():
        time.sleep(0.01)
    def complete(*_):
        os.kill(here, number)
        time.sleep(600)
    return honest(made, output, **{**told, "on_complete": complete})

conversion.write_model = stuck
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
main(arguments)
"""

HANDLING = """
import io, os, signal, sys, time
from pathlib import Path
from reducelower.pipeline import conversion
from reducelower.cli import main

number, begun, arguments = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
honest = conversion.write_model

def endless(made, output, **told):
    if Path(output).name == "b.onnx":
        begun.touch()
        time.sleep(600)
    return honest(made, output, **told)

class Handling(io.TextIOWrapper):
    def write(self, text):
        while not begun.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), number)
        time.sleep(600)

conversion.write_model = endless
sys.stdout = Handling(sys.stdout.buffer)
signal.signal(signal.SIGINT, signal.default_int_handler)
main(arguments)
"""
"""Interrupted while the result of the first model is printed, and the second is at work."""


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    root = tmp_path / "models"
    root.mkdir()
    for name in "abc":
        shutil.copy(models / "torch_mean_dyn_18.onnx", root / f"{name}.onnx")
    return root


def interrupted(
    number: int, others: Path | str, *arguments: object, script: str = STUCK
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, str(number), str(others), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_folder_goes_on_where_it_was_interrupted(
    folder: Path, tmp_path: Path, jobs: int, number: int, status: int
) -> None:
    out = tmp_path / "out"
    arguments = ("convert", folder, "--output-dir", out, "--opset", 13, "--no-verify", "--resume", "--jobs", jobs)
    ran = interrupted(number, out / ".reducelower" / "a.onnx.json", *arguments)
    assert (ran.returncode, ran.stderr.strip()) == (status, SENTENCE)
    assert {path.name for path in out.glob("*.onnx")} - {"c.onnx"} == {"a.onnx"}
    assert not list(out.glob("*.tmp"))
    again = reducelower(list(map(str, arguments)), tmp_path)
    assert again.returncode == 0, again.stderr
    assert re.search(r"^\d+ models: .*\b[12] kept", again.stdout, re.MULTILINE)
    whole = (out / "a.onnx").read_bytes()
    assert [(out / f"{name}.onnx").read_bytes() for name in "bc"] == [whole, whole]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_while_a_result_is_printed_waits_for_no_model(
    folder: Path, tmp_path: Path, number: int, status: int
) -> None:
    out, begun = tmp_path / "out", tmp_path / "begun"
    arguments = ("convert", folder, "--output-dir", out, "--opset", 13, "--no-verify", "--jobs", 2, "--json")
    ran = interrupted(number, begun, *arguments, script=HANDLING)
    assert (ran.returncode, ran.stderr.strip()) == (status, SENTENCE)
    assert not (out / "b.onnx").exists()


@pytest.mark.parametrize("verify", ["--verify", "--no-verify"])
def test_the_only_model_is_interrupted_at_once(folder: Path, tmp_path: Path, verify: str) -> None:
    """Verified it is in another process, which is ended; not verified, in this one."""
    out = tmp_path / "b.onnx"
    out.write_bytes(b"old")
    ran = interrupted(signal.SIGINT, "", "convert", folder / "b.onnx", "-o", out, "--opset", 13, "--force", verify)
    assert (ran.returncode, ran.stderr.strip()) == (130, SENTENCE)
    assert out.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"models", "b.onnx"}
