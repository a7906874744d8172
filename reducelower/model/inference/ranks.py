"""Ranks that follow from the ranks of a node's inputs, or from the number of sizes or axes it gets.

Also the output types of operators in onnxruntime's own domains, for which onnx has no schemas: each entry gives, per
output, the input whose element type it has, and its rank. Operators without an entry are unknown. Taken from
onnxruntime's documentation: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnx import NodeProto, TensorProto, TypeProto

from reducelower.arguments import LARGEST_RANK
from reducelower.model.attributes import value_of
from reducelower.model.value_info import size_of

__all__ = [
    "CONTRIB",
    "LENGTHS",
    "ML_RANKS",
    "RANKS",
    "UNLISTED",
    "Inputs",
    "NumberOf",
    "Output",
    "evaluate_rule",
    "length_of",
    "product",
    "rank_of",
]


def rank_of(found: TypeProto | None) -> int | None:
    """The rank of a type; None if it is not stated."""
    if found is None or not found.tensor_type.HasField("shape"):
        return None
    return len(found.tensor_type.shape.dim)


def length_of(found: TypeProto | None) -> int | None:
    """The length of a vector type; None if it is unknown, or the rank is not 1."""
    if found is None or rank_of(found) != 1:
        return None
    dim = found.tensor_type.shape.dim[0]
    return size_of(dim)


class _UnknownError(Exception):
    """A fact about an input that a rule needs is unknown."""


class Inputs:
    """Facts about the inputs of a node. Rules ask as if all were known; if one is not, `evaluate_rule` returns None."""

    def __init__(
        self,
        node: NodeProto,
        rank: Callable[[str], int | None],
        length: Callable[[str], int | None],
        vector: Callable[[str], Sequence[int] | None] = lambda name: None,
    ) -> None:
        """Take a node without references to function attributes, and lookups by value name.

        The lookups give the rank, the length of a vector, and the value of a constant integer vector.
        """
        self._node = node
        self._rank = rank
        self._length = length
        self._vector = vector

    @classmethod
    def of_types(cls, node: NodeProto, types: Mapping[str, TypeProto]) -> Inputs:
        """Facts taken from types by name."""
        return cls(node, lambda name: rank_of(types.get(name)), lambda name: length_of(types.get(name)))

    def rank(self, index: int) -> int:
        """The rank of an input."""
        return _known(self._rank(self._at(index)))

    def ranks(self) -> list[int]:
        """The ranks of all inputs."""
        return [self.rank(index) for index in range(len(self._node.input))]

    def any_rank(self) -> int:
        """The rank that all inputs share, from any input where it is known."""
        return _known(next((rank for rank in map(self._rank, self._node.input) if rank is not None), None))

    def length(self, index: int) -> int:
        """The length of an input that is a vector."""
        return _known(self._length(self._at(index)))

    def lengths(self) -> list[int]:
        """The lengths of all inputs."""
        return [self.length(index) for index in range(len(self._node.input))]

    def broadcast_length(self) -> int:
        """The length of the vector that all inputs broadcast to."""
        known = [length for length in map(self._length, self._node.input) if length is not None]
        # A length of 1 broadcasts to any other, which may be unknown.
        return _known(next((length for length in known if length != 1), None))

    def count_of_axes(self) -> int:
        """The number of axes in the node's attribute or second input."""
        axes = self.attribute("axes", None)
        return self.length(1) if axes is None else len(axes)

    def count_of_removed(self) -> int:
        """The number of axes that are removed; no axes at all may mean all of them."""
        return _known(self.count_of_axes() or None)

    def has(self, index: int) -> bool:
        """Whether the input exists."""
        return index < len(self._node.input) and self._node.input[index] != ""

    def integers(self, name: str, index: int) -> Sequence[int]:
        """The integers of an attribute, or of an input if there is no such attribute."""
        found = self.attribute(name, None)
        if found is None:
            found = self._vector(self._at(index))
        if found is None:
            raise _UnknownError
        return [int(each) for each in found]

    def attribute(self, name: str, default: Any) -> Any:
        """The value of an attribute of the node."""
        return value_of(self._node, name, default)

    def _at(self, index: int) -> str:
        if not self.has(index):
            raise _UnknownError
        return self._node.input[index]


def _known(found: int | None) -> int:
    if found is None:
        raise _UnknownError
    return found


NumberOf: TypeAlias = Callable[[Inputs], int]
"""Computes a rank or length from facts about the inputs."""


def evaluate_rule(number_of: NumberOf | None, inputs: Inputs) -> int | None:
    """The rank or length that a rule gives; None if a fact it needs is unknown, or the result is out of range."""
    try:
        found = None if number_of is None else number_of(inputs)
    except (_UnknownError, TypeError, ValueError):  # in a broken model an attribute may have any type and length
        return None
    return found if found is not None and 0 <= found <= LARGEST_RANK else None


def product(inputs: Inputs) -> int:
    """The rank of a MatMul of operands with two or more dimensions; others are not covered."""
    ranks = inputs.rank(0), inputs.rank(1)
    return _known(max(ranks) if min(ranks) >= 2 else None)


def _reduced(inputs: Inputs) -> int:
    return inputs.rank(0) - (0 if inputs.attribute("keepdims", 1) else inputs.count_of_removed())


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

RANKS: Mapping[str, NumberOf] = {
    **dict.fromkeys(
        (
            "Abs", "AveragePool", "BatchNormalization", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Conv",
            "ConvInteger", "ConvTranspose", "Cos", "CumSum", "DepthToSpace", "DequantizeLinear", "Dropout", "Elu",
            "Erf", "Exp", "Floor", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "GroupNormalization", "HardSigmoid",
            "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
            "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "LpPool", "MaxPool",
            "MeanVarianceNormalization", "Mish", "Neg", "Not", "PRelu", "Pad", "QuantizeLinear", "RMSNormalization",
            "Reciprocal", "Relu", "Resize", "ReverseSequence", "Round", "ScatterND", "Selu", "Sigmoid", "Sign", "Sin",
            "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt", "Tan", "Tanh",
            "ThresholdedRelu", "Tile", "TopK", "Transpose", "Trilu", "Upsample",
        ),
        lambda inputs: inputs.rank(0),
    ),
    **dict.fromkeys(
        (
            "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min",
            "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
        ),
        lambda inputs: max(inputs.ranks()),
    ),
    **dict.fromkeys(("MatMul", "MatMulInteger"), product),
    **dict.fromkeys(("ArgMax", "ArgMin"), lambda inputs: inputs.rank(0) - (not inputs.attribute("keepdims", 1))),
    **{f"Reduce{name}": _reduced for name in _REDUCTIONS},
    **dict.fromkeys(("Flatten", "Gemm", "NonZero"), lambda inputs: 2),
    **dict.fromkeys(("Range", "Shape"), lambda inputs: 1),
    "Size": lambda inputs: 0,
    "Compress": lambda inputs: 1 if inputs.attribute("axis", None) is None else inputs.rank(0),
    **dict.fromkeys(("Concat", "GatherElements", "ScatterElements"), lambda inputs: inputs.any_rank()),
    "ConstantOfShape": lambda inputs: inputs.length(0),
    "Expand": lambda inputs: max(inputs.rank(0), inputs.length(1)),
    "Gather": lambda inputs: inputs.rank(0) + inputs.rank(1) - 1,
    "OneHot": lambda inputs: inputs.rank(0) + 1,
    "Reshape": lambda inputs: inputs.length(1),
    "Squeeze": lambda inputs: inputs.rank(0) - inputs.count_of_removed(),
    "Unsqueeze": lambda inputs: inputs.rank(0) + inputs.count_of_axes(),
}  # fmt: skip
"""The rank of the first output, by operator."""


def _of_shape(inputs: Inputs) -> int:
    rank = inputs.rank(0)
    start, end = (int(inputs.attribute(name, default)) for name, default in (("start", 0), ("end", rank)))
    return len(range(rank)[start:end])


def _of_slice(inputs: Inputs) -> int:
    (start,), (end,) = inputs.integers("starts", 1), inputs.integers("ends", 2)
    (step,) = inputs.integers("steps", 4) if inputs.has(4) else [1]
    # With a negative step, Python treats out-of-range bounds differently.
    return len(range(inputs.length(0))[start:end:step]) if step > 0 else _known(None)


LENGTHS: Mapping[str, NumberOf] = {
    **dict.fromkeys(("Cast", "Identity", "Neg"), lambda inputs: inputs.length(0)),
    **dict.fromkeys(
        ("Add", "Div", "Equal", "Max", "Min", "Mul", "Sub", "Where"), lambda inputs: inputs.broadcast_length()
    ),
    "Concat": lambda inputs: sum(inputs.lengths()),
    "Gather": lambda inputs: inputs.length(1),
    "Reshape": lambda inputs: _known(inputs.length(0) if inputs.rank(0) == 1 else None),
    "Shape": _of_shape,
    "Slice": _of_slice,
    "Unsqueeze": lambda inputs: _known(1 if inputs.rank(0) == 0 else None),
}
"""The length of the first output, by operator, for vectors such as shapes and axes."""

ML_RANKS: Mapping[str, NumberOf] = {
    **dict.fromkeys(("LinearRegressor", "SVMRegressor", "TreeEnsemble", "TreeEnsembleRegressor"), lambda inputs: 2),
    "FeatureVectorizer": lambda inputs: 2,
    "OneHotEncoder": lambda inputs: inputs.rank(0) + 1,
}
"""As RANKS for operators of `ai.onnx.ml` whose schemas lack it: one row per example, also for a single one."""


def _like(index: int) -> NumberOf:
    return lambda inputs: inputs.rank(index)


def _fixed(rank: int) -> NumberOf:
    return lambda _: rank


def _broadcast(*indices: int) -> NumberOf:
    return lambda inputs: max(map(inputs.rank, indices))


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
    rank: NumberOf | None = None


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
