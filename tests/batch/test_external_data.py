"""External data in a folder of many outputs: each model reads its own, and nobody's file is taken for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from reducelower.batch import convert_files, records
from tests.files.external_models import WEIGHTS, model_with

Cli = Callable[..., Any]

OTHERS = bytes(len(WEIGHTS))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def heavy(folder: Path, name: str, weights: bytes, *, at: int = 1, location: str = "w.bin") -> Path:
    """A model with weights beside it that were changed at that time."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / location
    data.parent.mkdir(exist_ok=True)
    data.write_bytes(weights)
    os.utime(data, (at, at))
    return model_with(folder, name=name, location=location)


def values(path: Path) -> bytes:
    return onnx.load(path).graph.initializer[0].raw_data


def resumed(cli: Cli, out: Path, *models: object) -> Any:
    return cli("convert", *models, "--output-dir", out, "--opset", 13, "--no-verify", "--resume")


def test_data_that_nobody_recorded_stays_when_a_run_resumes(tmp_path: Path, out: Path, cli: Cli) -> None:
    model = heavy(tmp_path / "a", "a.onnx", WEIGHTS)
    out.mkdir()
    (out / "w.bin").write_bytes(b"precious")
    ran = resumed(cli, out, model)
    assert ran.status == 2
    assert ran.err == (
        f"error: {out / 'w.bin'}, the external data, exists already, and no run has recorded it; --force replaces it\n"
    )
    assert (out / "w.bin").read_bytes() == b"precious"
    assert not (out / "a.onnx").exists()
    assert resumed(cli, out, model, "--force").status == 0
    assert values(out / "a.onnx") == WEIGHTS


def test_data_of_a_model_of_another_run_stays(tmp_path: Path, out: Path, cli: Cli) -> None:
    assert resumed(cli, out, heavy(tmp_path / "a", "a.onnx", WEIGHTS)).status == 0
    other = heavy(tmp_path / "b", "b.onnx", OTHERS, at=2)
    for _ in range(2):  # that it was tried gives no right to try again
        ran = resumed(cli, out, other)
        assert ran.status == 2
        assert "the external data, exists already" in ran.err
        assert values(out / "a.onnx") == WEIGHTS
        assert not (out / "b.onnx").exists()


def test_recorded_data_that_someone_changed_is_theirs(tmp_path: Path, out: Path, cli: Cli) -> None:
    model = heavy(tmp_path / "a", "a.onnx", WEIGHTS)
    assert resumed(cli, out, model).status == 0
    (out / "w.bin").write_bytes(b"mine")
    heavy(tmp_path / "a", "a.onnx", OTHERS, at=2)
    assert resumed(cli, out, model).status == 2
    assert (out / "w.bin").read_bytes() == b"mine"


@pytest.mark.parametrize("mode", ["copy", "link"])
def test_data_that_changed_replaces_what_was_recorded(tmp_path: Path, out: Path, cli: Cli, mode: str) -> None:
    model = heavy(tmp_path / "a", "a.onnx", WEIGHTS)
    assert resumed(cli, out, model, "--external-data", mode).status == 0
    (tmp_path / "a" / "w.bin").unlink()
    heavy(tmp_path / "a", "a.onnx", OTHERS, at=2)
    ran = resumed(cli, out, model, "--external-data", mode)
    assert ran.status == 0, ran.err
    assert (out / "w.bin").read_bytes() == OTHERS


def test_a_user_who_brings_data_keeps_it(tmp_path: Path, out: Path, cli: Cli) -> None:
    model = heavy(tmp_path / "a", "a.onnx", WEIGHTS)
    assert resumed(cli, out, model, "--external-data", "keep").status == 0
    (out / "w.bin").write_bytes(WEIGHTS)
    os.utime(out / "w.bin", (1, 1))
    heavy(tmp_path / "a", "a.onnx", OTHERS, at=2)
    assert resumed(cli, out, model).status == 2
    assert (out / "w.bin").read_bytes() == WEIGHTS


def test_a_replacement_of_data_that_was_recorded_and_never_made_is_made(
    tmp_path: Path, out: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = heavy(tmp_path / "a", "a.onnx", WEIGHTS)
    assert resumed(cli, out, model).status == 0
    heavy(tmp_path / "a", "a.onnx", OTHERS, at=2)
    honest = records.write_record

    def ends(*arguments: Any) -> None:
        honest(*arguments)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(records, "write_record", ends)
        for _ in range(2):
            assert resumed(cli, out, model).status == 2
    assert values(out / "a.onnx") == WEIGHTS
    ran = resumed(cli, out, model)
    assert (ran.status, ran.err) == (0, "")
    assert values(out / "a.onnx") == OTHERS


@pytest.mark.parametrize("rights", [[], ["--force"], ["--resume"], ["--force", "--jobs", 2]], ids=str)
def test_data_of_two_models_for_one_place_is_refused_before_any_work(
    tmp_path: Path, out: Path, cli: Cli, rights: list[object]
) -> None:
    first, second = heavy(tmp_path / "a", "a.onnx", WEIGHTS), heavy(tmp_path / "b", "b.onnx", OTHERS, at=2)
    ran = cli("convert", first, second, "--output-dir", out, "--opset", 13, "--no-verify", *rights)
    assert ran.status == 2
    assert ran.err == (
        f"error: {first} and {second} would both bring external data to {out / 'w.bin'}; "
        "give each an output folder of its own\n"
    )
    assert not out.exists()
    with pytest.raises(ValueError, match="both bring external data"):
        convert_files([first, second], 13, output_dir=out, overwrite=True)


def test_places_are_compared_however_they_are_spelled(tmp_path: Path, out: Path) -> None:
    first = heavy(tmp_path / "a", "a.onnx", WEIGHTS, location="data/w.bin")
    heavy(tmp_path / "b", "b.onnx", OTHERS, at=2, location="./data//w.bin")
    with pytest.raises(ValueError, match="both bring external data"):
        convert_files([first, tmp_path / "b"], 13, output_dir=out, overwrite=True)


def test_data_for_the_place_of_another_output_is_refused(tmp_path: Path, out: Path) -> None:
    first = heavy(tmp_path / "a", "a.onnx", WEIGHTS, location="b.onnx")
    second = heavy(tmp_path / "b", "b.onnx", OTHERS)
    with pytest.raises(ValueError, match=r"write an output and bring external data to .*b\.onnx"):
        convert_files([first, second], 13, output_dir=out, overwrite=True)


def test_links_among_the_outputs_lead_to_one_place_too(tmp_path: Path, out: Path) -> None:
    root = tmp_path / "models"
    heavy(root / "a", "m.onnx", WEIGHTS)
    heavy(root / "b", "m.onnx", OTHERS, at=2)
    (tmp_path / "real").mkdir()
    for name in "ab":
        (out / name).mkdir(parents=True)
        (out / name / "m.onnx").symlink_to(tmp_path / "real" / f"{name}.onnx")
    with pytest.raises(ValueError, match="both bring external data"):
        convert_files([root], 13, output_dir=out, overwrite=True)


def test_models_that_share_data_or_bring_none_are_none_of_this(tmp_path: Path, out: Path) -> None:
    first = heavy(tmp_path / "a", "a.onnx", WEIGHTS)
    same = heavy(tmp_path / "b", "b.onnx", WEIGHTS)  # a copy, as an earlier run leaves it
    third = model_with(tmp_path / "a", name="c.onnx", location="w.bin")
    outcomes = list(convert_files([first, same, third], 13, output_dir=out, verify=False))
    assert [item.status for item in outcomes] == [0, 0, 0]
    heavy(tmp_path / "b", "b.onnx", OTHERS, at=2)
    kept = convert_files([first, same], 13, output_dir=tmp_path / "kept", verify=False, external_data="keep")
    assert [item.status for item in kept] == [0, 0]


def test_an_unreadable_model_among_others_is_told_of_by_itself(tmp_path: Path, out: Path) -> None:
    first = heavy(tmp_path / "a", "a.onnx", WEIGHTS)
    (tmp_path / "b.onnx").write_bytes(b"no model")
    outcomes = list(convert_files([first, tmp_path / "b.onnx"], 13, output_dir=out, verify=False))
    assert [item.status for item in outcomes] == [0, 2]


def test_models_of_one_folder_are_not_read_beforehand(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reducelower.batch import inputs

    monkeypatch.delattr(inputs, "read_model")
    heavy(tmp_path / "models" / "a", "m.onnx", WEIGHTS)
    heavy(tmp_path / "models" / "b", "m.onnx", OTHERS)
    outcomes = list(convert_files([tmp_path / "models"], 13, output_dir=out, verify=False))
    assert [item.status for item in outcomes] == [0, 0]
    assert [values(out / name / "m.onnx") for name in "ab"] == [WEIGHTS, OTHERS]
