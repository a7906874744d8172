"""What only whole processes show: what libraries print, hash seeds, full disks, writers that meet."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.forked import ended, started
from tests.legalization.models import FORMS, OPERATORS, Case
from tests.reliability.hostile import model, node

COMMAND = [sys.executable, "-m", "reducelower"]


def run(*arguments: object, seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120, env=environment
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of every operator, in forms of axes that differ."""
    place = tmp_path_factory.mktemp("models")
    for number, op_type in enumerate(OPERATORS):
        form = list(FORMS)[number % len(FORMS)]
        case = Case(op_type, 18, form if form != "outer" else "one", place="If" if number % 3 else "function")
        (place / f"{op_type}.onnx").write_bytes(case.model().SerializeToString())
    return place


def hashes(place: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(place.rglob("*.onnx"))}


def test_outputs_are_the_same_whatever_the_hash_seed_and_the_number_of_processes(folder: Path, tmp_path: Path) -> None:
    found = []
    for seed, jobs in (("0", 1), ("1", 1), ("12345", 2)):
        output = tmp_path / f"{seed}_{jobs}"
        options = ("--opset", 13, "--without", "ReduceL2", "--jobs", jobs, "--no-verify")
        ran = run("convert", folder, "--output-dir", output, *options, seed=seed)
        assert ran.returncode == 0, ran.stderr
        found.append((hashes(output), ran.stdout.replace(str(output), "")))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) == len(OPERATORS)


# What onnxruntime says on its own in a process with these models: an unused initializer, an IR version from the future,
# a shape that is not what the model states, an operator it does not have.


def _unused() -> bytes:
    made = model(node("ReduceMax"))
    made.graph.initializer.append(
        numpy_helper.from_array(numpy_helper.to_array(helper.make_tensor("w", 1, [1], [1.0])), "w")
    )
    return made.SerializeToString()


def _misstated() -> bytes:
    made = model(node("Abs", "x", "z"), node("ReduceMax", "z"))
    for size in made.graph.output[0].type.tensor_type.shape.dim:
        size.dim_value = 1
    made.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["p", "p"]))
    return made.SerializeToString()


CHATTY = {"an unused initializer": _unused, "shapes that are not so": _misstated}


@pytest.mark.parametrize("name", CHATTY)
def test_libraries_do_not_reach_the_terminal(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(CHATTY[name]())
    ran = run("convert", path, "-o", tmp_path / "out.onnx", "--opset", 13, "-q")
    assert all(line.startswith(("error: ", "warning: ")) for line in ran.stderr.splitlines()), ran.stderr
    assert ran.stdout == ""
    for phrase in ("onnxruntime", "[W:", "[E:", "WARNING", "libprotobuf", "Warning:", "Traceback"):
        assert phrase not in ran.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = (
        sys.platform == "linux"
        and os.geteuid() == 0
        and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], check=False).returncode == 0
    )
    if not mounted:
        pytest.skip("only the superuser of Linux mounts a disk")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("old", [True, False], ids=["replacing", "new"])
def test_a_full_disk_leaves_what_was_there(small_disk: Path, tmp_path: Path, old: bool) -> None:
    made = model(node("ReduceMax"), tensors=[helper.make_tensor("w", 1, [50_000], bytes(200_000), raw=True)])
    path, output = tmp_path / "model.onnx", small_disk / "out.onnx"
    path.write_bytes(made.SerializeToString())
    if old:
        output.write_bytes(b"old")
    ran = run("convert", path, "-o", output, "--opset", 13, "--force", "--no-verify")
    assert ran.returncode == 2
    assert "No space left on device" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert [entry.name for entry in small_disk.iterdir()] == (["out.onnx"] if old else [])
    assert not old or output.read_bytes() == b"old"


def _replacing(source: Path, output: Path) -> list[str]:
    return ["convert", str(source), "-o", str(output), "--opset", "13", "--force", "--no-verify"]


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are forks")
def test_of_two_processes_that_write_one_file_each_leaves_a_whole_one(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    results = set()
    for name in ("ReduceMax", "ReduceL2"):
        assert (
            run("convert", folder / f"{name}.onnx", "-o", tmp_path / name, "--opset", 13, "--no-verify").returncode == 0
        )
        results.add((tmp_path / name).read_bytes())
    for _ in range(4):
        writers = [started(_replacing(folder / f"{name}.onnx", output)) for name in ("ReduceMax", "ReduceL2") * 2]
        assert [ended(writer) for writer in writers] == [0] * 4
        assert output.read_bytes() in results
    assert {path.name for path in tmp_path.iterdir()} == {"out.onnx", "ReduceMax", "ReduceL2"}


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are forks")
def test_a_process_killed_at_any_time_leaves_the_old_file_or_the_new_one(folder: Path, tmp_path: Path) -> None:
    output, whole = tmp_path / "out.onnx", tmp_path / "whole"
    assert ended(started(_replacing(folder / "ReduceL2.onnx", whole))) == 0
    output.write_bytes(b"old")
    begun = time.monotonic()
    assert ended(started(_replacing(folder / "ReduceL2.onnx", output))) == 0
    took = time.monotonic() - begun
    for at in range(24):
        output.write_bytes(b"old")
        writer = started(_replacing(folder / "ReduceL2.onnx", output))
        time.sleep(took * at / 22)
        os.kill(writer, signal.SIGKILL)
        ended(writer)
        assert output.read_bytes() in (b"old", whole.read_bytes())
        assert {path.name for path in tmp_path.iterdir()} == {"out.onnx", "whole"}
