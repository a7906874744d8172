"""An interrupted batch goes on where it ended, and nobody's file is taken for one of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reducelower.batch import convert_files
from tests.files.external_models import WEIGHTS, model_with

Cli = Callable[..., Any]

RECORDS = ".reducelower"


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    root = tmp_path / "models"
    (root / "deep").mkdir(parents=True)
    shutil.copy(models / "torch_mean_dyn_18.onnx", root / "mean.onnx")
    shutil.copy(models / "skl_gmm_20.onnx", root / "deep" / "gmm.onnx")
    return root


@pytest.fixture
def run(folder: Path, tmp_path: Path, cli: Cli) -> Cli:
    """Convert the folder with ``--resume`` and options of the test's own."""

    def run(*options: object) -> Any:
        arguments = ("convert", folder, "--output-dir", tmp_path / "out", "--opset", 13, "--no-verify", "--resume")
        return cli(*arguments, *options)

    return run


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def kept(ran: Any) -> list[str]:
    return [Path(line.split(" -> ")[0]).name for line in ran.out.splitlines() if "kept" in line and " -> " in line]


def test_a_second_run_keeps_every_output(run: Cli, tmp_path: Path) -> None:
    assert run().status == 0
    before = content(tmp_path / "out")
    ran = run()
    assert ran.status == 0
    assert kept(ran) == ["gmm.onnx", "mean.onnx"]
    assert content(tmp_path / "out") == before
    assert sorted(before) == [
        f"{RECORDS}/deep/gmm.onnx.json",
        f"{RECORDS}/mean.onnx.json",
        "deep/gmm.onnx",
        "mean.onnx",
    ]


def test_records_say_nothing_of_when_or_where(run: Cli, folder: Path, tmp_path: Path, cli: Cli) -> None:
    run()
    other = tmp_path / "other"
    shutil.move(folder, tmp_path / "moved")
    moved = ("convert", tmp_path / "moved", "--output-dir", other, "--opset", 13, "--no-verify", "--resume")
    assert cli(*moved).status == 0
    assert content(other) == content(tmp_path / "out")


def test_a_changed_model_is_converted_again_and_only_that(run: Cli, folder: Path, models: Path, tmp_path: Path) -> None:
    run()
    shutil.copy(models / "torch_sum_dyn_18.onnx", folder / "mean.onnx")
    before = content(tmp_path / "out")
    ran = run()
    assert ran.status == 0
    assert kept(ran) == ["gmm.onnx"]
    assert content(tmp_path / "out")["mean.onnx"] != before["mean.onnx"]


def test_a_replacement_that_was_made_and_never_recorded_is_recognized(
    run: Cli, folder: Path, models: Path, tmp_path: Path
) -> None:
    run()
    record = tmp_path / "out" / RECORDS / "mean.onnx.json"
    old = record.read_bytes()
    shutil.copy(models / "torch_sum_dyn_18.onnx", folder / "mean.onnx")
    run()
    before = content(tmp_path / "out")
    record.write_bytes(old)  # as a run leaves it that is killed when the output is written and the record is not
    ran = run()
    assert (ran.status, ran.err) == (0, "")
    assert kept(ran) == ["gmm.onnx"]
    assert content(tmp_path / "out") == before


@pytest.mark.parametrize("options", [["--without", "ReduceMax"], ["--ir-version", 9], ["--rules", "spec"]])
def test_other_options_are_another_conversion(run: Cli, options: list[object]) -> None:
    run()
    assert kept(run(*options)) == []
    assert kept(run(*options)) == ["gmm.onnx", "mean.onnx"]


def test_a_rule_that_changed_is_another_conversion(run: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    shutil.copytree(Path(__file__).parents[2] / "rules" / "spec", rules)
    run("--rules", rules)
    assert kept(run("--rules", rules)) == ["gmm.onnx", "mean.onnx"]
    rule = rules / "ReduceL2.onnxtxt"
    rule.write_text(rule.read_text() + "\n")
    assert kept(run("--rules", rules)) == []


def test_another_value_of_an_input_is_another_conversion(folder: Path, cli: Cli, tmp_path: Path) -> None:
    value = tmp_path / "value.npy"
    arguments = ("convert", folder / "deep", "--output-dir", tmp_path / "out", "--opset", 13, "--resume")
    for number, expected in ((0, []), (0, ["gmm.onnx"]), (1, [])):
        np.save(value, np.full((3, 4), number, np.float32))
        assert kept(cli(*arguments, "--input", f"X={value}", "-v")) == expected


def test_how_a_run_reports_is_no_other_conversion(run: Cli, tmp_path: Path) -> None:
    run()
    report = tmp_path / "report.json"
    assert len(kept(run("--report", report, "--jobs", 2))) == 2
    assert [model["verdict"] for model in json.loads(report.read_text())["models"]] == ["kept", "kept"]


def test_an_output_that_someone_changed_is_theirs(run: Cli, tmp_path: Path) -> None:
    run()
    (tmp_path / "out" / "mean.onnx").write_bytes(b"mine")
    ran = run()
    assert ran.status == 2
    assert "exists already, and no run has recorded it; --force replaces it" in ran.err
    assert (tmp_path / "out" / "mean.onnx").read_bytes() == b"mine"
    assert run("--force").status == 0
    assert kept(run()) == ["gmm.onnx", "mean.onnx"]


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"origin": 1}',
        b"\xff",
        b'{"origin":"","sha256":"","external":1,"brings":true}',
        b'{"origin":"","external":{},"brings":true}',
        b'{"origin":"","sha256":"","external":{},"brings":true,"more":1}',
        pytest.param(b"[" * 200_000, id="deep"),
    ],
)
def test_a_record_that_makes_no_sense_is_none(run: Cli, tmp_path: Path, record: bytes) -> None:
    run()
    before = content(tmp_path / "out")
    (tmp_path / "out" / RECORDS / "mean.onnx.json").write_bytes(record)
    ran = run()
    # What would be written is what is there.
    assert ran.status == 0, ran.err
    assert kept(ran) == ["gmm.onnx"]
    assert content(tmp_path / "out") == before


def test_outputs_of_a_run_without_records_are_recognized(run: Cli, folder: Path, tmp_path: Path, cli: Cli) -> None:
    assert cli("convert", folder, "--output-dir", tmp_path / "out", "--opset", 13, "--no-verify").status == 0
    before = content(tmp_path / "out")
    assert run().status == 0
    assert {name: data for name, data in content(tmp_path / "out").items() if RECORDS not in name} == before


def test_a_model_that_was_refused_is_tried_again(run: Cli, folder: Path, models: Path) -> None:
    (folder / "broken.onnx").write_bytes(b"no model")
    assert run().status == 2
    shutil.copy(models / "torch_sum_dyn_18.onnx", folder / "broken.onnx")
    ran = run()
    assert ran.status == 0
    assert kept(ran) == ["gmm.onnx", "mean.onnx"]


def test_external_data_counts(folder: Path, run: Cli, tmp_path: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "w.bin").write_bytes(WEIGHTS)
    os.utime(folder / "w.bin", (1, 1))
    model_with(folder, location="w.bin")
    assert run().status == 0
    assert kept(run()) == ["model.onnx"]
    (tmp_path / "out" / "w.bin").unlink()
    assert kept(run()) == []  # it has to come back
    assert (tmp_path / "out" / "w.bin").read_bytes() == WEIGHTS
    (folder / "w.bin").write_bytes(bytes(len(WEIGHTS)))
    os.utime(folder / "w.bin", (2, 2))
    assert run().status == 0
    assert (tmp_path / "out" / "w.bin").read_bytes() == bytes(len(WEIGHTS))


def test_external_data_that_is_not_brought_is_not_looked_for_beside_the_output(
    folder: Path, run: Cli, tmp_path: Path
) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "w.bin").write_bytes(WEIGHTS)
    model_with(folder, location="w.bin")
    assert run("--external-data", "keep").status == 0
    assert kept(run("--external-data", "keep")) == ["model.onnx"]
    assert not (tmp_path / "out" / "w.bin").exists()


def test_records_need_a_folder_of_outputs(cli: Cli, folder: Path, tmp_path: Path) -> None:
    ran = cli("convert", folder / "mean.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "--resume")
    assert ran.status == 2
    assert "--output-dir" in ran.err


def test_a_library_call_resumes_too(folder: Path, tmp_path: Path) -> None:
    for expected in (False, True):
        outcomes = list(convert_files([folder], 13, output_dir=tmp_path / "out", resume=True, verify=False))
        assert [outcome.kept for outcome in outcomes] == [expected, expected]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_batch_killed_again_and_again_ends_with_the_same_bytes(models: Path, tmp_path: Path) -> None:
    source = tmp_path / "models"
    source.mkdir()
    for at in range(40):
        name = ("torch_mean_dyn_18.onnx", "torch_sum_dyn_18.onnx", "skl_gmm_20.onnx")[at % 3]
        shutil.copy(models / name, source / f"{at:02}.onnx")

    def started(output: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "reducelower", "convert", str(source), "--output-dir", str(output)]
        options = ["--opset", "13", "--no-verify", "--resume"]
        return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    whole = started(tmp_path / "whole")
    assert whole.communicate(timeout=120) and whole.returncode == 0
    out = tmp_path / "out"
    for enough in (1, 12, 25):
        process = started(out)
        while process.poll() is None and len(list(out.glob("*.onnx"))) < enough:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert 25 <= len(list(out.glob("*.onnx"))) < 40
    last = started(out)
    said, problems = last.communicate(timeout=120)
    assert (last.returncode, problems) == (0, "")
    assert said.count("kept, converted by an earlier run") >= 24  # of the last, the record may be missing
    assert content(out) == content(tmp_path / "whole")
