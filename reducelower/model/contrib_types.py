"""Types of what operators of onnxruntime's own domains yield, which onnx has no schemas for.

Each entry says, per output, whose element type it has and what its rank is; what stands in no entry is unknown. Taken
from onnxruntime's operator documentation:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onnx import TensorProto

__all__ = ["CONTRIB", "UNLISTED", "Output", "of_product"]

Ranks: TypeAlias = "Sequence[int | None]"


def _like(index: int) -> Callable[[Ranks], int | None]:
    return lambda ranks: ranks[index] if index < len(ranks) else None


def _fixed(rank: int) -> Callable[[Ranks], int | None]:
    return lambda _: rank


def _unknown(_: Ranks) -> int | None:
    return None


def of_product(ranks: Ranks) -> int | None:
    """The rank of a MatMul of operands of two dimensions or more; None where nothing is sure."""
    if len(ranks) < 2 or ranks[0] is None or ranks[1] is None or min(ranks[0], ranks[1]) < 2:
        return None
    return max(ranks[0], ranks[1])


def _broadcast(*indices: int) -> Callable[[Ranks], int | None]:
    def rank(ranks: Ranks) -> int | None:
        found = [ranks[index] if index < len(ranks) else None for index in indices]
        known = [one for one in found if one is not None]
        return max(known) if len(known) == len(found) else None

    return rank


def _gathered(ranks: Ranks) -> int | None:
    return None if ranks[0] is None or ranks[1] is None else ranks[0] + ranks[1] - 1


@dataclass(frozen=True)
class Output:
    """What is known of one output.

    Attributes:
        like: number of the input whose element type it has; -1 where none says it.
        element_type: its element type where there is no such input; 0 where nothing says it then.
        rank: its rank, from the ranks of the inputs.
    """

    like: int = -1
    element_type: int = 0
    rank: Callable[[Ranks], int | None] = _unknown


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
    **dict.fromkeys(("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul"), (Output(0, rank=of_product),)),
    "DynamicQuantizeMatMul": (Output(0, rank=of_product),),
    "MatMulIntegerToFloat": (Output(2, rank=of_product),),
    "MatMulInteger16": (Output(rank=of_product),),
    "DynamicQuantizeLSTM": (Output(0, rank=_fixed(4)), Output(0, rank=_fixed(3)), Output(0, rank=_fixed(3))),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _QUANTIZED_BINARY),
    "QLinearConcat": (Output(1, rank=_like(2)),),
    "QLinearConv": (Output(7, rank=_like(0)),),
    "QLinearReduceMean": (Output(0),),
    "QGemm": (Output(8, TensorProto.FLOAT, _fixed(2)),),
    "QLinearWhere": (Output(1, rank=_broadcast(0, 1, 4)),),
    "QuantizeLinear": (Output(2, rank=_like(0)),),
    "DequantizeLinear": (Output(1, rank=_like(0)),),
    "GatherBlockQuantized": (Output(2, rank=_gathered),),
    "CDist": (Output(0, rank=_fixed(2)),),
}  # fmt: skip
"""Operators of com.microsoft."""

UNLISTED: Mapping[str, tuple[Output, ...]] = {
    "LayerNormalization": (Output(0, rank=_like(0)), _FLOAT, _FLOAT),
    "SimplifiedLayerNormalization": (Output(1, rank=_like(0)), _FLOAT),
}
"""Operators that onnxruntime adds to the default domain."""
