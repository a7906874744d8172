"""Output types of onnxruntime's own operators, for which onnx has no schemas.

Taken from its documentation: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from reducelower.arguments import LARGEST_RANK
from reducelower.model.schemas import parse_element_type, schema
from reducelower.types.call import Call
from reducelower.types.shapes import RANKS, rule

__all__ = ["CONTRIB", "UNLISTED", "Output", "listed", "rank_of_output"]


class Output(NamedTuple):
    """Facts about one output.

    Attributes:
        like: index of the input with the same element type; -1 if none.
        element_type: the element type if there is no such input; 0 if unknown.
        rank: computes the rank; None if unknown.
    """

    like: int
    element_type: int
    rank: Callable[[Call], int] | None


def _ranked(rank: str) -> Callable[[Call], int] | None:
    if not rank or rank in RANKS:
        return RANKS.get(rank)
    if rank.startswith("="):
        return lambda _: int(rank[1:])
    return lambda call: max(call.rank(int(index)) for index in rank.split(","))


def _output(text: str) -> Output:
    """An output as it is in a table: an input of the same element type, or the type; and the rank after a colon.

    Without such an input, a type after a bar counts. A rank is a number, the highest of some inputs, or that of an
    operator of the default domain.
    """
    kind, _, rank = text.partition(":")
    like, _, other = (f"{kind}|" if kind.isdigit() else kind).rpartition("|")
    return Output(int(like or -1), parse_element_type(other) if other else 0, _ranked(rank))


def _table(text: str) -> Mapping[str, Sequence[Output]]:
    """The outputs of operators: in each line outputs, then operators."""
    rows = (line.split(" / ") for line in text.strip().splitlines())
    return {name: tuple(map(_output, outputs.split())) for outputs, names in rows for name in names.split()}


CONTRIB = _table("""
0:0 / BiasAdd BiasGelu BiasSoftmax BiasSplitGelu ComplexMul ComplexMulConj ConvTransposeWithDynamicPads FastGelu
0:0 / FusedConv Gelu GroupNorm Inverse MatMulBnb4 MatMulFpQ4 MatMulNBits MaxpoolWithMask MoE NhwcConv NhwcFusedConv
0:0 / NhwcMaxPool Pad QLinearAveragePool QLinearGlobalAveragePool QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QMoE
0:0 / QuickGelu RotaryEmbedding Trilu
0:0 float float 0:0 / SkipLayerNormalization SkipSimplifiedLayerNormalization
0:0 0:0 / SkipGroupNorm
2:=3 int32:=1 2:=3 / EmbedLayerNormalization
0:=3 0:=5 / Attention
0:=3 / LongformerAttention
0:=3 0:=4 0:=4 / MultiHeadAttention
0:=3 3:=4 4:=4 / GroupQueryAttention
3:=3 3:=5 / QAttention
0:=2 / CDist FusedGemm
0:MatMul / DynamicQuantizeMatMul FusedMatMul FusedMatMulActivation TransposeMatMul
2:MatMul / MatMulIntegerToFloat
0:=4 0:=3 0:=3 / DynamicQuantizeLSTM
0:0,3 / QLinearAdd QLinearMul
1:2 / QLinearConcat
7:0 / QLinearConv
0 / GatherND QLinearReduceMean
8|float:=2 / QGemm
1:0,1,4 / QLinearWhere
2:0 / QuantizeLinear
1:0 / DequantizeLinear
2:Gather / GatherBlockQuantized
string:OneHot / Tokenizer
""")
"""Operators of com.microsoft."""

UNLISTED = _table("""
0:0 float float / LayerNormalization
1:0 float / SimplifiedLayerNormalization
""")
"""Operators that onnxruntime adds to the default domain."""

_BLOCKED = _output("0:0")
"""What com.microsoft.nchwc has: operators of the default domain in a blocked layout."""


@cache
def listed(op_type: str, domain: str, place: int, opset: int) -> Output | None:
    """The facts about an output of an operator without a schema; `opset` is that of the default domain."""
    if domain == "com.microsoft.nchwc":
        return _BLOCKED if place == 0 else None
    outputs: Sequence[Output] = CONTRIB.get(op_type, ()) if domain == "com.microsoft" else ()
    if op_type in UNLISTED and not domain and schema(op_type, opset) is None:
        outputs = UNLISTED[op_type]
    return outputs[place] if place < len(outputs) else None


def rank_of_output(call: Call, place: int) -> int | None:
    """The rank of an output, if its operator has a rule; None if it is unknown."""
    found = rule(RANKS, call, place)
    if call.domain or call.op_type in UNLISTED:
        is_imported = not call.domain or call.graph.version(call.domain) is not None
        output = listed(call.op_type, call.domain, place, call.graph.opset) if is_imported else None
        found = output.rank if output is not None else found
    rank = call.by(found)
    return rank if rank is not None and 0 <= rank <= LARGEST_RANK else None
