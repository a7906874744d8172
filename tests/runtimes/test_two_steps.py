"""One step does what two steps do: what fits a runtime after a conversion or an expansion fits it without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from onnx import ModelProto

from reducelower import ConversionError, Target, convert_version, expand, legalize, load_runtime
from reducelower.runtimes import shipped_names
from tests.models import model

NODES = {
    "Attention": (24, "(float[1,2,3,8] q, float[1,2,4,8] k, float[1,2,4,8] v) => (float[1,2,3,8] y)", "(q, k, v)"),
    "Attention <softcap = 2.0>": (23, "(float[1,2,3,8] q, float[1,2,4,8] k) => (float[1,2,3,8] y)", "(q, k, k)"),
    "BatchNormalization <training_mode = 1>": (
        15, "(float[2,3,4] x, float[3] s) => (float[2,3,4] y)", "(x, s, s, s, s)",
    ),
    "BitShift <direction = 'LEFT'>": (18, "(uint8[3] x, uint8[3] s) => (uint8[3] y)", "(x, s)"),
    "BitwiseAnd": (18, "(int32[3] x, int32[3] z) => (int32[3] y)", "(x, z)"),
    "CenterCropPad <axes = [1]>": (18, "(float[2,8] x) => (float[2,4] y) <int64[1] s = {4}>", "(x, s)"),
    "Celu": (12, "(float[3] x) => (float[3] y)", "(x)"),
    "Col2Im": (
        18, "(float[1,4,4] x) => (float[1,1,3,3] y) <int64[2] i = {3, 3}, int64[2] b = {2, 2}>", "(x, i, b)",
    ),
    "CumProd": (26, "(float[3] x) => (float[3] y) <int64 a = {0}>", "(x, a)"),
    "Einsum <equation = 'ij,jk->ik'>": (12, "(float[2,3] x, float[3,2] z) => (float[2,2] y)", "(x, z)"),
    "Equal": (13, "(uint8[3] x, uint8[3] z) => (bool[3] y)", "(x, z)"),
    "Gelu": (20, "(float[3] x) => (float[3] y)", "(x)"),
    "GroupNormalization <num_groups = 2>": (21, "(float[N,4,H,W] x, float[4] s) => (float[N,4,H,W] y)", "(x, s, s)"),
    "HardSwish": (14, "(float[3] x) => (float[3] y)", "(x)"),
    "LayerNormalization": (17, "(float[2,3] x, float[3] s) => (float[2,3] y)", "(x, s)"),
    "LpNormalization": (13, "(float[2,3] x) => (float[2,3] y)", "(x)"),
    "MatMulInteger": (13, "(uint8[2,3] x, uint8[3,2] z) => (int32[2,2] y)", "(x, z)"),
    "MeanVarianceNormalization": (13, "(float[2,3,4,5] x) => (float[2,3,4,5] y)", "(x)"),
    "Min": (13, "(uint8[3] x, uint8[3] z) => (uint8[3] y)", "(x, z)"),
    "Mish": (18, "(float[3] x) => (float[3] y)", "(x)"),
    "RMSNormalization": (23, "(float[2,3] x, float[3] s) => (float[2,3] y)", "(x, s)"),
    "Reciprocal": (13, "(float[3] x) => (float[3] y)", "(x)"),
    "RotaryEmbedding": (
        23, "(float[1,2,3,8] x, float[9,4] c, int64[1,3] p) => (float[1,2,3,8] y)", "(x, c, c, p)",
    ),
    "RotaryEmbedding <interleaved = 1>": (
        23, "(float[1,2,3,8] x, float[9,4] c, int64[1,3] p) => (float[1,2,3,8] y)", "(x, c, c, p)",
    ),
    "ScatterElements <reduction = 'min'>": (
        18, "(float[3] x, int64[2] i, float[2] u) => (float[3] y)", "(x, i, u)",
    ),
    "SoftmaxCrossEntropyLoss": (13, "(float[2,3] x, int64[2] t) => (float y)", "(x, t)"),
    "TensorScatter": (24, "(float[2,3,4,5] x, float[2,3,1,5] u, int64[2] w) => (float[2,3,4,5] y)", "(x, u, w)"),
}  # fmt: skip
"""A node, its opset version, inputs and outputs, and operands."""

MEASURED = {("mnn", "BitwiseAnd"): "what stands for it is wrong for large integers, and right for others"}
"""Where the target file says that what stands for the operator was measured to be no better."""


def of_two_steps(source: ModelProto, opset: int, operator: str) -> Iterator[ModelProto]:
    for older in (23, 22, 17, 15, 13, 11, 9):
        if older < opset:
            try:
                yield convert_version(source, older)
            except ConversionError:
                continue
    if operator.endswith("Normalization"):
        yield expand(source, ops=[operator])


def fits(source: ModelProto, target: Target) -> bool:
    try:
        legalize(source, target)
    except ConversionError:
        return False
    return True


@pytest.mark.parametrize("name", shipped_names())
def test_what_two_steps_of_the_tool_do_one_step_does(name: str) -> None:
    target = Target(runtime=load_runtime(name))
    for node, (opset, graph, operands) in NODES.items():
        operator = node.partition(" ")[0]
        source = model(f"{graph} {{ y = {node.replace(chr(39), chr(34))} {operands} }}", opset)
        if (name, operator) not in MEASURED and not fits(source, target):
            assert not any(fits(each, target) for each in of_two_steps(source, opset, operator)), node
