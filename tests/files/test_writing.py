"""Writing: the output appears whole or not at all, and whatever was there survives."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx
import pytest

from files.external_models import WEIGHTS, model_with
from reducelower.errors import UnreadableModelError
from reducelower.files import LoadedModel, pending, read_model, resolve_destination, write_model


@pytest.fixture
def source(models: Path) -> LoadedModel:
    return read_model(models / "torch_mean_dyn_18.onnx")


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_model_comes_back_as_it_was_written(source: LoadedModel, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    assert write_model(source.document, output, source=source) == output
    assert output.read_bytes() == source.path.read_bytes()
    assert names(tmp_path) == {"out.onnx"}


def test_a_new_file_has_the_usual_permissions(source: LoadedModel, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_model(source.document, tmp_path / "out.onnx", source=source)
    finally:
        os.umask(old)
    assert (tmp_path / "out.onnx").stat().st_mode & 0o777 == 0o640


def test_a_replaced_file_keeps_its_permissions(source: LoadedModel, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    output.write_bytes(b"old")
    output.chmod(0o604)
    write_model(source.document, output, source=source, overwrite=True)
    assert output.stat().st_mode & 0o777 == 0o604
    assert names(tmp_path) == {"out.onnx"}


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_written(descriptor: int, data: Any) -> int:
    if len(data) < 100:
        no_space()
    return os.write(descriptor, data[: len(data) // 2])


def no_space_for_models(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda old, new, **how: no_space() if Path(new).suffix == ".onnx" else call(old, new, **how)


class System:
    """The calls of the system, some of them others, some missing."""

    def __init__(self, lacks: Collection[str] = (), **calls: Callable[..., Any]) -> None:
        self._lacks, self._calls = lacks, calls

    def __getattr__(self, name: str) -> Any:
        if name in self._lacks:
            raise AttributeError(name)
        return self._calls.get(name) or getattr(os, name)


FAULTS = {
    "fsync": ("fsync", no_space),
    "rename": ("replace", no_space),
    "link": ("link", no_space),
    "write": ("write", no_space),
    "disk full half way": ("write", half_written),
    "permissions": ("fchmod", no_space),
    "interrupt": ("fsync", lambda *_: signal.raise_signal(signal.SIGINT)),
}


@pytest.mark.parametrize("nameless", [True, False], ids=["nameless", "named"])
@pytest.mark.parametrize("old", [True, False], ids=["replacing", "new"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_leaves_what_was_there(
    source: LoadedModel, tmp_path: Path, fault: str, old: bool, nameless: bool
) -> None:
    output = tmp_path / "out.onnx"
    if old:
        output.write_bytes(b"old")
    call, broken = FAULTS[fault]
    system = System(() if nameless else ("O_TMPFILE",), **{call: broken})
    try:
        write_model(source.document, output, source=source, overwrite=True, system=system)
    except (UnreadableModelError, KeyboardInterrupt):
        assert names(tmp_path) == ({"out.onnx"} if old else set())
        assert not old or output.read_bytes() == b"old"
    else:  # this way of writing does without the broken call
        assert output.read_bytes() == source.path.read_bytes()
    assert not [name for name in names(tmp_path) if "tmp" in name]


def test_a_full_disk_is_one_sentence(source: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(UnreadableModelError, match="No space left on device"):
        write_model(source.document, tmp_path / "out.onnx", source=source, system=System(write=no_space))


KILLED = """
import os, signal, sys
from pathlib import Path
from reducelower.files import read_model, write_model
call, source, output = sys.argv[1:]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
class System:
    def __getattr__(self, name):
        return die if name == call else getattr(os, name)
loaded = read_model(source)
write_model(loaded.document, output, source=loaded, overwrite=True, system=System())
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="only Linux has files without a name")
@pytest.mark.parametrize("call", ["fsync", "link"])
@pytest.mark.parametrize("old", [True, False], ids=["replacing", "new"])
def test_nothing_stays_behind_a_killed_writer(source: LoadedModel, tmp_path: Path, call: str, old: bool) -> None:
    output = tmp_path / "out.onnx"
    if old:
        output.write_bytes(b"old")
    command = [sys.executable, "-c", KILLED, call, str(source.path), str(output)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert names(tmp_path) == ({"out.onnx"} if old else set())
    assert not old or output.read_bytes() == b"old"


def test_of_two_writers_one_wins_and_the_other_is_told(source: LoadedModel, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    ready = threading.Barrier(8)
    told: list[str] = []

    def write() -> None:
        ready.wait()
        try:
            write_model(source.document, output, source=source)
        except UnreadableModelError as error:
            told.append(str(error))

    writers = [threading.Thread(target=write) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(told) == 7
    assert all("exists already" in sentence for sentence in told)
    assert output.read_bytes() == source.path.read_bytes()
    assert names(tmp_path) == {"out.onnx"}


def test_a_linked_output_is_written_through(source: LoadedModel, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "model.onnx").write_bytes(b"old")
    link = tmp_path / "link.onnx"
    link.symlink_to("real/model.onnx")
    write_model(source.document, link, source=source, overwrite=True)
    assert link.is_symlink()
    assert (tmp_path / "real" / "model.onnx").read_bytes() == source.path.read_bytes()


def test_a_link_to_nothing_yet_is_written_through(source: LoadedModel, tmp_path: Path) -> None:
    link = tmp_path / "link.onnx"
    link.symlink_to("new.onnx")
    write_model(source.document, link, source=source)
    assert (tmp_path / "new.onnx").read_bytes() == source.path.read_bytes()


def test_a_link_in_a_circle_is_refused(source: LoadedModel, tmp_path: Path) -> None:
    link = tmp_path / "link.onnx"
    link.symlink_to("link.onnx")
    with pytest.raises(UnreadableModelError, match="cannot write"):
        write_model(source.document, link, source=source, overwrite=True)


def test_the_input_under_another_name_is_still_the_input(source: LoadedModel, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(source.path.read_bytes())
    (tmp_path / "link.onnx").symlink_to("model.onnx")
    loaded = read_model(model)
    with pytest.raises(UnreadableModelError, match="--in-place"):
        resolve_destination(tmp_path / "link.onnx", source=loaded, overwrite=True)
    assert resolve_destination(tmp_path / "link.onnx", source=loaded, in_place=True) == model


@pytest.fixture
def heavy(tmp_path: Path) -> LoadedModel:
    folder = tmp_path / "from"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "weights.bin").write_bytes(bytes(8) + WEIGHTS)
    return read_model(model_with(folder, location="data/weights.bin", offset=8, length=24))


def values(path: Path) -> bytes:
    return onnx.load(path).graph.initializer[0].raw_data


def test_in_the_same_folder_the_same_data_is_used(heavy: LoadedModel) -> None:
    data = heavy.path.parent / "data" / "weights.bin"
    before = data.stat()
    output = heavy.path.parent / "out.onnx"
    write_model(heavy.document, output, source=heavy)
    assert values(output) == WEIGHTS
    after = data.stat()  # its values were read just now, so the time of that may differ
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)
    assert names(heavy.path.parent) == {"model.onnx", "out.onnx", "data", "data/weights.bin"}


def test_data_that_was_brought_can_be_read_at_both_ends(heavy: LoadedModel, tmp_path: Path) -> None:
    output = tmp_path / "to" / "out.onnx"
    write_model(heavy.document, output, source=heavy)
    assert values(output) == values(heavy.path) == WEIGHTS


def test_data_stays_where_it_is_on_request(heavy: LoadedModel, tmp_path: Path) -> None:
    write_model(heavy.document, tmp_path / "to" / "out.onnx", source=heavy, external_data="keep")
    assert names(tmp_path / "to") == {"out.onnx"}


def test_a_copy_from_an_earlier_run_is_used_again(heavy: LoadedModel, tmp_path: Path) -> None:
    output = tmp_path / "to" / "out.onnx"
    write_model(heavy.document, output, source=heavy)
    before = (tmp_path / "to" / "data" / "weights.bin").stat()
    write_model(heavy.document, output, source=heavy, overwrite=True)
    assert (tmp_path / "to" / "data" / "weights.bin").stat() == before


def test_other_data_of_that_name_is_not_replaced_unasked(heavy: LoadedModel, tmp_path: Path) -> None:
    (tmp_path / "to" / "data").mkdir(parents=True)
    other = tmp_path / "to" / "data" / "weights.bin"
    other.write_bytes(b"precious")
    with pytest.raises(UnreadableModelError, match="exists already"):
        write_model(heavy.document, tmp_path / "to" / "out.onnx", source=heavy)
    assert other.read_bytes() == b"precious"
    assert names(tmp_path / "to") == {"data", "data/weights.bin"}


def test_one_data_file_under_two_names_is_brought_once(tmp_path: Path) -> None:
    folder = tmp_path / "from"
    folder.mkdir()
    (folder / "w.bin").write_bytes(WEIGHTS)
    model = onnx.load(model_with(folder, location="w.bin"), load_external_data=False)
    other = model.graph.initializer.add()
    other.CopyFrom(model.graph.initializer[0])
    other.name, other.external_data[0].value = "v", "./w.bin"
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    source = read_model(folder / "model.onnx")
    output = tmp_path / "to" / "out.onnx"
    write_model(source.document, output, source=source)
    assert names(output.parent) == {"out.onnx", "w.bin"}
    assert [tensor.raw_data for tensor in onnx.load(output).graph.initializer] == [WEIGHTS, WEIGHTS]


@pytest.mark.parametrize("location", ["out.onnx", "./out.onnx", "out.onnx/w.bin"])
@pytest.mark.parametrize("mode", ["copy", "keep"])
def test_the_output_cannot_have_the_name_of_its_data(tmp_path: Path, location: str, mode: str) -> None:
    folder = tmp_path / "from"
    (folder / location).parent.mkdir(parents=True)
    (folder / location).write_bytes(WEIGHTS)
    source = read_model(model_with(folder, location=location))
    output = tmp_path / "to" / "out.onnx"
    with pytest.raises(UnreadableModelError, match="has that name; give the output another one"):
        write_model(source.document, output, source=source, overwrite=True, external_data=mode)
    assert names(tmp_path) == {"from", "from/model.onnx", *(f"from/{name}" for name in names(folder))}
    output.parent.mkdir()
    output.write_bytes(b"old")
    with pytest.raises(UnreadableModelError, match="has that name"):
        write_model(source.document, output, source=source, overwrite=True, external_data=mode)
    assert output.read_bytes() == b"old"


def test_the_output_cannot_be_the_data(heavy: LoadedModel) -> None:
    with pytest.raises(UnreadableModelError, match="external data"):
        write_model(heavy.document, heavy.external[0].path, source=heavy, overwrite=True)
    assert values(heavy.path) == WEIGHTS


@pytest.mark.parametrize("call", ["fsync", "link", "write"])
def test_a_failure_leaves_no_data_behind(heavy: LoadedModel, tmp_path: Path, call: str) -> None:
    output, system = tmp_path / "to" / "out.onnx", System(**{call: no_space}, copy_file_range=no_space)
    with pytest.raises(UnreadableModelError, match="No space left"):
        write_model(heavy.document, output, source=heavy, system=system)
    assert not any(path.is_file() for path in output.parent.rglob("*"))


def test_a_failure_after_the_data_leaves_it_whole(heavy: LoadedModel, tmp_path: Path) -> None:
    system, output = System(link=no_space_for_models(os.link)), tmp_path / "to" / "out.onnx"
    with pytest.raises(UnreadableModelError):
        write_model(heavy.document, output, source=heavy, system=system)
    assert not output.exists()
    write_model(heavy.document, output, source=heavy)  # without overwrite, since the data is there already
    assert values(output) == WEIGHTS


def test_data_that_was_overwritten_stays_so_if_only_the_output_fails(heavy: LoadedModel, tmp_path: Path) -> None:
    """The exception that the documentation names: whole files of the new model beside the old one."""
    output = tmp_path / "to" / "out.onnx"
    (output.parent / "data").mkdir(parents=True)
    output.write_bytes(b"old")
    (output.parent / "data" / "weights.bin").write_bytes(b"old")
    system = System(replace=no_space_for_models(os.replace))
    with pytest.raises(UnreadableModelError, match="No space left"):
        write_model(heavy.document, output, source=heavy, overwrite=True, system=system)
    assert output.read_bytes() == b"old"
    assert (output.parent / "data" / "weights.bin").read_bytes() == bytes(8) + WEIGHTS
    assert names(output.parent) == {"out.onnx", "data", "data/weights.bin"}


@pytest.mark.parametrize("where", ["same folder", "another folder", "in place"])
def test_a_model_with_external_data_converts(
    heavy: LoadedModel, tmp_path: Path, cli: Callable[..., Any], where: str
) -> None:
    output = {
        "same folder": heavy.path.parent / "out.onnx",
        "another folder": tmp_path / "to" / "out.onnx",
        "in place": heavy.path,
    }[where]
    output.parent.mkdir(exist_ok=True)
    place = ["--in-place"] if where == "in place" else ["-o", output]
    ran = cli("convert", heavy.path, *place, "--opset", 13)
    assert ran.status == 0, ran.err
    assert onnx.load(output).opset_import[0].version == 13
    assert values(output) == WEIGHTS
    assert "verified" in ran.out


@pytest.mark.parametrize("place", ["attribute", "branch", "function"])
def test_external_data_at_every_depth_survives_a_conversion(
    tmp_path: Path, cli: Callable[..., Any], place: str
) -> None:
    (tmp_path / "weights.bin").write_bytes(WEIGHTS)
    path = model_with(tmp_path, place=place, location="weights.bin")
    ran = cli("convert", path, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 0, ran.err
    assert read_model(tmp_path / "out.onnx").external[0].location == "weights.bin"


def test_data_that_was_not_brought_along_is_named(heavy: LoadedModel, tmp_path: Path, cli: Callable[..., Any]) -> None:
    (tmp_path / "to").mkdir()
    output = tmp_path / "to" / "out.onnx"
    ran = cli("convert", heavy.path, "-o", output, "--opset", 13, "--external-data", "keep")
    assert ran.status == 0
    assert "needs       data/weights.bin" in ran.out
    assert names(tmp_path / "to") == {"out.onnx"}


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_file_that_another_process_writes_meanwhile(tmp_path: Path, overwrite: bool) -> None:
    destination = tmp_path / "out.onnx"

    def too_late(*places: Any, **how: Any) -> None:
        if not destination.exists():
            destination.write_bytes(b"theirs")
        os.link(*places, **how)

    with pending.PendingFile(destination, System(link=too_late)) as file:
        file.write(b"ours")
        with nullcontext() if overwrite else pytest.raises(FileExistsError):
            file.publish(overwrite=overwrite)
    assert destination.read_bytes() == (b"ours" if overwrite else b"theirs")
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]


def test_data_is_copied_through_memory_where_the_kernel_cannot(heavy: LoadedModel, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    system = System(lacks=("copy_file_range",))
    assert values(write_model(heavy.document, tmp_path / "to" / "out.onnx", source=heavy, system=system)) == WEIGHTS


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has a folder that takes no files")
def test_a_text_that_could_not_be_written_is_named() -> None:
    with pytest.raises(OSError, match=r"report\.html") as caught:
        pending.write_whole(Path("/proc/self/report.html"), "text")
    assert caught.value.filename == "/proc/self/report.html"
