"""The names of outputs are put on disk once for every folder of a run, after the last of them is there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reducelower.batch import Outcome, Task, convert_files
from reducelower.batch.many import with_names_on_disk

Cli = Callable[..., Any]


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    root = tmp_path / "models"
    (root / "deep").mkdir(parents=True)
    for name in ("one", "two", "deep/three"):
        shutil.copy(models / "torch_mean_dyn_18.onnx", root / f"{name}.onnx")
    return root


_HEARD: list[list[tuple[Path, list[str]]]] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a folder that is opened to be read, as it is to flush the names in it."""
    if not _HEARD or event != "open":
        return
    place, mode, flags = arguments
    if mode is None and not flags & (os.O_WRONLY | os.O_RDWR) and Path(place).is_dir():
        _HEARD[-1].append((Path(place), sorted(path.name for path in Path(place).glob("*.onnx"))))


sys.addaudithook(_hear)  # for good, so that it is idle without a list


@pytest.fixture
def synced() -> Iterator[list[tuple[Path, list[str]]]]:
    """The folders that were synced, each with the names that were in it."""
    if os.name != "posix":
        pytest.skip("folders are not files here")
    _HEARD.append([])
    yield _HEARD[-1]
    _HEARD.clear()


@pytest.mark.parametrize("jobs", [1, 2])
def test_once_a_folder_and_last(
    cli: Cli, folder: Path, tmp_path: Path, synced: list[tuple[Path, list[str]]], jobs: int
) -> None:
    out = tmp_path / "out"
    expected = [(out, ["one.onnx", "two.onnx"]), (out / "deep", ["three.onnx"])]
    assert len(list(convert_files([folder], 13, output_dir=out, verify=False, jobs=jobs))) == 3
    assert sorted(synced) == expected
    synced.clear()
    options = ("--opset", 13, "--no-verify", "--force", "--jobs", jobs)
    assert cli("convert", folder, "--output-dir", out, *options).status == 0
    assert sorted(synced) == expected


def test_a_single_output_where_its_link_leads(
    cli: Cli, folder: Path, tmp_path: Path, synced: list[tuple[Path, list[str]]]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.onnx").symlink_to(tmp_path / "elsewhere" / "real.onnx")
    arguments = ("convert", folder / "one.onnx", "-o", tmp_path / "link.onnx", "--opset", 13, "--no-verify")
    assert cli(*arguments).status == 0
    assert synced == [(tmp_path / "elsewhere", ["real.onnx"])]


@pytest.mark.parametrize("jobs", [1, 2])
def test_whoever_stops_half_way_has_on_disk_what_there_is(
    folder: Path, tmp_path: Path, synced: list[tuple[Path, list[str]]], jobs: int
) -> None:
    """What worker processes were at is done as well by then."""
    out = tmp_path / "out"
    outcomes = convert_files([folder], 13, output_dir=out, verify=False, jobs=jobs)
    assert Path(next(outcomes).output) == out / "deep" / "three.onnx"
    outcomes.close()
    now = {place: sorted(path.name for path in place.glob("*.onnx")) for place in (out, out / "deep")}
    assert dict(synced) == now
    assert now[out / "deep"] == ["three.onnx"]


def test_nothing_to_do_for_what_is_not_here() -> None:
    outcomes = [Outcome("b.onnx", output="/nowhere/at/all/b.onnx"), Outcome("c.onnx", output="memory://there/c.onnx")]
    tasks = [Task(outcome.source, outcome.output) for outcome in outcomes]
    assert list(with_names_on_disk((outcome for outcome in outcomes), tasks)) == outcomes
