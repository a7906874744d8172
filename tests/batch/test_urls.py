"""Models behind URLs: what fsspec reaches is read and written like files of this machine."""

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
from reducelower.files.remote import as_path, beside, is_url, join
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


def names(memory: Any, folder: str) -> list[str]:
    return sorted(memory.find(folder))


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


def test_names_beside_and_below() -> None:
    assert join("s3://bucket/out/", "deep/a.onnx") == "s3://bucket/out/deep/a.onnx"
    assert join("out", "a.onnx") == str(Path("out") / "a.onnx")
    assert beside("memory://a.onnx", "w.bin") == "memory://w.bin"
    assert beside("s3://bucket/a.onnx", "w.bin") == "s3://bucket/w.bin"


def test_one_model_from_url_to_url(cli: Cli, memory: Any) -> None:
    ran = cli("convert", "memory://models/mean.onnx", "-o", "memory://out/mean.onnx", "--opset", 13)
    assert ran.status == 0, ran.err
    assert "memory://models/mean.onnx: opset 18 -> 13" in ran.out
    assert "memory://out/mean.onnx" in ran.out
    assert opset(memory.cat("/out/mean.onnx")) == 13


def test_folders_keep_their_structure(cli: Cli, memory: Any, tmp_path: Path) -> None:
    options = ("--opset", 13, "--no-verify")
    assert cli("convert", "memory://models", "--output-dir", "memory://out", *options).status == 0
    assert names(memory, "/out") == ["/out/deep/gmm.onnx", "/out/mean.onnx"]
    assert cli("convert", "memory://models/", "--output-dir", tmp_path / "out", *options).status == 0
    assert (tmp_path / "out" / "deep" / "gmm.onnx").read_bytes() == memory.cat("/out/deep/gmm.onnx")
    assert cli("convert", tmp_path / "out", "--output-dir", "memory://again", "--opset", 18, "--no-verify").status == 0
    assert opset(memory.cat("/again/deep/gmm.onnx")) == 18


def test_patterns_keep_what_follows_their_fixed_part(cli: Cli, memory: Any) -> None:
    arguments = ("convert", "memory://models/**/*m*.onnx", "--output-dir", "memory://out", "--opset", 13)
    assert cli(*arguments, "--no-verify").status == 0
    assert names(memory, "/out") == ["/out/deep/gmm.onnx", "/out/mean.onnx"]


def test_outputs_among_the_inputs_are_no_inputs(cli: Cli, memory: Any) -> None:
    arguments = ("convert", "memory://models", "--output-dir", "memory://models/out", "--opset", 13, "--no-verify")
    assert cli(*arguments).status == 0
    assert cli(*arguments, "--force").status == 0
    assert names(memory, "/models/out") == ["/models/out/deep/gmm.onnx", "/models/out/mean.onnx"]


def test_in_place(cli: Cli, memory: Any) -> None:
    assert cli("convert", "memory://models", "--in-place", "--opset", 13, "--no-verify").status == 0
    assert [opset(memory.cat(name)) for name in ("/models/mean.onnx", "/models/deep/gmm.onnx")] == [13, 13]


def test_an_output_that_exists_stays_unless_forced(cli: Cli, memory: Any) -> None:
    memory.pipe("/out.onnx", b"old")
    arguments = ("convert", "memory://models/mean.onnx", "-o", "memory://out.onnx", "--opset", 13, "--no-verify")
    ran = cli(*arguments)
    assert ran.status == 2
    assert ran.err == "error: memory://out.onnx exists already; --force replaces it\n"
    assert memory.cat("/out.onnx") == b"old"
    assert cli(*arguments, "--force").status == 0
    assert opset(memory.cat("/out.onnx")) == 13


def test_checks_and_comparisons(cli: Cli, memory: Any) -> None:
    ran = cli("check", "memory://models", "--opset", 13)
    assert ran.status == 1
    assert "memory://models/mean.onnx: does not fit opset 13" in ran.out
    cli("convert", "memory://models/mean.onnx", "-o", "memory://out.onnx", "--opset", 13, "--no-verify")
    assert cli("verify", "memory://models/mean.onnx", "memory://out.onnx").status == 0


def test_external_data_comes_along(cli: Cli, memory: Any, tmp_path: Path) -> None:
    path = model_with(tmp_path, location="weights/w.bin")
    memory.pipe("/large/model.onnx", path.read_bytes())
    memory.pipe("/large/weights/w.bin", WEIGHTS)
    arguments = ("convert", "memory://large/model.onnx", "--opset", 13, "--output-dir", "memory://out")
    ran = cli(*arguments)
    assert ran.status == 0, ran.err
    assert "equal on 2 sets of inputs" in ran.out  # so the weights were there to run it
    assert memory.cat("/out/weights/w.bin") == WEIGHTS
    memory.pipe("/out/weights/w.bin", bytes(len(WEIGHTS)))
    memory.rm("/out/model.onnx")
    ran = cli(*arguments)
    assert ran.status == 2
    assert ran.err == ("error: memory://out/weights/w.bin, the external data, exists already; --force replaces it\n")
    assert not memory.exists("/out/model.onnx")


def test_external_data_that_is_missing_is_named(cli: Cli, memory: Any, tmp_path: Path) -> None:
    memory.pipe("/large/model.onnx", model_with(tmp_path, location="w.bin").read_bytes())
    for command in (["check"], ["convert", "-o", "memory://out.onnx"], ["verify", "--runtime", "reference"]):
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


def test_an_output_is_no_folder(cli: Cli, memory: Any) -> None:
    ran = cli("convert", "memory://models/mean.onnx", "-o", "memory://models", "--opset", 13, "--no-verify")
    assert ran.status == 2
    assert ran.err == "error: cannot write memory://models: it is a folder; name a file in it\n"


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


def test_without_fsspec_a_sentence_says_so(
    cli: Cli, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    expected = "is a URL, and fsspec is not installed; pip install 'reducelower[remote]'\n"
    ran = cli("check", "memory://models/mean.onnx", "--opset", 13)
    assert (ran.status, ran.err) == (2, f"error: memory://models/mean.onnx {expected}")
    ran = cli("convert", models / "torch_mean_dyn_18.onnx", "-o", "s3://b/out.onnx", "--opset", 13, "--no-verify")
    assert (ran.status, ran.err) == (2, f"error: s3://b/out.onnx {expected}")


def test_resuming_among_urls(cli: Cli, memory: Any) -> None:
    arguments = ("convert", "memory://models", "--output-dir", "memory://out", "--opset", 13, "--no-verify", "--resume")
    assert cli(*arguments).status == 0
    assert "/out/.reducelower/deep/gmm.onnx.json" in names(memory, "/out")
    assert cli(*arguments).out.count("kept") == 3  # two models and the summary
    memory.pipe("/models/mean.onnx", memory.cat("/models/deep/gmm.onnx"))
    assert cli(*arguments).out.count("kept") == 2
    memory.pipe("/out/mean.onnx", b"mine")
    ran = cli(*arguments)
    assert ran.status == 2
    assert "memory://out/mean.onnx exists already" in ran.err


def test_resuming_among_urls_replaces_only_data_that_was_recorded(cli: Cli, memory: Any, tmp_path: Path) -> None:
    memory.pipe("/large/model.onnx", model_with(tmp_path, location="w.bin").read_bytes())
    memory.pipe("/large/w.bin", WEIGHTS)
    arguments = ("convert", "memory://large", "--output-dir", "memory://out", "--opset", 13, "--no-verify", "--resume")
    memory.pipe("/out/w.bin", b"precious")
    occupied = "error: memory://out/w.bin, the external data, exists already; --force replaces it\n"
    ran = cli(*arguments)
    assert (ran.status, ran.err) == (2, occupied)
    memory.rm("/out/w.bin")
    assert cli(*arguments).status == 0
    memory.pipe("/large/w.bin", bytes(len(WEIGHTS)))
    ran = cli(*arguments)
    assert (ran.status, ran.err) == (0, "")
    assert memory.cat("/out/w.bin") == bytes(len(WEIGHTS))
    memory.pipe("/large/w.bin", WEIGHTS)
    memory.pipe("/out/w.bin", b"precious")
    ran = cli(*arguments)
    assert (ran.status, ran.err) == (2, occupied)
    assert memory.cat("/out/w.bin") == b"precious"


def test_data_of_two_models_for_one_url_is_refused(cli: Cli, memory: Any, tmp_path: Path) -> None:
    models = []
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.bin").write_bytes(WEIGHTS + name.encode() * len(models))
        models.append(model_with(tmp_path / name, name=f"{name}.onnx", location="./w.bin"))
    ran = cli("convert", *models, "--output-dir", "memory://out", "--opset", 13, "--force")
    assert ran.status == 2
    assert "both bring external data to memory://out/w.bin" in ran.err
    assert names(memory, "/out") == []


@pytest.mark.parametrize("step", ["put", "write_record"])
def test_a_run_among_urls_that_ends_half_way_is_resumed(
    cli: Cli, memory: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from reducelower.batch import staging

    arguments = ("convert", "memory://models", "--output-dir", "memory://out", "--opset", 13, "--no-verify", "--resume")
    assert cli(*arguments).status == 0
    # Another weight in a model of the same size, so that sizes tell nothing.
    model = onnx.load(io.BytesIO(memory.cat("/models/deep/gmm.onnx")))
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0])
    changed = onnx.numpy_helper.from_array(weights + weights.dtype.type(1), model.graph.initializer[0].name)
    model.graph.initializer[0].CopyFrom(changed)
    memory.pipe("/models/deep/gmm.onnx", model.SerializeToString())
    old = memory.cat("/out/deep/gmm.onnx")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(staging, step, fail)
        assert cli(*arguments).status == 2
    ran = cli(*arguments)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.count("kept") == 2  # mean.onnx and the summary
    assert len(memory.cat("/out/deep/gmm.onnx")) == len(old)
    assert memory.cat("/out/deep/gmm.onnx") != old
    memory.rm("/out/.reducelower", recursive=True)
    assert cli(*arguments).status == 0  # what is there is what would be written


def test_memory_of_another_process_is_refused(cli: Cli, memory: Any) -> None:
    ran = cli("convert", "memory://models", "--output-dir", "memory://out", "--opset", 13, "--jobs", 2)
    assert ran.status == 2
    assert "in the memory of another process" in ran.err


def test_files_of_this_machine_by_url(cli: Cli, models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    shutil.copy(models / "torch_mean_dyn_18.onnx", folder / "mean.onnx")
    assert as_path((folder / "mean.onnx").as_uri()) == str(folder / "mean.onnx")
    out = tmp_path / "out"
    ran = cli("convert", folder.as_uri(), "--output-dir", out.as_uri(), "--opset", 13, "--resume")
    assert ran.status == 0, ran.err
    assert opset((out / "mean.onnx").read_bytes()) == 13
    single = tmp_path / "single.onnx"
    assert cli("convert", (folder / "mean.onnx").as_uri(), "-o", single.as_uri(), "--opset", 13).status == 0
    assert cli("verify", (folder / "mean.onnx").as_uri(), single.as_uri()).status == 0


def test_library_calls_take_urls(memory: Any) -> None:
    assert [item.status for item in check_files(["memory://models"], 13)] == [1, 1]
    outcomes = list(convert_files(["memory://models"], 13, output_dir="memory://out", verify=False))
    assert [item.output for item in outcomes] == ["memory://out/deep/gmm.onnx", "memory://out/mean.onnx"]
    assert all(opset(memory.cat(name)) == 13 for name in names(memory, "/out"))


def test_a_write_that_fails_leaves_nothing(memory: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFile

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(MemoryFile, "write", fail, raising=False)
    ran = cli("convert", "memory://models/mean.onnx", "-o", "memory://out.onnx", "--opset", 13, "--no-verify")
    assert (ran.status, ran.err) == (2, "error: cannot write memory://out.onnx: No space left on device\n")
    assert not memory.exists("/out.onnx")
