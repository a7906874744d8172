"""What a shell and its user meet: completion, versions, examples in the help, and the nearest name for a wrong one."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pytest
from onnx import parser

from reducelower import __version__
from reducelower.cli.main import app
from tests.forked import is_plain, program, reducelower

Cli = Callable[..., Any]

ROOT = Path(__file__).parents[2]
COMMANDS = app.list_commands(click.Context(app))

# A model that every example has something to do with.
MODEL = """<ir_version: 8, opset_import: ["": 18]> g (float[batch, 8] x) => (float[batch, 1] y) {
    axes = Constant <value_ints = [1]> ()
    y = ReduceLogSumExp (x, axes)
}"""

MODEL_FILE = "model.onnx"
MADE = {
    "model13.onnx": "reducelower convert model.onnx -o model13.onnx --opset 13",
    "expanded.onnx": "reducelower expand model.onnx -o expanded.onnx",
}


def test_help_writes_what_may_be_given_as_it_is_given(cli: Cli) -> None:
    text = cli("convert", "--help").out
    assert "--ir-version auto|keep|N " in text
    assert "--for NAME|FILE.toml " in text


@pytest.fixture
def shell_folder(tmp_path: Path) -> Path:
    """A folder with models, rules, and a `reducelower` to call by its name."""
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "reducelower")
    model = parser.parse_model(MODEL).SerializeToString()
    (tmp_path / "models").mkdir()
    for name in (MODEL_FILE, "models/one.onnx", "models/two.onnx"):
        (tmp_path / name).write_bytes(model)
    (tmp_path / "my_rules").mkdir()
    shutil.copy(ROOT / "rules" / "stable" / "GlobalMaxPool.onnxtxt", tmp_path / "my_rules")
    return tmp_path


def run(script: str, folder: Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    if is_plain(script):
        return reducelower(shlex.split(script)[1:], folder)
    search = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    return subprocess.run(
        [shell, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def examples(command: str) -> list[str]:
    found = app.get_command(click.Context(app), command) if command else app
    assert found is not None
    text = (found.help or "").partition("Example")[2].partition("\n\n")[0]
    return [line.strip() for line in text.splitlines()[1:] if line.strip()]


ALL = [(command, example) for command in ["", *COMMANDS] for example in examples(command)]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_an_example(command: str) -> None:
    assert examples(command)
    assert all("reducelower " in example for example in examples(command))


@pytest.mark.parametrize(("command", "example"), [item for item in ALL if item[0] != "probe"])
def test_examples_in_the_help_do_what_they_say(command: str, example: str, shell_folder: Path) -> None:
    if "verify" in example and "openvino" in example and importlib.util.find_spec("openvino") is None:
        pytest.skip("openvino is not installed")
    for made, how in MADE.items():
        if f" {made} " in f"{example} " and f"-o {made}" not in example:
            ran = run(f"{how} --no-verify", shell_folder)
            assert ran.returncode == 0, ran.stderr
    if f"-o {MODEL_FILE}" in example:
        (shell_folder / MODEL_FILE).unlink()
    ran = run(example, shell_folder)
    finds = command == "diff" or (command == "check" and "--opset" in example)
    assert ran.returncode == (1 if finds else 0), ran.stdout + ran.stderr


@pytest.mark.parametrize("example", [example for command, example in ALL if command == "probe"])
def test_examples_of_measurements_say_what_the_command_takes(example: str) -> None:
    # They take minutes, and runtimes that are not here.
    called, name, *arguments = shlex.split(example)
    assert (called, name) == ("reducelower", "probe")
    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert command.make_context(name, arguments).params["output"].endswith(".toml")


# Completion, as each shell asks for it.

BASH = 'eval "$(_REDUCELOWER_COMPLETE=bash_source reducelower)"; COMP_WORDS=({words}); COMP_CWORD={at}; {ask}'
BASH_ASK = (
    "compopt() { printf 'compopt %s %s\\n' \"$@\"; }; _reducelower_completion reducelower; "
    "printf '%s\\n' \"${COMPREPLY[@]}\""
)
FISH = "_REDUCELOWER_COMPLETE=fish_source reducelower | source; complete --do-complete '{line}'"
ZSH = (
    'compdef() {{ :; }}; compadd() {{ print -l -- "${{completions[@]}}" }}; '
    '_describe() {{ print -l -- "${{completions_with_descriptions[@]}}" }}; _path_files() {{ print files }}; '
    'eval "$(_REDUCELOWER_COMPLETE=zsh_source reducelower)"; words=({words}); CURRENT={at1}; _reducelower_completion'
)


def completed(shell: str, words: list[str], folder: Path) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    at = len(words) - 1
    if shell == "bash":
        script = BASH.format(words=" ".join(map(shlex.quote, words)), at=at, ask=BASH_ASK)
    elif shell == "fish":
        script = FISH.format(line=" ".join(words))
    else:
        script = ZSH.format(words=" ".join(map(shlex.quote, words)), at1=at + 1)
    ran = run(script, folder, shell)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["con"], "convert"),
        (["convert", "--out"], "--output-dir"),
        (["check", "--format", "gi"], "github"),
    ],
)
def test_a_shell_completes_names(shell: str, words: list[str], expected: str, shell_folder: Path) -> None:
    said = completed(shell, ["reducelower", *words], shell_folder)
    assert any(re.split(r"[\t:]", line)[0] == expected for line in said.splitlines()), said


@pytest.mark.parametrize("words", [["convert", "mod"], ["convert", "model.onnx", "-o", "mod"], ["verify", "mod"]])
def test_bash_completes_files(words: list[str], shell_folder: Path) -> None:
    assert "compopt -o default" in completed("bash", ["reducelower", *words], shell_folder)


def test_versions_of_all_that_matters(cli: Cli) -> None:
    lines = cli("--version").out.splitlines()
    assert lines[0] == f"reducelower {__version__}"
    assert lines[1:-1] == [
        f"{name} {version(name)}" for name in ("onnx", "onnxruntime", "onnxscript", "numpy", "protobuf")
    ]
    assert lines[-1].startswith("Python 3.")
