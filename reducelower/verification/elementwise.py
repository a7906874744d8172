"""Regions that compute each element by itself, so that no size matters but one: alike at one size, alike at every."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.verification.places import Dims

__all__ = ["any_size", "is_elementwise"]

_ELEMENTWISE = frozenset(
    {
        "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot",
        "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Constant", "Cos", "Cosh", "Div", "Elu",
        "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity",
        "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg",
        "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh",
        "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
    }
)  # fmt: skip


def is_elementwise(nodes: Iterable[NodeProto]) -> bool:
    """Whether every node computes each element from those in the same place, but for broadcasting."""
    return all(node.op_type in _ELEMENTWISE and node.domain in DEFAULT_DOMAINS for node in nodes)


def any_size(dims: Dims | None, constants: Sequence[Array]) -> Dims | None:
    """Sizes of an input of such nodes, with symbols in the place of numbers that mean nothing but that they are equal.

    Args:
        dims: what is declared.
        constants: what the nodes hold; their sizes stay, since they have to fit.
    """
    kept = {0, 1, *(size for value in constants for size in value.shape)}
    return (
        None
        if dims is None
        else tuple(f"size {dim}" if isinstance(dim, int) and dim not in kept else dim for dim in dims)
    )
