"""Ranks that follow from the ranks of a node's inputs, or from the number of sizes or axes it gets.

Also the output types of operators in onnxruntime's own domains, for which onnx has no schemas: each entry gives, per
output, the input whose element type it has, and its rank. Operators without an entry are unknown. Taken from
onnxruntime's documentation: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from onnx import TensorProto

from reducelower.model.schemas import REDUCTIONS, schema
from reducelower.types.call import Call, UnknownError
from reducelower.types.shapes import ALIKE, BROADCASTING, SAME_SHAPE

__all__ = ["CONTRIB", "UNLISTED", "Output", "listed", "rank_rule"]

RankOf: TypeAlias = Callable[[Call], int]
"""Computes a rank from facts about the inputs."""


def product(call: Call) -> int:
    """The rank of a MatMul of operands with two or more dimensions; others are not covered."""
    ranks = call.rank(0), call.rank(1)
    if min(ranks) < 2:
        raise UnknownError
    return max(ranks)


def _reduced(call: Call) -> int:
    return call.rank(0) - (0 if call.attribute("keepdims", 1) else call.count_of_removed())


RANKS: Mapping[str, RankOf] = {
    **dict.fromkeys(
        (
            *SAME_SHAPE, "Attention", "AveragePool", "CenterCropPad", "Conv", "ConvInteger", "ConvTranspose", "DFT",
            "DepthToSpace", "DequantizeLinear", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "MaxPool", "MaxUnpool",
            "Pad", "QLinearConv", "Resize", "Slice", "SpaceToDepth", "Split", "StringNormalizer", "Tile", "TopK",
            "Transpose", "Upsample",
        ),
        lambda call: call.rank(0),
    ),
    **dict.fromkeys(BROADCASTING, lambda call: max(map(call.rank, range(len(call.inputs))))),
    **dict.fromkeys(("MatMul", "MatMulInteger"), product),
    **dict.fromkeys(("ArgMax", "ArgMin"), lambda call: call.rank(0) - (not call.attribute("keepdims", 1))),
    **dict.fromkeys(REDUCTIONS, _reduced),
    "STFT": lambda call: 4,
    **dict.fromkeys(("Flatten", "Gemm", "MelWeightMatrix", "NonZero"), lambda call: 2),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow", "Range", "Shape"), lambda call: 1),
    "Size": lambda call: 0,
    "Compress": lambda call: 1 if call.attribute("axis", None) is None else call.rank(0),
    **dict.fromkeys(("Concat", "GatherElements", "ScatterElements"), lambda call: call.any_rank()),
    "ConstantOfShape": lambda call: call.length(0),
    "Expand": lambda call: max(call.rank(0), call.length(1)),
    "Gather": lambda call: call.rank(0) + call.rank(1) - 1,
    "OneHot": lambda call: call.rank(0) + 1,
    "Reshape": lambda call: call.length(1),
    "Squeeze": lambda call: call.rank(0) - call.count_of_removed(),
    "Unsqueeze": lambda call: call.rank(0) + call.count_of_axes(),
}  # fmt: skip
"""The rank of the first output, by operator."""


def _like(index: int) -> RankOf:
    return lambda call: call.rank(index)


def _fixed(rank: int) -> RankOf:
    return lambda _: rank


def _broadcast(*indices: int) -> RankOf:
    return lambda call: max(map(call.rank, indices))


@dataclass(frozen=True)
class Output:
    """Facts about one output.

    Attributes:
        like: index of the input with the same element type; -1 if none.
        element_type: the element type if `like` is -1; 0 if unknown.
        rank: computes the rank; None if unknown.
    """

    like: int = -1
    element_type: int = 0
    rank: RankOf | None = None


_SAME = (Output(0, rank=_like(0)),)
_FLOAT = Output(element_type=TensorProto.FLOAT)
_NORMALIZED = (Output(0, rank=_like(0)), _FLOAT, _FLOAT, Output(0, rank=_like(0)))
_ATTENTION = (Output(0, rank=_fixed(3)),)
_QUANTIZED_BINARY = (Output(0, rank=_broadcast(0, 3)),)

CONTRIB: Mapping[str, tuple[Output, ...]] = {
    **dict.fromkeys(
        (
            "BiasAdd", "BiasGelu", "BiasSoftmax", "BiasSplitGelu", "ConvTransposeWithDynamicPads", "FastGelu",
            "FusedConv", "Gelu", "GroupNorm", "Inverse", "MatMulBnb4", "MatMulFpQ4", "MatMulNBits", "MoE", "NhwcConv",
            "NhwcFusedConv", "NhwcMaxPool", "Pad", "QLinearAveragePool", "QLinearGlobalAveragePool",
            "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QMoE", "QuickGelu", "RotaryEmbedding", "Trilu",
            "ComplexMul", "ComplexMulConj", "MaxpoolWithMask",
        ),
        _SAME,
    ),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _NORMALIZED),
    "SkipGroupNorm": (Output(0, rank=_like(0)), Output(0, rank=_like(0))),
    "EmbedLayerNormalization": (
        Output(2, rank=_fixed(3)), Output(element_type=TensorProto.INT32, rank=_fixed(1)), Output(2, rank=_fixed(3))
    ),
    "Attention": (*_ATTENTION, Output(0, rank=_fixed(5))),
    "LongformerAttention": _ATTENTION,
    "MultiHeadAttention": (*_ATTENTION, Output(0, rank=_fixed(4)), Output(0, rank=_fixed(4))),
    "GroupQueryAttention": (*_ATTENTION, Output(3, rank=_fixed(4)), Output(4, rank=_fixed(4))),
    "QAttention": (Output(3, rank=_fixed(3)), Output(3, rank=_fixed(5))),
    "FusedGemm": (Output(0, rank=_fixed(2)),),
    **dict.fromkeys(("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul"), (Output(0, rank=product),)),
    "DynamicQuantizeMatMul": (Output(0, rank=product),),
    "MatMulIntegerToFloat": (Output(2, rank=product),),
    "DynamicQuantizeLSTM": (Output(0, rank=_fixed(4)), Output(0, rank=_fixed(3)), Output(0, rank=_fixed(3))),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _QUANTIZED_BINARY),
    "QLinearConcat": (Output(1, rank=_like(2)),),
    "QLinearConv": (Output(7, rank=_like(0)),),
    "QLinearReduceMean": (Output(0),),
    "QGemm": (Output(8, TensorProto.FLOAT, _fixed(2)),),
    "QLinearWhere": (Output(1, rank=_broadcast(0, 1, 4)),),
    "QuantizeLinear": (Output(2, rank=_like(0)),),
    "DequantizeLinear": (Output(1, rank=_like(0)),),
    "GatherBlockQuantized": (Output(2, rank=lambda call: call.rank(0) + call.rank(1) - 1),),
    "CDist": (Output(0, rank=_fixed(2)),),
    "Tokenizer": (Output(element_type=TensorProto.STRING, rank=lambda call: call.rank(0) + 1),),
    "GatherND": (Output(0),),
}  # fmt: skip
"""Operators of com.microsoft."""

UNLISTED: Mapping[str, tuple[Output, ...]] = {
    "LayerNormalization": (Output(0, rank=_like(0)), _FLOAT, _FLOAT),
    "SimplifiedLayerNormalization": (Output(1, rank=_like(0)), _FLOAT),
}
"""Operators that onnxruntime adds to the default domain."""


@cache
def listed(op_type: str, domain: str, place: int, opset: int) -> Output | None:
    """The facts about an output of an operator without a schema; `opset` is that of the default domain."""
    if domain == "com.microsoft.nchwc":
        # It has operators of the default domain in a blocked layout.
        return Output(0, rank=_like(0)) if place == 0 else None
    if domain == "com.microsoft":
        outputs = CONTRIB.get(op_type, ())
    elif op_type in UNLISTED and not domain and schema(op_type, opset) is None:
        outputs = UNLISTED[op_type]
    else:
        return None
    return outputs[place] if place < len(outputs) else None


def rank_rule(call: Call, place: int) -> RankOf | None:
    """The function that computes the rank of an output; None if no table has one."""
    op_type, domain = call.op_type, call.domain
    if domain or op_type in UNLISTED:
        if domain and call.graph.version(domain) is None:
            return None
        output = listed(op_type, domain, place, call.graph.opset)
        if domain or output is not None:
            return None if output is None else output.rank
    return RANKS.get(op_type) if place == 0 or op_type in ALIKE else None
