"""Which values are bounded by what computes them, so that a region need not hold for others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS

__all__ = ["RANDOM", "bounded", "moved"]

RANDOM = frozenset(
    {
        "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    }
)  # fmt: skip
"""What they give is another value each time."""

# What they give is within bounds that their pages state, or is known from shapes, whatever they are given.
_BOUNDING = frozenset(
    {
        "Abs", "And", "ArgMax", "ArgMin", "Clip", "Constant", "Cos", "Equal", "Erf", "Exp", "Greater",
        "GreaterOrEqual", "HardSigmoid", "Hardmax", "IsInf", "IsNaN", "Less", "LessOrEqual", "NonMaxSuppression",
        "NonZero", "Not", "Or", "QuantizeLinear", "Relu", "Shape", "Sigmoid", "Sign", "Sin", "Size", "Softmax",
        "Softplus", "Softsign", "Sqrt", "Tanh", "Xor",
    }
)  # fmt: skip

# What they give is bounded where all that they compute with is.
_PASSING = frozenset(
    {
        "Add", "Cast", "CastLike", "Ceil", "Concat", "ConstantOfShape", "Div", "Expand", "Flatten", "Floor", "Gather",
        "GatherElements", "GatherND", "Identity", "Max", "Min", "Mod", "Mul", "Neg", "OneHot", "Pad", "Range",
        "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round", "Slice", "Split",
        "Squeeze", "Sub", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where",
    }
)  # fmt: skip

# What they give is bounded where the operands from this one on are constants: the first is of an integer type.
_BOUNDED_BY_CONSTANTS = {"DequantizeLinear": 1}

# What they give has the elements that they are given, in the same number.
_MOVING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def moved(nodes: Sequence[NodeProto], inputs: Iterable[str]) -> set[str]:
    """The values whose elements are those of an input, so that what the input takes, they take too.

    Args:
        nodes: in graph order.
        inputs: names of values that may be anything.
    """
    found = set(inputs)
    for node in nodes:
        if node.op_type in _MOVING and node.domain in DEFAULT_DOMAINS and node.input[0] in found:
            found.add(node.output[0])
    return found


def bounded(nodes: Sequence[NodeProto], constants: Iterable[str]) -> set[str]:
    """The values that cannot be everything their element type has, of those that some nodes compute.

    Args:
        nodes: in graph order.
        constants: names of values that are known.
    """
    known = set(constants)
    found = set(known)
    for node in nodes:
        operands = [name for name in node.input if name]
        if node.op_type not in RANDOM and all(name in known for name in operands):
            known.update(node.output)
            found.update(node.output)
        if node.domain not in DEFAULT_DOMAINS:
            continue
        passes = node.op_type in _PASSING and all(name in found for name in operands)
        start = _BOUNDED_BY_CONSTANTS.get(node.op_type)
        scaled = start is not None and all(name in known for name in node.input[start:] if name)
        if node.op_type in _BOUNDING or passes or scaled:
            found.update(name for name in node.output if name)
    return found
