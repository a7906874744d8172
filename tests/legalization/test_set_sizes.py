"""Named sizes are set in the model itself: shapes follow, and what computed with them becomes constant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, checker, parser

import reducelower
from tests.models import operators, yields

TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, seq, 4] x) => (float[batch, half, 8] y) <int64[1] one = {1}, int64[1] two = {2}, int64[1] unread = {7}>
{
    sizes = Shape (x)
    ends = Shape <start = 0, end = 1> (x)
    seq = Gather (sizes, one)
    half = Div (seq, two)
    eight = Constant <value_ints = [8]> ()
    target = Concat <axis = 0> (ends, half, eight)
    y = Reshape (x, target)
}
"""


@pytest.fixture
def model() -> ModelProto:
    return parser.parse_model(TEXT)


def shapes(model: ModelProto) -> list[list[str | int]]:
    values = [*model.graph.input, *model.graph.output]
    return [[dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values]


@pytest.mark.parametrize("target", [18, 13, 20])
def test_what_computed_with_sizes_is_constant(model: ModelProto, target: int) -> None:
    made = reducelower.convert_version(model, target, set_sizes={"batch": 2, "seq": 6, "half": 3})
    checker.check_model(made, full_check=True)
    assert operators(made) == ["Reshape"]
    assert shapes(made) == [[2, 6, 4], [2, 3, 8]]
    held = {tensor.name for tensor in made.graph.initializer}
    assert "unread" in held
    assert "two" not in held
    feeds = {"x": np.arange(48, dtype=np.float32).reshape(2, 6, 4)}
    np.testing.assert_array_equal(yields(made, feeds)[0], yields(model, feeds)[0])


def test_a_size_that_is_not_set_stays_computed(model: ModelProto) -> None:
    made = reducelower.convert_version(model, 18, set_sizes={"batch": 2})
    assert shapes(made) == [[2, "seq", 4], [2, "half", 8]]
    assert "Div" in operators(made)
    assert shapes(model)[0] == ["batch", "seq", 4]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("2*seq", 12), ("seq + batch - 1", 7), ("((seq - 2)//2) + 1", 3), ("seq + other", "seq + other")],
)
def test_sizes_named_after_sizes_are_worked_out(model: ModelProto, size: str, expected: int | str) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = size
    made = reducelower.expand(model, ops=["ReduceL1"], set_sizes={"batch": 2, "seq": 6})
    assert shapes(made)[1][1] == expected


def test_a_name_that_no_size_has_is_refused(model: ModelProto) -> None:
    with pytest.raises(reducelower.ConversionError, match="no size of the model is called 'length'") as raised:
        reducelower.convert_version(model, 13, set_sizes={"length": 2})
    assert raised.value.refusals[0].hint == "its sizes are called batch, half, seq"


def test_the_command_sets_them_and_verifies_what_it_wrote(
    model: ModelProto, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    onnx.save(model, tmp_path / "in.onnx")
    said = ("convert", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--opset", 13)
    sizes = (word for size in ("batch=2", "seq=6", "half=3") for word in ("--set-size", size))
    assert cli(*said, *sizes).status == 0
    assert shapes(onnx.load(tmp_path / "out.onnx"))[0] == [2, 6, 4]


def test_the_configuration_sets_them(
    model: ModelProto, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model, tmp_path / "in.onnx")
    (tmp_path / "pyproject.toml").write_text("[tool.reducelower]\nset-size = { batch = 2, seq = 6, half = 3 }\n")
    assert cli("convert", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--opset", 13).status == 0
    assert shapes(onnx.load(tmp_path / "out.onnx")) == [[2, 6, 4], [2, 3, 8]]
