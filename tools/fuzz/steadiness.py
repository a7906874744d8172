"""Which operators may follow which in a random graph, so that rounding does not decide the results.

A conversion may change the last digits. So operators that turn a small difference into a large one, such as Floor,
ArgMax or a division, get only values that no rounding has touched.
"""

from __future__ import annotations

__all__ = ["LEFT_OUT", "OFTEN", "is_exact_after", "takes_inexact"]

LEFT_OUT = frozenset({
    # their results are random, or are not numbers
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout",
    "ImageDecoder", "StringNormalizer", "StringSplit", "StringConcat", "RegexFullMatch", "TfIdfVectorizer",
    # their values are no tensors
    "SequenceConstruct", "SequenceEmpty", "SequenceAt", "SequenceErase", "SequenceInsert", "SequenceLength",
    "ConcatFromSequence", "SplitToSequence", "SequenceMap", "Optional", "OptionalGetElement", "OptionalHasElement",
    # their bodies are drawn in other ways
    "If", "Loop", "Scan", "Constant",
})  # fmt: skip
"""Operators that random graphs do not contain."""

OFTEN = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "Softmax", "LogSoftmax", "Squeeze", "Unsqueeze", "Split", "Slice", "Clip", "Pad",
    "Concat", "Reshape", "Transpose", "Add", "Mul",
)  # fmt: skip
"""Operators that are drawn more often, because they change at many opset versions or can be expanded."""

_EXACT = frozenset({
    "Abs", "Add", "And", "ArgMax", "ArgMin", "Ceil", "Clip", "Compress", "Concat", "ConstantOfShape", "DepthToSpace",
    "Equal", "Expand", "EyeLike", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater",
    "GreaterOrEqual", "Hardmax", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool", "Min", "Neg",
    "NonZero", "Not", "OneHot", "Or", "Pad", "Range", "ReduceMax", "ReduceMin", "ReduceSum", "Relu", "Reshape",
    "ReverseSequence", "Round", "Scatter", "ScatterElements", "ScatterND", "Shape", "Sign", "Size", "Slice",
    "SpaceToDepth", "Split", "Squeeze", "Sub", "Sum", "Tile", "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze",
    "Where", "Xor", "CumSum", "GlobalMaxPool",
})  # fmt: skip
"""Operators whose result is exact if their data are multiples of 1/8."""

_TAME = frozenset({
    "Abs", "Add", "Clip", "Concat", "DepthToSpace", "Elu", "Erf", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "LogSoftmax", "MatMul", "Max", "Mean", "Min",
    "Mul", "Neg", "Pad", "ReduceL1",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare",
    "Relu", "Reshape", "Shape", "Sigmoid", "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split",
    "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Trilu", "Unsqueeze", "Gelu", "Mish", "Swish", "Atan", "Sin",
    "Cos", "GlobalAveragePool", "GlobalMaxPool", "AveragePool",
})  # fmt: skip
"""Operators that do not turn a small difference into a large one."""


def is_exact_after(op_type: str) -> bool:
    """Whether an operator's result is exact if its data are."""
    return op_type in _EXACT


def takes_inexact(op_type: str) -> bool:
    """Whether an operator may read values that rounding has touched."""
    return op_type in _TAME
