"""Types of what operators of onnxruntime's own domains yield, which onnx has no schemas for.

Each entry says, per output, whose element type it has and what its rank is; what stands in no entry is unknown. Taken
from onnxruntime's operator documentation:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import TensorProto

from reducelower.model.ranks import Inputs, RankOf, product

__all__ = ["CONTRIB", "UNLISTED", "Output"]


def _like(index: int) -> RankOf:
    return lambda inputs: inputs.rank(index)


def _fixed(rank: int) -> RankOf:
    return lambda _: rank


def _broadcast(*indices: int) -> RankOf:
    return lambda inputs: max(map(inputs.rank, indices))


@dataclass(frozen=True)
class Output:
    """What is known of one output.

    Attributes:
        like: number of the input whose element type it has; -1 where none says it.
        element_type: its element type where there is no such input; 0 where nothing says it then.
        rank: its rank, from those of the inputs; None where nothing says it.
    """

    like: int = -1
    element_type: int = 0
    rank: RankOf | None = None


def _with_one_more(inputs: Inputs) -> int:
    return inputs.rank(0) + 1


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
    "MatMulInteger16": (Output(rank=product),),
    "DynamicQuantizeLSTM": (Output(0, rank=_fixed(4)), Output(0, rank=_fixed(3)), Output(0, rank=_fixed(3))),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _QUANTIZED_BINARY),
    "QLinearConcat": (Output(1, rank=_like(2)),),
    "QLinearConv": (Output(7, rank=_like(0)),),
    "QLinearReduceMean": (Output(0),),
    "QGemm": (Output(8, TensorProto.FLOAT, _fixed(2)),),
    "QLinearWhere": (Output(1, rank=_broadcast(0, 1, 4)),),
    "QuantizeLinear": (Output(2, rank=_like(0)),),
    "DequantizeLinear": (Output(1, rank=_like(0)),),
    "GatherBlockQuantized": (Output(2, rank=lambda inputs: inputs.rank(0) + inputs.rank(1) - 1),),
    "CDist": (Output(0, rank=_fixed(2)),),
    "Tokenizer": (Output(element_type=TensorProto.STRING, rank=_with_one_more),),
    "ExpandDims": (Output(0, rank=_with_one_more),),
    "Rfft": (Output(0, rank=_with_one_more),),
    "Irfft": (Output(0, rank=lambda inputs: inputs.rank(0) - 1),),
    "CropAndResize": (Output(0, rank=_fixed(4)),),
    "GatherND": (Output(0),),
    "NGramRepeatBlock": (Output(1, rank=_fixed(2)),),
    "BeamSearch": (Output(element_type=TensorProto.INT32, rank=_fixed(3)),),
    **dict.fromkeys(("GreedySearch", "Sampling"), (Output(element_type=TensorProto.INT32, rank=_fixed(2)),)),
}  # fmt: skip
"""Operators of com.microsoft."""

UNLISTED: Mapping[str, tuple[Output, ...]] = {
    "LayerNormalization": (Output(0, rank=_like(0)), _FLOAT, _FLOAT),
    "SimplifiedLayerNormalization": (Output(1, rank=_like(0)), _FLOAT),
}
"""Operators that onnxruntime adds to the default domain."""
