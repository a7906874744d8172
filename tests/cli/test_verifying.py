"""Values for inputs, tolerances and strictness, as `verify` and `convert` take them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.verification.models import model

Cli = Callable[..., Any]

SUM = "g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) { y = Add (x, z) }"
SCALED = "g (float[4] x) => (float[4] y) <float k = {%s}> { y = Mul (x, k) }"


@pytest.fixture
def total(tmp_path: Path) -> Path:
    onnx.save(model(SUM), tmp_path / "sum.onnx")
    return tmp_path / "sum.onnx"


def scaled(folder: Path, factor: str) -> Path:
    path = folder / f"scaled_{factor}.onnx"
    onnx.save(model(SCALED % factor), path)
    return path


WRONG = {
    "another element type": (np.ones((2, 4), np.float64), "input 'x' takes float, and double was given"),
    "integers": (np.ones((2, 4), np.int64), "input 'x' takes float, and int64 was given"),
    "another rank": (np.ones(4, np.float32), "input 'x' has shape [N, 4]"),
    "another size": (np.ones((2, 5), np.float32), "input 'x' has shape [N, 4]"),
}


@pytest.mark.parametrize("command", ["verify", "convert"])
@pytest.mark.parametrize("what", WRONG)
def test_a_value_that_does_not_fit_its_input_is_bad_usage(
    cli: Cli, total: Path, tmp_path: Path, command: str, what: str
) -> None:
    value, sentence = WRONG[what]
    np.save(tmp_path / "x.npy", value)
    other = [total] if command == "verify" else ["-o", tmp_path / "out.onnx", "--opset", 13]
    ran = cli(command, total, *other, "--input", f"x={tmp_path / 'x.npy'}")
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert sentence in ran.err
    assert not (tmp_path / "out.onnx").exists()


def test_values_whose_symbols_do_not_agree_are_bad_usage(cli: Cli, total: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "values.npz", x=np.ones((2, 4), np.float32), z=np.ones((3, 4), np.float32))
    ran = cli("verify", total, total, "--input", tmp_path / "values.npz")
    assert ran.status == 2
    assert "N is 2" in ran.err


def test_an_archive_holds_a_value_for_each_input(cli: Cli, total: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "values.npz", x=np.ones((2, 4), np.float32), z=np.ones((2, 4), np.float32))
    assert cli("verify", total, total, "--input", tmp_path / "values.npz").status == 0


def test_an_array_of_no_input_is_bad_usage(cli: Cli, total: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "values.npz", x=np.ones((2, 4), np.float32), w=np.ones((2, 4), np.float32))
    ran = cli("verify", total, total, "--input", tmp_path / "values.npz")
    assert ran.status == 2
    assert "'w'" in ran.err


@pytest.mark.parametrize(("absolute", "status"), [("1e-1", 0), ("1e-6", 1)])
def test_an_absolute_tolerance_is_in_the_units_of_the_outputs(
    cli: Cli, tmp_path: Path, absolute: str, status: int
) -> None:
    np.save(tmp_path / "x.npy", np.full(4, 3, np.float32))
    before, after = scaled(tmp_path, "1.0"), scaled(tmp_path, "1.0005")
    ran = cli("verify", before, after, "--atol", absolute, "--input", f"x={tmp_path / 'x.npy'}")
    assert ran.status == status


@pytest.mark.skipif(find_spec("MNN") is not None, reason="the runtime is installed here")
def test_strictly_a_model_is_right_for_a_runtime_only_in_that_runtime(cli: Cli, tmp_path: Path) -> None:
    source, output = scaled(tmp_path, "2.0"), tmp_path / "out.onnx"
    arguments = ("convert", source, "-o", output, "--opset", 13, "--for", "mnn")
    ran = cli(*arguments, "--verify-strict")
    assert (ran.status, output.exists()) == (1, False)
    assert "mnn" in ran.err
    assert cli(*arguments).status == 0
    assert output.exists()


@pytest.mark.parametrize("target", [9, 13])
def test_a_declared_rank_is_the_rank_that_is_tried(cli: Cli, tmp_path: Path, target: int) -> None:
    # Of other ranks, what is written for this one gives something else.
    unranked = model("g (float[] x, int64[k] a) => (float[] y) { y = ReduceMax (x, a) }")
    unranked.graph.input[0].type.tensor_type.ClearField("shape")
    unranked.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(unranked, tmp_path / "in.onnx")
    given = tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--opset", target
    refused = cli("convert", *given)
    assert refused.status == 1
    assert "--rank x=" in refused.err
    ran = cli("convert", *given, "--rank", "x=2")
    assert ran.status == 0, ran.err
    assert "verified" in ran.out


def test_what_differs_is_told_by_its_error_and_the_rest_is_in_the_report(cli: Cli, tmp_path: Path) -> None:
    before, after = scaled(tmp_path, "2.0"), scaled(tmp_path, "3.0")
    ran = cli("verify", before, after, "--report", tmp_path / "report.md")
    assert ran.status == 1
    said = " ".join(ran.out.split())
    assert "values differ; the largest error is" in said
    assert "ULP" not in said
    assert "shown by" not in said
    assert "max ULP" in (tmp_path / "report.md").read_text("utf-8")
    assert "shown by x = " in " ".join(cli("verify", before, after, "-v").out.split())
