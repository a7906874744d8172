"""Nodes that mean nothing, or would take more room than a model has, are refused: quickly, and with the reason."""

from __future__ import annotations

import resource
import time

import pytest
from onnx import ModelProto, TensorProto, helper, parser

from reducelower import ConversionError, convert_version
from reducelower.adapters.builder import MOST_NUMBERS

SECONDS = 5
MEMORY = 300 << 20

_ODD = {
    "a rounding that Resize lacks": (
        19, 10, "float[1,1,4,4] x", "", "float[4] s={1,1,2,2}", 'Resize<nearest_mode="flnor">(x,,s)',
        "nearest_mode is flnor, and Resize takes only round_prefer_floor",
    ),
    "a mode of another operator": (
        19, 10, "float[1,1,4,4] x", "", "float[4] s={1,1,2,2}", 'Resize<mode="bilinear">(x,,s)',
        "mode is bilinear, and Resize takes only nearest, linear, cubic",
    ),
    "no element type": (
        23, 22, "float[1,2,4,8] x", "", "", "Attention<softmax_precision=99>(x,x,x)",
        "softmax_precision is 99, and Attention takes only 1, 10, 11, 16",
    ),
    "an element type that nobody knows": (9, 8, "float[2,2] x", "", "", "EyeLike<dtype=99>(x)", "dtype is 99"),
    "a mode that Pad lacks": (13, 10, "float[4] x", "int64[2] p", "", 'Pad<mode="mirror">(x,p)', "mode is mirror"),
    "blocks of nothing": (
        11, 10, "float[1,4,2,2] x", "", "", 'DepthToSpace<mode="CRD",blocksize=0>(x)', "blocksize is 0",
    ),
    "steps of nothing": (
        22, 9, "float[1,1,4,4] x", "", "", "MaxPool<kernel_shape=[2,2],strides=[0,1],ceil_mode=1>(x)",
        "strides is [0, 1]",
    ),
    "a scale below zero": (
        19, 10, "float[1,1,4,4] x", "", "float[4] s={1,1,-1,2}", 'Resize<mode="linear">(x,,s)', "scale -1.0 is not",
    ),
    "a size below zero": (
        13, 10, "float[1,1,4,4] x", "", "int64[4] s={1,1,-4,2}", 'Resize<mode="linear">(x,,,s)', "asks for the size -4",
    ),
    "fewer steps than starts": (
        13, 9, "float[4,4] x", "", "int64[2] s={0,1}, int64[2] e={3,3}, int64[2] a={0,1}, int64[1] t={2}",
        "Slice(x,s,e,a,t)", "are not of one length",
    ),
    "an axis that no data has": (
        17, 16, "float[2,3] x", "", "float[3] s={1,1,1}", "LayerNormalization<axis=-300000000>(x,s)",
        "axis -300000000 is out of range for rank 2",
    ),
    "blocks along an axis that the scales lack": (
        21, 13, "int8[4,6] x", "float[3] s", "", "DequantizeLinear<axis=1,block_size=2>(x,s)",
        "axis 1 is out of range for rank 1",
    ),
    "an axis that this data lacks": (
        13, 11, "float[2,3] x", "", "", "ArgMax<axis=1000000000,select_last_index=1>(x)", "is out of range for rank 2",
    ),
}  # fmt: skip

_LARGE = {
    "far padding": (19, 13, "float[4] x", "", "int64[2] p={1000000000,0}", 'Pad<mode="wrap">(x,p)', "1,000,000,004"),
    "padding beyond all numbers": (
        19, 13, "float[4] x", "", "int64[2] p={4611686018427387904,0}", 'Pad<mode="wrap">(x,p)', "4,611,686,018,427",
    ),
    "many rows": (
        19, 10, "float[1,1,4,4] x", "", "int64[4] s={1,1,1000000000,2}", 'Resize<mode="linear">(x,,,s)',
        "a table of 4 x 1,000,000,000 numbers",
    ),
    "a scale without measure": (
        19, 10, "float[1,1,4,4] x", "", "float[4] s={1,1,1e30,2}", 'Resize<mode="cubic">(x,,s)', "4 x 4,000,000,0",
    ),
    "a scale beyond float": (
        19, 10, "float[1,1,4,4] x", "", "float[4] s={1,1,3e38,2}", 'Resize<mode="linear">(x,,s)', "a table of 4 x ",
    ),
    "a long diagonal": (9, 8, "float[1000000000,3] x", "", "", "EyeLike(x)", "a table of 1,000,000,000 numbers"),
    "long frames": (
        17, 16, "float[1,100000,1] x", "", "int64 t={100}, int64 l={60000}", "STFT(x,t,,l)", "2 x 30,001 x 1 x 60,000",
    ),
    "a long transform": (17, 16, "float[1,60000,1] x", "", "", "DFT(x)", "60,000 x 60,000"),
    "many channels": (
        28, 27, "float[1,1,1000000,1000000] x", "", "", 'SpaceToDepth<mode="CRD",blocksize=100000>(x)',
        "a table of 10,000,000,000",
    ),
    "a large window": (
        18, 17, "float[1,1,n,n] x", "", "", "LpPool<kernel_shape=[100000,100000],dilations=[2,2]>(x)", "",
    ),
    "many groups": (
        21, 18, "float[1,n,2] x", "float[c] s", "", "GroupNormalization<num_groups=1000000000>(x,s,s)",
        "a table of 2 x 1,000,000,000",
    ),
    "a large image": (
        18, 17, "float[1,n,m] x", "", "int64[2] i={100000,100000}, int64[2] b={1,1}", "Col2Im(x,i,b)",
        "a table of 100,000 x 100,000 x 1 x 1",
    ),
}  # fmt: skip


def _model(opset: int, taken: str, more: str, held: str, node: str) -> ModelProto:
    inputs = ", ".join(filter(None, (taken, more)))
    constants = f"<{held}>" if held else ""
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (float y) {constants} {{ y = {node} }}'
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize("case", [*_ODD, *_LARGE])
def test_such_a_node_is_refused_before_anything_is_made(case: str) -> None:
    source, target, taken, more, held, node, reason = {**_ODD, **_LARGE}[case]
    made, before = _model(source, taken, more, held, node), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    with pytest.raises(ConversionError) as refused:
        convert_version(made, target)
    assert time.monotonic() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY >> 10
    assert reason in str(refused.value)


def _einsum(equation: str, operands: int) -> ModelProto:
    node = helper.make_node("Einsum", ["x"] * operands, ["y"], equation=equation)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)])


def test_an_equation_of_very_many_letters_is_refused() -> None:
    """It ended in a RecursionError."""
    with pytest.raises(ConversionError, match="in all are the most"):
        convert_version(_einsum("i" * 20_000 + "->i", 1), 11)


def test_an_equation_of_very_many_operands_takes_linear_time() -> None:
    start = time.process_time()
    made = convert_version(_einsum(",".join(["i"] * 5_000) + "->i", 5_000), 11)
    assert time.process_time() - start < 10
    assert len(made.graph.node) == 4_999


@pytest.mark.parametrize(("size", "fits"), [(MOST_NUMBERS - 4, True), (MOST_NUMBERS - 3, False)])
def test_what_fits_is_written_to_the_last_number(size: int, fits: bool) -> None:
    made = _model(19, "float[4] x", "", f"int64[2] p={{{size},0}}", 'Pad<mode="wrap">(x,p)')
    if fits:
        assert convert_version(made, 13).ByteSize() > 8 * size
    else:
        with pytest.raises(ConversionError, match="in all are the most"):
            convert_version(made, 13)
