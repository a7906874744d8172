"""Models run on the execution provider that was asked for, in whichever build of onnxruntime is there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from reducelower import verify
from reducelower.errors import SettingError
from reducelower.verification.running.conditions import CPU, conditions, provider_named, under
from reducelower.verification.running.runtimes import OnnxRuntime
from reducelower.verification.running.source import Source
from tests.models import model

Cli = Callable[..., Any]

RELU = model("g (float[2] x) => (float[2] y) { y = Relu (x) }")
OTHERS = sorted(set(onnxruntime.get_available_providers()) - {CPU})
other = pytest.param(OTHERS[0] if OTHERS else "", marks=pytest.mark.skipif(not OTHERS, reason="there is only the CPU"))


class OtherBuild(ModuleType):
    """A build of onnxruntime that has CUDA, and starts it at the first try."""

    def __init__(self) -> None:
        super().__init__("onnxruntime")
        self.__spec__ = ModuleSpec("onnxruntime", None, origin="elsewhere")
        self.asked: list[list[str]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(onnxruntime, name)

    def get_available_providers(self) -> list[str]:
        return ["CUDAExecutionProvider", "DmlExecutionProvider", CPU]

    def InferenceSession(self, model: bytes, options: object, providers: list[str]) -> object:  # noqa: N802
        self.asked.append(providers)
        started = [CPU] if len(self.asked) > 1 else [*providers, CPU]
        return SimpleNamespace(get_providers=lambda: started)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> OtherBuild:
    """An onnxruntime that has CUDA, installed in place of the one that is."""
    build = OtherBuild()
    monkeypatch.setitem(sys.modules, "onnxruntime", build)
    return build


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("cuda", "CUDAExecutionProvider"),
        ("CUDA", "CUDAExecutionProvider"),
        ("CUDAExecutionProvider", "CUDAExecutionProvider"),
        ("cudaexecutionprovider", "CUDAExecutionProvider"),
        ("DirectML", "DmlExecutionProvider"),
        ("cpu", CPU),
    ],
)
def test_names_have_no_case_and_need_no_ending(name: str, found: str, cuda: OtherBuild) -> None:
    assert provider_named(name) == found


def test_a_provider_that_is_not_there_is_told_with_those_that_are(cuda: OtherBuild) -> None:
    with pytest.raises(SettingError, match=r"provider 'coda'; it has cpu, cuda, dml; did you mean 'cuda'\?$"):
        provider_named("coda")


def test_a_session_asks_for_the_chosen_provider(cuda: OtherBuild) -> None:
    with under(provider=provider_named("cuda")):
        OnnxRuntime().load(Source(RELU))
        with pytest.raises(SettingError, match="onnxruntime could not start CUDAExecutionProvider"):
            OnnxRuntime().load(Source(RELU))
    assert cuda.asked[0] == ["CUDAExecutionProvider"]
    assert conditions().provider == CPU


@pytest.mark.parametrize("name", [other])
def test_a_verification_says_where_it_ran(name: str) -> None:
    found = verify(RELU, model("g (float[2] x) => (float[2] y) <float z = {0}> { y = Max (x, z) }"), provider=name)
    assert found.equivalent
    assert found.runtime == f"onnxruntime on {name}"


@pytest.mark.parametrize("name", [other])
@pytest.mark.parametrize("command", ["convert", "expand", "raise", "verify"])
def test_every_command_that_verifies_takes_it(command: str, name: str, cli: Cli, models: Path, tmp_path: Path) -> None:
    given, output = models / "torch_mean_dyn_18.onnx", tmp_path / "out.onnx"
    goal = {"convert": ("--opset", 13), "verify": (given,)}.get(command, ())
    where = () if command == "verify" else ("-o", output)
    ran = cli(command, given, *goal, *where, "--json", "--provider", name)
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["verification"]["runtime"] == f"onnxruntime on {name}"
    absent = cli(command, given, *goal, *where, "--provider", "nothing")
    assert (absent.status, absent.out) == (2, "")
    assert "has no execution provider 'nothing'" in absent.err


WITHOUT = """
import sys
sys.modules["onnxruntime"] = None
from reducelower.cli import run
statuses = [run([*sys.argv[1:], *more.split()]) for more in ("", "--no-verify -q", "--runtime reference --force")]
sys.exit(statuses != [2, 0, 0])
"""


def test_without_onnxruntime_a_sentence_says_what_to_do(models: Path, tmp_path: Path) -> None:
    given, output = models / "torch_mean_dyn_18.onnx", tmp_path / "out.onnx"
    words = ["convert", str(given), "-o", str(output), "--opset", "13"]
    ran = subprocess.run([sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith(
        "error: onnxruntime is not installed, and models are verified in it: install the build"
    )
    assert ran.stderr.count("\n") == 1
    assert "verified" in ran.stdout


def test_two_builds_over_each_other_are_told_apart_from_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ModuleType("onnxruntime")
    broken.__spec__ = ModuleSpec("onnxruntime", None, is_package=True)
    monkeypatch.setitem(sys.modules, "onnxruntime", broken)
    with pytest.raises(SettingError, match="installed over each other: uninstall both"):
        verify(RELU, RELU, inputs={"x": np.zeros(2, np.float32)})
