"""Help, what a start imports, and standard streams that are closed or full."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import onnx
import pytest

from reducelower.cli import run
from tests.forked import ended, forked, said

Cli = Callable[..., Any]

COMMANDS = ("convert", "expand", "raise", "repair", "check", "inspect", "verify", "diff", "targets", "probe", "rules")


@pytest.mark.parametrize(
    ("command", "flag", "default"),
    [("verify", "--seed", "0"), ("verify", "--verify-budget", "60.0"), ("check", "--jobs", "1")],
)
def test_help_shows_the_default_of_an_option(cli: Cli, command: str, flag: str, default: str) -> None:
    said = re.sub(r"\s+", " ", cli(command, "--help").out)
    assert f"[default: {default}" in said.partition(f"{flag} ")[2].partition(" --")[0]


def test_help_lists_the_commands(cli: Cli) -> None:
    out = cli("--help").out
    assert all(re.search(rf"^  {command}  ", out, re.MULTILINE) for command in COMMANDS)


def started(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    program = code or (
        "import sys, json, reducelower.cli as c; status = c.run(sys.argv[1:]); "
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr); sys.exit(status)"
    )
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


def test_a_conversion_imports_nothing_it_does_not_use(models: Path, tmp_path: Path) -> None:
    source, output = str(models / "torch_mean_dyn_18.onnx"), str(tmp_path / "out.onnx")
    ran = started("convert", source, "-o", output, "--opset", "13", "--no-verify")
    assert ran.returncode == 0
    modules = set(json.loads(ran.stderr))
    assert "onnx" in modules
    unused = {"onnxruntime", "onnxscript", "onnx_ir", "rich", "multiprocessing", "xml", "jinja2", "reducelower.report"}
    assert modules & unused == set()


def test_versions_and_help_import_no_onnx() -> None:
    for arguments in (["--version"], ["convert", "--help"]):
        assert not set(json.loads(started(*arguments).stderr)) & {"onnx", "numpy", "rich"}


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are forks, and elsewhere such a folder may stay")
def test_where_the_working_directory_is_gone_all_goes_that_needs_none(models: Path, tmp_path: Path) -> None:
    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        def run_nowhere() -> int:
            folder = tmp_path / "gone"
            folder.mkdir()
            os.chdir(folder)
            folder.rmdir()
            return run(arguments)

        return said(run_nowhere)

    source, made = str(models / "torch_mean_dyn_18.onnx"), tmp_path / "made.onnx"
    looked_up = ran("rules", "ReduceL2")
    assert (looked_up.returncode, looked_up.stderr) == (0, "")
    converted = ran("convert", source, "-o", str(made), "--opset", "13")
    assert (converted.returncode, converted.stderr) == (0, "")
    assert made.is_file()
    nowhere = ran("convert", source, "--output-dir", ".", "--opset", "13", "--no-verify")
    assert nowhere.returncode == 2
    assert "the system" not in nowhere.stderr


def test_the_process_ends_with_everything_said(models: Path) -> None:
    command = [sys.executable, "-m", "reducelower", "check", str(models / "skl_gmm_20.onnx"), "--opset", "13"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "ReduceLogSumExp" in ran.stdout


def test_what_libraries_print_is_no_part_of_the_output(tmp_path: Path) -> None:
    """onnx's checker warns of experimental operators on standard output, past Python."""
    text = '<ir_version: 3, opset_import: ["": 8]> g (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Relu (x) }'
    model = onnx.parser.parse_model(text)
    model.graph.node[0].op_type = "ImageScaler"
    model.graph.node[0].attribute.add(name="scale", type=onnx.AttributeProto.FLOAT, f=1)
    onnx.save(model, tmp_path / "m.onnx")
    command = [sys.executable, "-m", "reducelower", "inspect", str(tmp_path / "m.onnx"), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert json.loads(ran.stdout)["path"]


def test_an_inspected_model_that_contradicts_itself_does_not_stop_the_others(cli: Cli, tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[A,B] x) => (float[{}] y) {{ w = Unique (x) z = Softmax (w) y = Identity (z) }}"""
    for name, shape in (("a", "C"), ("b", "1,1,1"), ("c", "C")):
        onnx.save(onnx.parser.parse_model(text.format(shape)), tmp_path / f"{name}.onnx")
    ran = cli("inspect", tmp_path, "--json", "--for", "mnn")
    found = {Path(each["path"]).name: each["problem"] for each in map(json.loads, ran.out.splitlines())}
    assert ran.status == 1
    assert {name: bool(problem) for name, problem in found.items()} == {
        "a.onnx": False,
        "b.onnx": True,
        "c.onnx": False,
    }


def test_the_module_runs_and_a_reader_that_leaves_is_no_fault(models: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        command = [sys.executable, "-m", "reducelower", "check", str(models / "skl_gnb_13.onnx"), "--opset", "13"]
        ran = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_streams_that_are_closed_from_the_start_are_no_fault(models: Path, tmp_path: Path, closed: str) -> None:
    model, output = models / "skl_gnb_13.onnx", tmp_path / "out.onnx"
    arguments = f"convert '{model}' -o '{output}' --opset 15 --no-verify"
    command = f"'{sys.executable}' -m reducelower {arguments} {closed}"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False)
    assert output.stat().st_size > 100
    missing = f"'{sys.executable}' -m reducelower check '{tmp_path}/none.onnx' --opset 15 {closed}"
    assert subprocess.run(missing, shell=True, capture_output=True, check=False).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        "convert {model} -o {out} --opset 15 --no-verify",
        "check {model} --opset 15 --json",
        "inspect {model}",
        "rules",
    ],
)
def test_results_that_a_full_disk_does_not_take_are_an_error(models: Path, tmp_path: Path, arguments: str) -> None:
    words = arguments.format(model=models / "skl_gnb_13.onnx", out=tmp_path / "out.onnx").split()
    with Path(os.devnull).open() as nothing, Path("/dev/full").open("w") as full, (tmp_path / "err").open("w") as err:
        status = ended(forked(lambda: run(words), (nothing.fileno(), full.fileno(), err.fileno())))
    assert status == 2
    problems = (tmp_path / "err").read_text()
    assert problems.splitlines()[-1] == "error: cannot write to standard output: No space left on device"
    assert "Traceback" not in problems


@pytest.mark.parametrize("name", COMMANDS[:-3])
def test_every_command_about_models_has_json(name: str) -> None:
    from reducelower.cli.main import app

    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert any("--json" in parameter.opts for parameter in command.params)
