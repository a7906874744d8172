"""Many models in one run: structure kept, bad ones passed over, a summary and a status for all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    root = tmp_path / "models"
    (root / "deep" / "er").mkdir(parents=True)
    shutil.copy(models / "torch_mean_dyn_18.onnx", root / "mean.onnx")
    shutil.copy(models / "torch_sum_dyn_18.onnx", root / "deep" / "er" / "sum.onnx")
    shutil.copy(models / "skl_gmm_20.onnx", root / "deep" / "gmm.onnx")
    return root


def written(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("jobs", [1, 2])
def test_folders_keep_their_structure(cli: Cli, folder: Path, tmp_path: Path, jobs: int) -> None:
    out = tmp_path / "out"
    ran = cli("convert", folder, "--output-dir", out, "--opset", 13, "--no-verify", "--jobs", jobs)
    assert ran.status == 0, ran.err
    assert written(out) == ["deep/er/sum.onnx", "deep/gmm.onnx", "mean.onnx"]
    assert ran.out.splitlines()[-1] == "3 models: 3 converted; 4 nodes rewritten"


def test_patterns_keep_what_follows_their_fixed_part(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli("convert", folder / "**" / "*m*.onnx", "--output-dir", out, "--opset", 13, "--no-verify").status == 0
    assert written(out) == ["deep/er/sum.onnx", "deep/gmm.onnx", "mean.onnx"]


def test_a_bad_model_does_not_stop_the_others(cli: Cli, folder: Path, tmp_path: Path) -> None:
    (folder / "deep" / "broken.onnx").write_bytes(b"no model at all")
    out = tmp_path / "out"
    ran = cli("convert", folder, "--output-dir", out, "--opset", 13, "--no-verify", "--jobs", 2)
    assert ran.status == 2
    assert written(out) == ["deep/er/sum.onnx", "deep/gmm.onnx", "mean.onnx"]
    assert "broken.onnx is not an ONNX model" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.out.splitlines()[-1] == "4 models: 3 converted, 1 unreadable; 4 nodes rewritten"


def test_outputs_inside_the_input_folder_are_no_inputs(cli: Cli, folder: Path) -> None:
    arguments = ("convert", folder, "--output-dir", folder / "out", "--opset", 13, "--no-verify", "--force")
    assert cli(*arguments).status == 0
    assert cli(*arguments).status == 0
    assert written(folder / "out") == ["deep/er/sum.onnx", "deep/gmm.onnx", "mean.onnx"]


def test_links_to_outputs_are_no_inputs(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("convert", folder, "--output-dir", out, "--opset", 13, "--no-verify", "--force")
    assert cli(*arguments).status == 0
    (folder / "link.onnx").symlink_to(out / "mean.onnx")
    (folder / "same.onnx").symlink_to(folder / "mean.onnx")
    assert cli(*arguments).status == 0
    assert written(out) == ["deep/er/sum.onnx", "deep/gmm.onnx", "mean.onnx", "same.onnx"]


def test_a_link_that_leads_nowhere_stops_no_other(cli: Cli, folder: Path, tmp_path: Path) -> None:
    (folder / "self.onnx").symlink_to("self.onnx")
    (folder / "lost.onnx").symlink_to("nowhere.onnx")
    ran = cli("convert", folder, "--output-dir", tmp_path / "out", "--opset", 13, "--no-verify")
    assert ran.status == 2
    assert "itself failed" not in ran.err
    assert written(tmp_path / "out") == ["deep/er/sum.onnx", "deep/gmm.onnx", "mean.onnx"]


def test_two_models_for_one_output_are_refused_before_any_work(cli: Cli, folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "mean.onnx", folder / "deep" / "mean.onnx")
    out = tmp_path / "out"
    ran = cli("convert", folder / "mean.onnx", folder / "deep" / "mean.onnx", "--output-dir", out, "--opset", 13)
    assert ran.status == 2
    assert "would both be written to" in ran.err
    assert not out.exists()


def test_one_output_name_for_many_models_is_refused(cli: Cli, folder: Path, tmp_path: Path) -> None:
    ran = cli("convert", folder, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 2
    assert "--output-dir" in ran.err


def test_many_models_in_place(cli: Cli, folder: Path) -> None:
    before = written(folder)
    assert cli("convert", folder, "--in-place", "--opset", 13, "--no-verify").status == 0
    assert written(folder) == before
    assert cli("check", folder, "--opset", 13).status == 0
