"""Nodes that mean nothing, or would take more room than a model has, are refused: quickly, and with the reason."""

from __future__ import annotations

import resource
import time
import tomllib
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper, parser

from reducelower import ConversionError, convert_version
from reducelower.adapters.builder import MOST_NUMBERS
from tools.walk import calls_of

SECONDS = 5
MEMORY = 300 << 20

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))


def _model(opset: int, inputs: str, held: str, node: str) -> ModelProto:
    constants = f"<{held}>" if held else ""
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (float y) {constants} {{ y = {node} }}'
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize("case", REFUSED)
def test_such_a_node_is_refused_before_anything_is_made(case: str) -> None:
    row = REFUSED[case]
    source, target = row["opsets"]
    made, before = (
        _model(source, row["inputs"], row.get("constants", ""), row["node"]),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    )
    start = time.monotonic()
    with pytest.raises(ConversionError) as refused:
        convert_version(made, target)
    assert time.monotonic() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY >> 10
    assert row["reason"] in str(refused.value)


def _einsum(equation: str, operands: int) -> ModelProto:
    node = helper.make_node("Einsum", ["x"] * operands, ["y"], equation=equation)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)])


def test_an_equation_of_very_many_letters_is_refused() -> None:
    """It ended in a RecursionError."""
    with pytest.raises(ConversionError, match="takes a diagonal"):
        convert_version(_einsum("i" * 5_000 + "->i", 1), 11)


def test_an_equation_of_very_many_operands_takes_calls_in_proportion() -> None:
    few, many = (_einsum(",".join(["i"] * operands) + "->i", operands) for operands in (500, 2_000))
    assert len(convert_version(many, 11).graph.node) == 1_999
    counts = [sum(calls_of(model.SerializeToString(), 11).values()) for model in (few, many)]
    assert counts[1] < 5 * counts[0]


@pytest.mark.parametrize(("length", "fits"), [(MOST_NUMBERS // 2, True), (MOST_NUMBERS // 2 + 1, False)])
def test_what_fits_is_written_to_the_last_number(length: int, fits: bool) -> None:
    """A table of where blocks lie, which is not written, and one of what covers each place, which is."""
    made = _model(18, f"float[1,1,{length}] x", f"int64[1] i = {{{length}}}, int64[1] b = {{1}}", "Col2Im(x, i, b)")
    if fits:
        assert convert_version(made, 17).ByteSize() > 4 * MOST_NUMBERS
    else:
        with pytest.raises(ConversionError, match="in all are the most"):
            convert_version(made, 17)


def test_a_dilated_maximum_of_very_many_places_is_refused() -> None:
    made = _model(10, "float[1,1,32768] x", "", "MaxPool<kernel_shape=[2], dilations=[3]>(x)")
    assert len(convert_version(made, 9).graph.node) == 2
    made = _model(10, "float[1,1,32773] x", "", "MaxPool<kernel_shape=[2], dilations=[3]>(x)")
    with pytest.raises(ConversionError, match="more than 65,536 places"):
        convert_version(made, 9)
