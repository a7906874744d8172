"""Models behind URLs: what fsspec reaches is read like files of this machine; outputs are files of this machine."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

from reducelower.batch import check_files, convert_files
from reducelower.files.remote import is_url
from tests.files.external_models import WEIGHTS, model_with

Cli = Callable[..., Any]


@pytest.fixture
def memory(models: Path) -> Iterator[Any]:
    """A file system in memory with two models in a folder."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    system.pipe("/models/mean.onnx", (models / "torch_mean_dyn_18.onnx").read_bytes())
    system.pipe("/models/deep/gmm.onnx", (models / "skl_gmm_20.onnx").read_bytes())
    system.pipe("/models/readme.txt", b"no model")
    yield system
    system.store.clear()


def opset(data: bytes) -> int:
    return next(item.version for item in onnx.load(io.BytesIO(data)).opset_import if item.domain == "")


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.onnx"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s3://bucket/model.onnx", True),
        ("simplecache::s3://bucket/model.onnx", True),
        ("memory://model.onnx", True),
        ("model.onnx", False),
        ("./a:b/model.onnx", False),
        ("C:\\models\\model.onnx", False),
        ("c://model.onnx", False),
    ],
)
def test_what_is_a_url(name: str, expected: bool) -> None:
    assert is_url(name) is expected


def test_models_behind_urls_are_inspected(cli: Cli, memory: Any) -> None:
    ran = cli("inspect", "memory://models/mean.onnx", "memory://models/none.onnx")
    assert ran.status == 2
    assert ran.out.startswith("memory://models/mean.onnx\n")
    assert "memory://models/none.onnx" in ran.err


def test_external_data_that_is_missing_is_named(cli: Cli, memory: Any, tmp_path: Path) -> None:
    memory.pipe("/large/model.onnx", model_with(tmp_path, location="w.bin").read_bytes())
    for command in (["check"], ["convert", "-o", tmp_path / "out.onnx"], ["verify", "--runtime", "reference"]):
        options = [] if "verify" in command else ["--opset", 13]
        ran = cli(command[0], "memory://large/model.onnx", *command[1:], *options)
        assert ran.status == 2
        assert ran.err.startswith("error: memory://large/model.onnx: tensor 'w' has its data in 'w.bin'")
        assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd"])
def test_external_data_elsewhere_is_not_fetched(cli: Cli, memory: Any, tmp_path: Path, location: str) -> None:
    memory.pipe("/large/model.onnx", model_with(tmp_path, location=location).read_bytes())
    memory.pipe("/w.bin", WEIGHTS)
    ran = cli("check", "memory://large/model.onnx", "--opset", 13)
    assert ran.status == 2
    assert "memory://large/model.onnx: tensor 'w'" in ran.err


def test_a_model_that_is_not_there_or_none_at_all(cli: Cli, memory: Any) -> None:
    for name, reason in (("models/none.onnx", "no such file"), ("models/readme.txt", "is not an ONNX model")):
        ran = cli("check", f"memory://{name}", "--opset", 13)
        assert ran.status == 2
        assert f"memory://{name}" in ran.err
        assert reason in ran.err
        assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(("url", "reason"), [("memory://models/*.pb", "nothing matches"), ("memory://", "")])
def test_a_pattern_without_models(cli: Cli, memory: Any, url: str, reason: str) -> None:
    if url == "memory://":
        memory.rm("/models", recursive=True)
    ran = cli("check", url, "--opset", 13)
    assert ran.status == 2
    assert reason in ran.err


def test_a_protocol_that_nobody_knows(cli: Cli, memory: Any) -> None:
    ran = cli("check", "nosuch://models/mean.onnx", "--opset", 13)
    assert ran.status == 2
    assert ran.err.startswith("error: cannot open nosuch://models/mean.onnx: ")
    assert len(ran.err.splitlines()) == 1


def test_files_of_this_machine_by_url_are_read_as_any_url(cli: Cli, models: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "models", tmp_path / "out"
    folder.mkdir()
    shutil.copy(models / "torch_mean_dyn_18.onnx", folder / "mean.onnx")
    ran = cli("convert", folder.as_uri(), "--output-dir", out, "--opset", 13)
    assert ran.status == 0, ran.err
    assert opset((out / "mean.onnx").read_bytes()) == 13
    ran = cli("convert", folder.as_uri(), "--output-dir", out.as_uri(), "--opset", 13)
    assert (ran.status, "outputs are files of this machine" in ran.err) == (2, True)


def test_one_model_is_converted_into_a_file(cli: Cli, memory: Any, tmp_path: Path) -> None:
    ran = cli("convert", "memory://models/mean.onnx", "-o", tmp_path / "mean.onnx", "--opset", 13)
    assert ran.status == 0, ran.err
    assert "memory://models/mean.onnx: opset 18 -> 13" in ran.out
    assert opset((tmp_path / "mean.onnx").read_bytes()) == 13
    assert cli("verify", "memory://models/mean.onnx", tmp_path / "mean.onnx").status == 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_folders_keep_their_structure(cli: Cli, memory: Any, tmp_path: Path, jobs: int) -> None:
    options = ("--opset", 13, "--no-verify", "--jobs", jobs)
    assert cli("convert", "memory://models/", "--output-dir", tmp_path, *options).status == 0
    assert names(tmp_path) == ["deep/gmm.onnx", "mean.onnx"]
    assert opset((tmp_path / "deep" / "gmm.onnx").read_bytes()) == 13


def test_patterns_keep_what_follows_their_fixed_part(cli: Cli, memory: Any, tmp_path: Path) -> None:
    arguments = ("convert", "memory://models/**/*m*.onnx", "--output-dir", tmp_path, "--opset", 13)
    assert cli(*arguments, "--no-verify").status == 0
    assert names(tmp_path) == ["deep/gmm.onnx", "mean.onnx"]


@pytest.mark.parametrize("where", [["-o", "memory://out.onnx"], ["--output-dir", "s3://bucket/out"], ["--in-place"]])
def test_an_output_is_a_file_of_this_machine(cli: Cli, memory: Any, where: list[str]) -> None:
    ran = cli("convert", "memory://models/mean.onnx", *where, "--opset", 13)
    assert ran.status == 2
    assert "outputs are files of this machine" in ran.err
    assert not memory.exists("/out.onnx")


def test_models_are_checked(cli: Cli, memory: Any) -> None:
    ran = cli("check", "memory://models", "--opset", 13)
    assert ran.status == 1
    assert "memory://models/mean.onnx: does not fit opset 13" in ran.out
    assert [item.status for item in check_files(["memory://models"], 13)] == [1, 1]


def test_external_data_comes_along(cli: Cli, memory: Any, tmp_path: Path) -> None:
    path = model_with(tmp_path, location="weights/w.bin")
    memory.pipe("/large/model.onnx", path.read_bytes())
    memory.pipe("/large/weights/w.bin", WEIGHTS)
    ran = cli("convert", "memory://large/model.onnx", "--opset", 13, "--output-dir", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert "equal on 2 sets of inputs" in ran.out  # so the weights were there to run it
    assert (tmp_path / "out" / "weights" / "w.bin").read_bytes() == WEIGHTS


def test_resuming_looks_at_what_is_behind_the_urls(cli: Cli, memory: Any, tmp_path: Path) -> None:
    arguments = ("convert", "memory://models", "--output-dir", tmp_path, "--opset", 13, "--no-verify", "--resume")
    assert cli(*arguments).status == 0
    assert cli(*arguments).out.count("kept") == 3  # two models and the summary
    memory.pipe("/models/mean.onnx", memory.cat("/models/deep/gmm.onnx"))
    assert cli(*arguments).out.count("kept") == 2
    assert (tmp_path / "mean.onnx").read_bytes() == (tmp_path / "deep" / "gmm.onnx").read_bytes()


def test_library_calls_take_urls(memory: Any, tmp_path: Path) -> None:
    outcomes = list(convert_files(["memory://models"], 13, output_dir=tmp_path, verify=False))
    assert [item.source for item in outcomes] == ["memory://models/deep/gmm.onnx", "memory://models/mean.onnx"]
    assert [item.output for item in outcomes] == [str(tmp_path / "deep" / "gmm.onnx"), str(tmp_path / "mean.onnx")]


def test_without_fsspec_a_sentence_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    ran = cli("check", "memory://models/mean.onnx", "--opset", 13)
    told = "memory://models/mean.onnx is a URL, and fsspec is not installed; pip install 'reducelower[remote]'"
    assert (ran.status, ran.err) == (2, f"error: {told}\n")
