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


def test_a_folder_that_is_named_as_a_model_is_no_model(cli: Cli, folder: Path, tmp_path: Path) -> None:
    (folder / "mean.onnx").rename(tmp_path / "mean.onnx")
    (folder / "mean.onnx").mkdir()
    (tmp_path / "mean.onnx").rename(folder / "mean.onnx" / "model.onnx")
    ran = cli("convert", folder, "--output-dir", tmp_path / "out", "--opset", 13, "--no-verify")
    assert (ran.status, ran.err) == (0, "")
    assert written(tmp_path / "out") == ["deep/er/sum.onnx", "deep/gmm.onnx", "mean.onnx/model.onnx"]
