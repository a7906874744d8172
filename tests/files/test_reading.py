"""Reading: formats, external data, and what is refused before anything is opened."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import onnx
import pytest

from files.external_models import WEIGHTS, model_with
from reducelower.errors import UnreadableModelError
from reducelower.files import read_model


@pytest.mark.parametrize("extension", ["onnx", "pb", "unknown"])
def test_a_model_is_read_whatever_its_extension(models: Path, tmp_path: Path, extension: str) -> None:
    model = onnx.load(models / "torch_mean_dyn_18.onnx")
    path = tmp_path / f"model.{extension}"
    path.write_bytes(model.SerializeToString())
    assert read_model(path).model == model


@pytest.mark.parametrize("extension", ["textproto", "json", "onnxtxt"])
def test_a_model_as_text_is_refused_with_the_way_to_one_that_is_read(
    models: Path, tmp_path: Path, extension: str
) -> None:
    path = tmp_path / f"model.{extension}"
    onnx.save(onnx.load(models / "torch_mean_dyn_18.onnx"), path)
    with pytest.raises(UnreadableModelError, match=r"is text; write the model .* with onnx\.save"):
        read_model(path)


def test_external_data_is_found_and_not_loaded(tmp_path: Path) -> None:
    path = model_with(tmp_path, location="weights.bin", offset=8, length=24)
    (tmp_path / "weights.bin").write_bytes(bytes(8) + WEIGHTS)
    loaded = read_model(path)
    (file,) = loaded.external
    assert (file.location, file.path, file.size) == ("weights.bin", tmp_path / "weights.bin", 32)
    (tensor,) = loaded.model.graph.initializer
    assert not tensor.raw_data


def test_twenty_gigabytes_are_not_touched(tmp_path: Path) -> None:
    path = model_with(tmp_path, location="weights.bin", offset=20 << 30, length=24)
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate((20 << 30) + 24)
    assert read_model(path).external[0].size == (20 << 30) + 24


@pytest.mark.parametrize("place", ["attribute", "branch", "function", "sparse"])
def test_external_data_is_found_at_every_depth(tmp_path: Path, place: str) -> None:
    path = model_with(tmp_path, place=place, location="weights.bin")
    with pytest.raises(UnreadableModelError, match="there is no such file"):
        read_model(path)
    (tmp_path / "weights.bin").write_bytes(WEIGHTS)
    assert [file.location for file in read_model(path).external] == ["weights.bin"]


BAD_ENTRIES = tomllib.loads(Path(__file__).with_name("bad_entries.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", BAD_ENTRIES)
def test_hostile_external_data_is_refused(tmp_path: Path, name: str) -> None:
    entries, phrase = BAD_ENTRIES[name]
    (tmp_path / "weights.bin").write_bytes(WEIGHTS)
    with pytest.raises(UnreadableModelError, match=phrase):
        read_model(model_with(tmp_path, **{**entries, "location": entries["location"].replace("LONG", "w" * 5000)}))


@pytest.fixture
def refuses_to_open(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths that were opened besides the model."""
    opened: list[str] = []

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and watching and not str(arguments[0]).endswith(".onnx"):
            opened.append(str(arguments[0]))

    watching = [True]
    sys.addaudithook(watch)
    yield opened
    watching.clear()


def test_nothing_but_the_model_is_opened(tmp_path: Path, refuses_to_open: list[str]) -> None:
    (tmp_path / "weights.bin").write_bytes(WEIGHTS)
    path = model_with(tmp_path, location="weights.bin")
    refuses_to_open.clear()
    read_model(path)
    assert refuses_to_open == []


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(WEIGHTS)
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "weights.bin").symlink_to(tmp_path / "secret")
    with pytest.raises(UnreadableModelError, match="leads out of the model's folder"):
        read_model(model_with(folder, location="weights.bin"))


def test_a_linked_folder_that_leads_out_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "weights.bin").write_bytes(WEIGHTS)
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "data").symlink_to(outside)
    with pytest.raises(UnreadableModelError, match="leads out of the model's folder"):
        read_model(model_with(folder, location="data/weights.bin"))


def test_a_cache_of_links_is_read(tmp_path: Path) -> None:
    """A Hugging Face cache: model and data are links into one folder of blobs."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    model_with(blobs, location="model.onnx_data").rename(blobs / "0123")
    (blobs / "4567").write_bytes(WEIGHTS)
    (snapshot / "model.onnx").symlink_to("../../blobs/0123")
    (snapshot / "model.onnx_data").symlink_to("../../blobs/4567")
    assert read_model(snapshot / "model.onnx").external[0].path == snapshot / "model.onnx_data"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("what", ["model", "data"])
def test_a_named_pipe_is_refused_rather_than_waited_for(tmp_path: Path, what: str) -> None:
    if what == "model":
        path = tmp_path / "model.onnx"
        os.mkfifo(path)
    else:
        path = model_with(tmp_path, location="weights.bin")
        os.mkfifo(tmp_path / "weights.bin")
    with pytest.raises(UnreadableModelError, match="not a regular file"):
        read_model(path)


def test_a_model_over_two_gibibytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 31)
    with pytest.raises(UnreadableModelError, match="external data"):
        read_model(path)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_a_model_cut_anywhere_is_refused(models: Path, tmp_path: Path, keep: float) -> None:
    data = (models / "torch_lstm_ts_11.onnx").read_bytes()
    path = tmp_path / "model.onnx"
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(UnreadableModelError, match="cut short"):
        read_model(path)


def test_subgraphs_deeper_than_protobuf_reads_are_refused(tmp_path: Path) -> None:
    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    graph = b""
    for _ in range(5000):
        graph = field(1, field(5, field(6, graph)))
    path = tmp_path / "model.onnx"
    path.write_bytes(field(7, graph) + field(8, b"\x10\x12"))
    with pytest.raises(UnreadableModelError, match="deeper"):
        read_model(path)
