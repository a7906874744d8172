"""A library call resumes, and so does a batch that is killed; `resuming.toml` beside the sessions has the rest."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from reducelower.batch import convert_files
from tests.forked import ended, reducelower, started


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_library_call_resumes_too(two_models: Path, tmp_path: Path) -> None:
    for expected in (False, True):
        outcomes = list(convert_files([two_models], 13, output_dir=tmp_path / "out", resume=True, verify=False))
        assert [outcome.verdict == "kept" for outcome in outcomes] == [expected, expected]


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are forks")
def test_a_batch_killed_again_and_again_ends_with_the_same_bytes(models: Path, tmp_path: Path) -> None:
    source = tmp_path / "models"
    source.mkdir()
    for at in range(80):
        name = ("torch_mean_dyn_18.onnx", "torch_sum_dyn_18.onnx", "skl_gmm_20.onnx")[at % 3]
        shutil.copy(models / name, source / f"{at:02}.onnx")

    def words(output: Path) -> list[str]:
        return ["convert", str(source), "--output-dir", str(output), "--opset", "13", "--no-verify", "--resume"]

    assert reducelower(words(tmp_path / "whole"), tmp_path).returncode == 0
    out = tmp_path / "out"
    for enough in (1, 12, 25):
        process = started(words(out))
        while len(list(out.glob("*.onnx"))) < enough:
            time.sleep(0.002)
        os.kill(process, signal.SIGKILL)
        ended(process)
    assert 25 <= len(list(out.glob("*.onnx"))) < 80
    last = reducelower(words(out), tmp_path)
    assert (last.returncode, last.stderr) == (0, "")
    assert last.stdout.count("kept, converted by an earlier run") >= 24  # of the last, the record may be missing
    assert content(out) == content(tmp_path / "whole")
