"""Models on which onnxruntime ends the process that it runs in: a sentence and a status, in a folder and alone."""

from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are not forked")

Cli = Callable[..., Any]

# Divided by -1, the lowest integer is beyond the highest, which the processor answers with a signal.
DYING = """<ir_version: 8, opset_import: ["": 17]> g (float[3,2] x) => (int64[1] d, float[3,1] r) {
    lowest = Constant <value = int64[1] {-9223372036854775808}> ()
    divisor = Constant <value = int64[1] {-1}> ()
    d = Mod (lowest, divisor)
    r = ReduceLogSum <axes = [1]> (x)
}"""
LIVING = """<ir_version: 8, opset_import: ["": 17]> g (float[3,2] x) => (float[3,1] r) {
    r = ReduceLogSum <axes = [1]> (x)
}"""


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
    assert "SIGFPE" in " ".join(found[1]["notes"])


def test_alone_it_is_verified_in_the_reference_evaluator(cli: Cli, folder: Path, tmp_path: Path) -> None:
    ran = cli("convert", folder / "b.onnx", "-o", tmp_path / "b18.onnx", "--opset", 18)
    assert (ran.status, ran.err) == (0, "")
    assert "onnxruntime ends its process: it was ended by SIGFPE" in " ".join(ran.out.split())
    again = cli("verify", folder / "b.onnx", tmp_path / "b18.onnx")
    assert (again.status, again.err) == (0, "")
    assert "in reference" in again.out


def test_that_only_the_result_dies_is_told(cli: Cli, folder: Path, tmp_path: Path) -> None:
    """What is left of the lowest integer is none whether it is divided by -1 or by -2, which no processor minds."""
    calm = onnx.load(folder / "b.onnx")
    calm.graph.node[1].attribute[0].t.CopyFrom(numpy_helper.from_array(np.array([-2])))
    onnx.save(calm, tmp_path / "calm.onnx")
    ran = cli("verify", tmp_path / "calm.onnx", folder / "b.onnx")
    assert "The runtime fails on the converted model, which onnx.reference runs: onnxruntime ends its" in ran.out
