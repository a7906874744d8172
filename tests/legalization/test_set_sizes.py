"""Named sizes in names of sizes, and in the command; `cases/set_sizes.toml` has what becomes of nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto

import reducelower
from tests.models import model

SIZES = {"batch": 2, "seq": 6}


def shapes(made: ModelProto) -> list[list[str | int]]:
    values = [*made.graph.input, *made.graph.output]
    return [[dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("2*seq", 12), ("seq + batch - 1", 7), ("((seq - 2)//2) + 1", 3), ("seq + other", "seq + other")],
)
def test_sizes_named_after_sizes_are_worked_out(size: str, expected: int | str) -> None:
    given = model("(float[batch,seq] x, int64[1] k) => (float[named] y) { y = Reshape (x, k) }")
    given.graph.output[0].type.tensor_type.shape.dim[0].dim_param = size
    assert shapes(reducelower.expand(given, set_sizes=SIZES))[-1] == [expected]


def test_the_command_sets_them_and_verifies_what_it_wrote(tmp_path: Path, cli: Callable[..., Any]) -> None:
    onnx.save(model("(float[batch,seq] x) => (float[seq,batch] y) { y = Transpose (x) }"), tmp_path / "in.onnx")
    told = [word for name, size in SIZES.items() for word in ("--set-size", f"{name}={size}")]
    assert cli("convert", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, *told).status == 0
    assert shapes(onnx.load(tmp_path / "out.onnx")) == [[2, 6], [6, 2]]
