"""A library call resumes, and so does a batch that is killed; `resuming.toml` beside the sessions has the rest."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reducelower.batch import convert_files


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_library_call_resumes_too(two_models: Path, tmp_path: Path) -> None:
    for expected in (False, True):
        outcomes = list(convert_files([two_models], 13, output_dir=tmp_path / "out", resume=True, verify=False))
        assert [outcome.kept for outcome in outcomes] == [expected, expected]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_batch_killed_again_and_again_ends_with_the_same_bytes(models: Path, tmp_path: Path) -> None:
    source = tmp_path / "models"
    source.mkdir()
    for at in range(40):
        name = ("torch_mean_dyn_18.onnx", "torch_sum_dyn_18.onnx", "skl_gmm_20.onnx")[at % 3]
        shutil.copy(models / name, source / f"{at:02}.onnx")

    def started(output: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "reducelower", "convert", str(source), "--output-dir", str(output)]
        options = ["--opset", "13", "--no-verify", "--resume"]
        return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    whole = started(tmp_path / "whole")
    assert whole.communicate(timeout=120) and whole.returncode == 0
    out = tmp_path / "out"
    for enough in (1, 12, 25):
        process = started(out)
        while process.poll() is None and len(list(out.glob("*.onnx"))) < enough:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert 25 <= len(list(out.glob("*.onnx"))) < 40
    last = started(out)
    said, problems = last.communicate(timeout=120)
    assert (last.returncode, problems) == (0, "")
    assert said.count("kept, converted by an earlier run") >= 24  # of the last, the record may be missing
    assert content(out) == content(tmp_path / "whole")
