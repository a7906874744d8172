"""The shapes and ranks of outputs, by the shapes and contents of the inputs.

These rules compute with symbolic sizes, while onnx's own inference only passes their names on. The commonest operators
have rules as well, since inference takes several times as long. A rank follows from the ranks of inputs, or from how
many sizes or axes a node gets.

Source: the operators' pages, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeVar

from reducelower.model.schemas import REDUCTIONS
from reducelower.types.call import Call, UnknownError
from reducelower.types.known import Elements, Shape
from reducelower.types.sizes import Size, is_never_negative, over

__all__ = ["BROADCASTING", "RANKS", "SHAPES", "keeps_axes", "rule"]

_Rule = TypeVar("_Rule", bound=Callable[[Call], Any])

_END = 2**31 - 1
"""Bounds from here on mean the end of an axis."""


def _common(*shapes: Shape) -> Shape:
    """The shape to which shapes broadcast."""
    wide = [shape for shape in shapes if shape]
    if not wide or wide.count(wide[0]) == len(wide):
        return wide[0] if wide else ()
    rank = max(map(len, wide))
    result: list[Size | None] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in wide if len(shape) >= -axis} - {1}
        numbers = [size for size in sizes if isinstance(size, int)]
        # A size that broadcasts with a number is that number or 1.
        result.append(numbers[0] if numbers else 1 if not sizes else sizes.pop() if len(sizes) == 1 else None)
    return tuple(result)


def _reshaped(call: Call) -> Shape:
    shape = call.attribute("shape")
    target: Elements | None = tuple(shape) if shape is not None else call.elements_if_known(1)
    if target is None:
        return (None,) * call.length(1)
    keeps_zeros = call.attribute("allowzero", 0)
    takes_data = -1 in target or (0 in target and not keeps_zeros)
    data = call.asked("shape", 0) if takes_data else None
    result: list[Size | None] = []
    open_at = -1
    for axis, size in enumerate(target):
        if size == 0 and not keeps_zeros:
            size = data[axis] if data is not None and axis < len(data) else None
        elif size == -1:
            open_at, size = axis, None
        elif size is not None and not is_never_negative(size):
            size = None  # it may turn out to be -1
        result.append(size)
    others = [size for axis, size in enumerate(result) if axis != open_at]
    if open_at >= 0 and data is not None and None not in others:
        result[open_at] = over(prod(data), prod(size for size in others if size is not None))
    return tuple(result)


def _broadcast(call: Call) -> Shape:
    return _common(*(call.shape(index) for index in range(len(call.inputs))))


def _multiplied(call: Call) -> Shape:
    """The shape of a MatMul of operands with two or more dimensions; others are left to inference."""
    left, right = call.shape(0), call.shape(1)
    if min(len(left), len(right)) < 2:
        raise UnknownError
    return (*_common(left[:-2], right[:-2]), left[-2], right[-1])


def _transposed(call: Call) -> Shape:
    shape = call.shape(0)
    order = call.attribute("perm")
    if order is None:
        return shape[::-1]
    if sorted(order) != list(range(len(shape))):
        raise UnknownError
    return tuple(shape[axis] for axis in order)


def _gathered(call: Call) -> Shape:
    axis = call.axis()
    if call.rank(0) == 1:
        return call.shape(1)  # whatever the length of the data
    shape = call.shape(0)
    return (*shape[:axis], *call.shape(1), *shape[axis + 1 :])


def _unsqueezed(call: Call) -> Shape:
    if call.rank(0) == 0:
        return (1,) * call.count_of_axes()
    sizes, axes = iter(call.shape(0)), call.ints("axes", 1)
    rank = call.rank(0) + len(axes)
    ones = _from_front(axes, rank)
    return tuple(1 if axis in ones else next(sizes) for axis in range(rank))


def _squeezed(call: Call) -> Shape:
    if call.rank(0) == call.count_of_removed():
        return ()
    shape = call.shape(0)
    gone = _from_front(call.ints("axes", 1), len(shape))
    if any(isinstance(shape[axis], int) and shape[axis] != 1 for axis in gone):
        raise UnknownError
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


def _reduced(call: Call) -> Shape:
    shape, axes = call.shape(0), call.ints("axes", 1, ())
    if not axes and call.attribute("noop_with_empty_axes", 0):
        return shape
    gone = _from_front(axes, len(shape)) if axes else frozenset(range(len(shape)))
    kept = call.attribute("keepdims", 1)
    return tuple(1 if axis in gone else size for axis, size in enumerate(shape) if kept or axis not in gone)


def _from_front(axes: Sequence[int], rank: int) -> frozenset[int]:
    """Axes counted from the front, each once."""
    positive = frozenset(axis % rank for axis in axes if -rank <= axis < rank)
    if len(positive) < len(axes):
        raise UnknownError
    return positive


def _concatenated(call: Call) -> Shape:
    shapes = [call.shape(index) for index in range(len(call.inputs))]
    at = call.axis()
    result: list[Size | None] = []
    for axis in range(len(shapes[0])):
        sizes = [shape[axis] for shape in shapes]
        if axis == at:
            result.append(sum(sizes))
        else:
            result.append(next((size for size in sizes if isinstance(size, int)), sizes[0]))
    return tuple(result)


def _sliced(call: Call) -> Shape:
    result: list[Size | None] = list(call.shape(0))
    for axis, start, end, step in call.bounds():
        size = result[axis]
        is_to_end = size is not None and (end == size or (isinstance(end, int) and end >= _END))
        if start == 0 and step == 1 and is_to_end:
            continue
        if isinstance(size, int) and isinstance(start, int) and isinstance(end, int) and step >= 1:
            result[axis] = len(range(size)[start:end:step])
        else:
            result[axis] = None
    return tuple(result)


def _ranged(call: Call) -> Shape:
    (start,), (limit,), (step,) = (call.elements(index) for index in range(3))
    if start != 0 or step != 1 or limit is None or not is_never_negative(limit):
        raise UnknownError
    return (limit,)


def _attended(call: Call) -> Shape:
    query, value = call.shape(0), call.shape(2)
    if call.rank(0) == 4:
        return (*query[:3], value[3])
    width, heads = value[2], call.attribute("kv_num_heads", 0)
    return (*query[:2], None if width is None or not heads else over(width * call.attribute("q_num_heads", 0), heads))


SAME_SHAPE = (
    "Abs", "BatchNormalization", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos", "CumSum", "Dropout", "Elu", "Erf",
    "Exp", "Floor", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
    "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax",
    "LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not", "PRelu", "QuantizeLinear", "RMSNormalization",
    "Reciprocal", "Relu", "ReverseSequence", "Round", "ScatterND", "Selu", "Sigmoid", "Sign", "Sin", "Softmax",
    "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
"""Operators whose first output has the shape of the first input."""

BROADCASTING = (
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod",
    "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip
"""Operators whose output has the shape to which the inputs broadcast."""

_ALIKE = frozenset({"Split", "TopK"})
"""Operators all of whose outputs have the same rank, and the same shape if there is a rule for it."""

SHAPES: Mapping[str, Callable[[Call], Shape]] = {
    **dict.fromkeys(SAME_SHAPE, lambda call: call.shape(0)),
    **dict.fromkeys(BROADCASTING, _broadcast),
    "Attention": _attended,
    "Concat": _concatenated,
    "ConstantOfShape": lambda call: call.elements(0),
    "Expand": lambda call: _common(call.shape(0), call.elements(1)),
    "Gather": _gathered,
    "MatMul": _multiplied,
    "Range": _ranged,
    **dict.fromkeys(REDUCTIONS, _reduced),
    "Reshape": _reshaped,
    "Shape": lambda call: (len(range(call.rank(0))[call.attribute("start", 0) : call.attribute("end")]),),
    "Slice": _sliced,
    "Squeeze": _squeezed,
    "Transpose": _transposed,
    "Unsqueeze": _unsqueezed,
}
"""The shape of the outputs, by operator; onnx's inference covers the others."""


def _matrix_rank(call: Call) -> int:
    """The rank of a MatMul of operands with two or more dimensions; others are not covered."""
    ranks = call.rank(0), call.rank(1)
    if min(ranks) < 2:
        raise UnknownError
    return max(ranks)


RANKS: Mapping[str, Callable[[Call], int]] = {
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
    **dict.fromkeys(("MatMul", "MatMulInteger"), _matrix_rank),
    **dict.fromkeys(("ArgMax", "ArgMin"), lambda call: call.rank(0) - (not call.attribute("keepdims", 1))),
    **dict.fromkeys(
        REDUCTIONS, lambda call: call.rank(0) - (0 if call.attribute("keepdims", 1) else call.count_of_removed())
    ),
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


_BY_CONSTANTS = ("Pad", "Resize", "Upsample")
_KEEPING_AXES = frozenset({
    "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace", "LpPool", "MaxPool", "QLinearConv",
    "SpaceToDepth", *_BY_CONSTANTS,
})  # fmt: skip


def keeps_axes(call: Call) -> bool:
    """Whether each size that is not a number depends on that of the same axis of the first input, and on nothing else.

    So it is a number only if that one is. This is not so of a Slice, which may take the first two of any axis.
    """
    if call.domain or call.op_type not in _KEEPING_AXES:
        return False
    others = range(1, len(call.inputs)) if call.op_type in _BY_CONSTANTS else ()
    return all(call.asked("constant", at) is not None for at in others if call.has(at))


def rule(rules: Mapping[str, _Rule], call: Call, place: int) -> _Rule | None:
    """The rule for an output in one of these tables; None if it has none."""
    return rules.get(call.op_type) if not call.domain and (place == 0 or call.op_type in _ALIKE) else None
