"""Models on which onnxruntime ends the process that it runs in: a sentence and a status, in a folder and alone.

Which models these are changes from release to release, so here a model dies that says so by the name of its graph.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import parser

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are not forked")

Cli = Callable[..., Any]

LIVING = """<ir_version: 8, opset_import: ["": 17]> living (float[3,2] x) => (float[3,1] r) {
    r = ReduceLogSum <axes = [1]> (x)
}"""
DYING = LIVING.replace("living", "dying")


@pytest.fixture(autouse=True)
def _dies(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = onnxruntime.InferenceSession.run

    def run(session: onnxruntime.InferenceSession, *arguments: Any, **named: Any) -> Any:
        if session.get_modelmeta().graph_name == "dying":
            os.kill(os.getpid(), signal.SIGFPE)
        return honest(session, *arguments, **named)

    monkeypatch.setattr(onnxruntime.InferenceSession, "run", run)


@pytest.fixture(autouse=True)
def _no_traces() -> Iterator[None]:
    """Pytest's own look into processes that die, which forked ones inherit."""
    was = faulthandler.is_enabled()
    faulthandler.disable()
    yield
    if was:
        faulthandler.enable()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    root.mkdir()
    for name, text in (("a", LIVING), ("b", DYING), ("c", LIVING)):
        onnx.save(parser.parse_model(text), root / f"{name}.onnx")
    return root


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_folder_is_converted_past_it(cli: Cli, folder: Path, tmp_path: Path, jobs: int) -> None:
    ran = cli("convert", folder, "--output-dir", tmp_path / "out", "--opset", 18, "--jobs", jobs, "--json")
    assert (ran.status, ran.err) == (0, "")
    found = [json.loads(line)["verification"] for line in ran.out.splitlines()]
    assert [item["verdict"] for item in found] == ["equivalent"] * 3
    assert [item["runtime"] for item in found] == ["onnxruntime", "reference", "onnxruntime"]
    assert "SIGFPE" in " ".join(found[1]["absent"])


def test_alone_it_is_verified_in_the_reference_evaluator(cli: Cli, folder: Path, tmp_path: Path) -> None:
    ran = cli("convert", folder / "b.onnx", "-o", tmp_path / "b18.onnx", "--opset", 18, "-v")
    assert (ran.status, ran.err) == (0, "")
    assert "onnxruntime ends its process: it was ended by SIGFPE" in " ".join(ran.out.split())
    again = cli("verify", folder / "b.onnx", tmp_path / "b18.onnx")
    assert (again.status, again.err) == (0, "")
    assert "in reference" in again.out


def test_that_only_the_result_dies_is_told(cli: Cli, folder: Path) -> None:
    ran = cli("verify", folder / "a.onnx", folder / "b.onnx")
    said = " ".join(ran.out.split())
    assert ran.status == 1
    assert "the converted model does not: onnxruntime ends its process: it was ended by SIGFPE" in said
