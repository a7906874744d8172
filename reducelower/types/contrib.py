"""The types of what onnxruntime's own operators yield, for which onnx has no schemas.

Taken from its documentation: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reducelower.arguments import LARGEST_RANK
from reducelower.model.schemas import is_runtime_name
from reducelower.types.call import Call
from reducelower.types.shapes import RANKS, rule

__all__ = ["OWN", "Own", "own", "rank_of_output"]


class Own(NamedTuple):
    """The type of the first output of an operator.

    Attributes:
        like: index of the input with the same element type; without that input, it is float.
        rank: computes the rank.
    """

    like: int
    rank: Callable[[Call], int]


def _rank(text: str) -> Callable[[Call], int]:
    """A rank that is a number, that of an operator of the default domain, or the highest of some inputs."""
    if text.startswith("="):
        return lambda call: int(text[1:])
    return RANKS.get(text) or (lambda call: max(call.rank(int(place)) for place in text.split(",")))


def _table(text: str) -> Mapping[str, Own]:
    """The rows by operator: the input of the same element type, then the rank, then operators."""
    rows = (line.split() for line in text.strip().splitlines())
    return {name: Own(int(like), _rank(rank)) for like, rank, *names in rows for name in names}


OWN = _table("""
0 0 BiasAdd BiasGelu BiasSoftmax BiasSplitGelu ComplexMul ComplexMulConj ConvTransposeWithDynamicPads FastGelu
0 0 FusedConv Gelu GroupNorm Inverse MatMulBnb4 MatMulFpQ4 MatMulNBits MaxpoolWithMask MoE NhwcConv NhwcFusedConv
0 0 NhwcMaxPool Pad QLinearAveragePool QLinearGlobalAveragePool QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QMoE
0 0 QuickGelu RotaryEmbedding SkipGroupNorm Trilu SkipLayerNormalization SkipSimplifiedLayerNormalization
0 =3 Attention GroupQueryAttention LongformerAttention MultiHeadAttention
3 =3 QAttention
0 Gemm CDist FusedGemm
8 Gemm QGemm
0 MatMul DynamicQuantizeMatMul FusedMatMul FusedMatMulActivation TransposeMatMul
2 MatMul MatMulIntegerToFloat
0 0,3 QLinearAdd QLinearMul
1 0,1,4 QLinearWhere
1 2 QLinearConcat
7 0 QLinearConv
2 0 QuantizeLinear
1 0 DequantizeLinear SimplifiedLayerNormalization
2 Gather GatherBlockQuantized
2 =3 EmbedLayerNormalization
0 OneHot Tokenizer
""")
"""Operators of com.microsoft, and those that onnxruntime adds to the default domain."""


def own(call: Call, place: int) -> Own | None:
    """The row for an output of one of these operators: the first, or the sum from SkipLayerNormalization."""
    is_own = call.domain == "com.microsoft" or is_runtime_name(call.op_type)
    is_like_first = place == 0 or (place == 3 and call.op_type.startswith("Skip"))
    return OWN.get(call.op_type) if is_own and is_like_first else None


def rank_of_output(call: Call, place: int) -> int | None:
    """The rank of an output, if its operator has a rule; None if it is unknown."""
    row = own(call, place)
    rank = call.by(rule(RANKS, call, place) if row is None else row.rank)
    return rank if rank is not None and 0 <= rank <= LARGEST_RANK else None
