"""How operators pass sizes on: the shapes that they yield, and the contents of small integer vectors.

What onnx's own inference does not tell stands here, as it has names for sizes but no arithmetic with them. So do the
shapes of the commonest operators, since asking it takes several times as long.

Source: the operators' pages, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

from onnx import NodeProto, TensorProto

from reducelower.model.attributes import value_of
from reducelower.model.constants import tensor_of
from reducelower.model.numbers import value_of_tensor
from reducelower.types.known import LONGEST, Elements, Known, Shape
from reducelower.types.sizes import ONE, Size, product_of, quotient

__all__ = ["BROADCASTING", "ELEMENTS", "SAME_SHAPE", "SHAPES", "Call", "UnknownError", "broadcast"]

_END = 2**31 - 1
"""Bounds from here on mean the end of an axis."""


class UnknownError(Exception):
    """Something that a rule needs is not known."""


@dataclass(slots=True)
class Call:
    """A node with what is known about its inputs, each asked when a rule needs it. Rules ask as if all were known.

    Attributes:
        node: the node.
        ask: answers ``shape``, ``rank`` or ``elements`` of an input by name; None if unknown.
        atom: gives the atom for a size that is computed in a way that polynomials cannot express.
    """

    node: NodeProto
    ask: Callable[[Literal["shape", "rank", "elements"], str], Any]
    atom: Callable[[Hashable], Size]

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return value_of(self.node, name, default)

    def has(self, index: int) -> bool:
        """Whether the node has an input."""
        return index < len(self.node.input) and self.node.input[index] != ""

    def _asked(self, question: Literal["shape", "rank", "elements"], index: int) -> Any:
        found = self.ask(question, self.node.input[index]) if self.has(index) else None
        if found is None:
            raise UnknownError
        return found

    def rank(self, index: int) -> int:
        """The rank of an input."""
        return self._asked("rank", index)  # type: ignore[no-any-return]

    def shape(self, index: int) -> tuple[Size, ...]:
        """The shape of an input."""
        return self._asked("shape", index)  # type: ignore[no-any-return]

    def elements(self, index: int) -> Elements:
        """The contents of an input."""
        return self._asked("elements", index)  # type: ignore[no-any-return]

    def shape_if_known(self, index: int) -> tuple[Size, ...] | None:
        """The shape of an input; None if it is unknown."""
        return self.ask("shape", self.node.input[index]) if self.has(index) else None

    def elements_if_known(self, index: int) -> Elements | None:
        """The contents of an input; None if they are unknown."""
        return self.ask("elements", self.node.input[index]) if self.has(index) else None

    def numbers(self, index: int) -> Sequence[int]:
        """The contents of an input, all of them numbers."""
        found = Known(elements=self.elements(index)).numbers
        if found is None:
            raise UnknownError
        return found

    def ints(self, name: str, index: int, default: Sequence[int] | None = None) -> Sequence[int]:
        """The integers of an attribute, or of an input if there is no such attribute."""
        found = self.attribute(name)
        if found is None and self.has(index):
            found = self.numbers(index)
        elif found is None:
            found = default
        if found is None:
            raise UnknownError
        return [int(each) for each in found]

    def ranks(self) -> list[int]:
        """The ranks of all inputs."""
        return [self.rank(index) for index in range(len(self.node.input))]

    def any_rank(self) -> int:
        """The rank that all inputs share, from any input where it is known."""
        for name in self.node.input:
            rank = self.ask("rank", name) if name else None
            if rank is not None:
                return int(rank)
        raise UnknownError

    def length(self, index: int) -> int:
        """The length of an input that is a vector."""
        (length,) = self.shape(index)
        if length.number is None:
            raise UnknownError
        return length.number

    def count_of_axes(self) -> int:
        """The number of axes in the node's attribute or second input."""
        axes = self.attribute("axes")
        return self.length(1) if axes is None else len(axes)

    def count_of_removed(self) -> int:
        """The number of axes that are removed; no axes at all may mean all of them."""
        count = self.count_of_axes()
        if not count:
            raise UnknownError
        return count

    def axis(self, default: int = 0) -> int:
        """The axis that the attribute names, from the front."""
        rank = self.rank(0)
        axis = int(self.attribute("axis", default))
        if not -rank <= axis < rank:
            raise UnknownError
        return axis % rank


def broadcast(*shapes: Shape) -> Shape:
    """The shape to which shapes broadcast."""
    rank = max(map(len, shapes))
    found: list[Size | None] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {ONE}
        numbers = [size for size in sizes if size is not None and size.number is not None]
        # What stands beside another number is that number or 1.
        found.append(numbers[0] if numbers else ONE if not sizes else sizes.pop() if len(sizes) == 1 else None)
    return tuple(found)


def _reshaped(call: Call) -> Shape:
    given = call.attribute("shape")
    target = tuple(map(Size.of, given)) if given is not None else call.elements_if_known(1)
    if target is None:
        return (None,) * call.length(1)
    keeps_zeros = call.attribute("allowzero", 0)
    numbers = [None if size is None else size.number for size in target]
    takes_data = -1 in numbers or (0 in numbers and not keeps_zeros)
    data = call.shape_if_known(0) if takes_data else None
    found: list[Size | None] = []
    open_at = -1
    for axis, (size, number) in enumerate(zip(target, numbers, strict=True)):
        if number == 0 and not keeps_zeros:
            size = data[axis] if data is not None and axis < len(data) else None
        elif number == -1:
            open_at, size = axis, None
        elif size is not None and not size.is_never_negative:
            size = None  # it may turn out to be -1
        found.append(size)
    others = [size for axis, size in enumerate(found) if axis != open_at]
    if open_at >= 0 and data is not None and None not in others:
        found[open_at] = product_of(data).over(product_of(size for size in others if size is not None))
    return tuple(found)


def _broadcast(call: Call) -> Shape:
    return broadcast(*(call.shape(index) for index in range(len(call.node.input))))


def _multiplied(call: Call) -> Shape:
    """The shape of a MatMul of operands with two or more dimensions; others are left to inference."""
    left, right = call.shape(0), call.shape(1)
    if min(len(left), len(right)) < 2:
        raise UnknownError
    return (*broadcast(left[:-2], right[:-2]), left[-2], right[-1])


def _transposed(call: Call) -> Shape:
    shape = call.shape(0)
    order = call.attribute("perm")
    if order is None:
        return shape[::-1]
    if sorted(order) != list(range(len(shape))):
        raise UnknownError
    return tuple(shape[axis] for axis in order)


def _gathered(call: Call) -> Shape:
    shape, axis = call.shape(0), call.axis()
    return (*shape[:axis], *call.shape(1), *shape[axis + 1 :])


def _flattened(call: Call) -> Shape:
    sizes, axis = call.shape(0), int(call.attribute("axis", 1))
    return product_of(sizes[:axis]), product_of(sizes[axis:])


def _concatenated(call: Call) -> Shape:
    shapes = [call.shape(index) for index in range(len(call.node.input))]
    at = call.axis()
    found: list[Size | None] = []
    for axis in range(len(shapes[0])):
        sizes = [shape[axis] for shape in shapes]
        if axis == at:
            total = sizes[0]
            for size in sizes[1:]:
                total = total + size
            found.append(total)
        else:
            found.append(next((size for size in sizes if size.number is not None), sizes[0]))
    return tuple(found)


def _bounds(call: Call) -> list[tuple[int, Size | None, Size | None, int]]:
    """Axis, start, end and step of a Slice."""
    starts, ends = (
        call.elements(index) if call.has(index) else tuple(map(Size.of, call.ints(name, index)))
        for name, index in (("starts", 1), ("ends", 2))
    )
    axes = call.ints("axes", 3, range(len(starts)))
    steps = call.ints("steps", 4, [1] * len(starts))
    return list(zip(axes, starts, ends, steps, strict=True))


def _sliced(call: Call) -> Shape:
    found: list[Size | None] = list(call.shape(0))
    for axis, start, end, step in _bounds(call):
        size = found[axis]
        first, last = (None if bound is None else bound.number for bound in (start, end))
        is_whole = (
            first == 0 and step == 1 and size is not None and (end == size or (last is not None and last >= _END))
        )
        if is_whole:
            continue
        if size is None or size.number is None or first is None or last is None or step < 1:
            found[axis] = None
        else:
            found[axis] = Size.of(len(range(size.number)[first:last:step]))
    return tuple(found)


def _sliced_elements(call: Call) -> Elements:
    elements = call.elements(0)
    if len(call.shape(0)) != 1:
        raise UnknownError
    for _, start, end, step in _bounds(call):
        if start is None or end is None or start.number is None or end.number is None or step < 1:
            raise UnknownError
        elements = elements[start.number : end.number : step]
    return elements


def _gathered_elements(call: Call) -> Elements:
    elements, places = call.elements(0), call.numbers(1)
    if len(call.shape(0)) != 1 or not all(-len(elements) <= place < len(elements) for place in places):
        raise UnknownError
    return tuple(elements[place] for place in places)


def _concatenated_elements(call: Call) -> Elements:
    found: list[Size | None] = []
    for index in range(len(call.node.input)):
        (length,) = call.shape(index)
        if length.number is None or length.number > LONGEST:
            raise UnknownError
        elements = call.elements_if_known(index)
        found += [None] * length.number if elements is None else elements
    return tuple(found)


def _part(call: Call) -> slice:
    """Which sizes Shape yields."""
    return slice(call.attribute("start", 0), call.attribute("end"))


def _counted(call: Call) -> Elements:
    return call.shape(0)[_part(call)]


def _window(call: Call) -> Shape:
    """Convolution and pooling: the number of windows that fit along each axis."""
    data, sizes = call.shape(0), call.attribute("kernel_shape")
    is_convolution = call.node.op_type.startswith("Conv")
    if sizes is None:
        sizes = [size.number for size in call.shape(1)[2:]]
    count = len(sizes)
    if None in sizes or len(data) != count + 2 or call.attribute("ceil_mode", 0):
        raise UnknownError
    pads = call.attribute("pads") or [0] * 2 * count
    if call.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnknownError
    strides, dilations = (call.attribute(name) or [1] * count for name in ("strides", "dilations"))
    found = [data[0], call.shape(1)[0] if is_convolution else data[1]]
    for axis, size in enumerate(sizes):
        spare = data[axis + 2] + Size.of(pads[axis] + pads[axis + count] - dilations[axis] * (size - 1) - 1)
        steps = quotient(spare, Size.of(strides[axis]), call.atom)
        if steps is None:
            raise UnknownError
        found.append(steps + ONE)
    return tuple(found)


def _padded(call: Call) -> Shape:
    shape, pads = call.shape(0), call.ints("pads", 1)
    if call.has(3) or len(pads) != 2 * len(shape):
        raise UnknownError
    return tuple(size + Size.of(pads[axis] + pads[axis + len(shape)]) for axis, size in enumerate(shape))


def _resized(call: Call) -> Shape:
    if (
        not call.has(3)
        or call.attribute("axes") is not None
        or call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch"
    ):
        raise UnknownError
    return call.elements(3)


def _attended(call: Call) -> Shape:
    query, value = call.shape(0), call.shape(2)
    if len(query) == 4:
        return (*query[:3], value[3])
    heads, of_values = (Size.of(int(call.attribute(name))) for name in ("q_num_heads", "kv_num_heads"))
    width = value[2].over(of_values)
    return (*query[:2], None if width is None else width * heads)


def _split_in_equal_parts(call: Call) -> Shape:
    """Only where every output is of one size: as many parts as outputs, which divide the axis."""
    shape, axis = call.shape(0), call.axis()
    count = int(call.attribute("num_outputs", len(call.node.output)))
    part = shape[axis].over(Size.of(count))
    if part is None or call.has(1) or call.attribute("split") is not None or count != len(call.node.output):
        raise UnknownError
    return (*shape[:axis], part, *shape[axis + 1 :])


def _most(call: Call) -> Shape:
    shape, axis = call.shape(0), call.axis(-1)
    return (*shape[:axis], *call.elements(1), *shape[axis + 1 :])


def _ranged(call: Call) -> Shape:
    (start,), (limit,), (step,) = (call.elements(index) for index in range(3))
    if start != Size.of(0) or step != ONE or limit is None or not limit.is_never_negative:
        raise UnknownError
    return (limit,)


def _tiled(call: Call) -> Shape:
    return tuple(
        None if count is None else size * count for size, count in zip(call.shape(0), call.elements(1), strict=True)
    )


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
"""Operators whose inputs are broadcast to one shape, which is that of the output."""

SHAPES: Mapping[str, Callable[[Call], Shape]] = {
    **dict.fromkeys(SAME_SHAPE, lambda call: call.shape(0)),
    **dict.fromkeys(BROADCASTING, _broadcast),
    "Attention": _attended,
    **dict.fromkeys(("AveragePool", "Conv", "LpPool", "MaxPool"), _window),
    "Concat": _concatenated,
    "ConstantOfShape": lambda call: call.elements(0),
    "Expand": lambda call: broadcast(call.shape(0), call.elements(1)),
    "Flatten": _flattened,
    "Gather": _gathered,
    "MatMul": _multiplied,
    "Pad": _padded,
    "Range": _ranged,
    "Reshape": _reshaped,
    "Resize": _resized,
    "Shape": lambda call: (Size.of(len(range(call.rank(0))[_part(call)])),),
    "Size": lambda call: (),
    "Slice": _sliced,
    "Split": _split_in_equal_parts,
    "Tile": _tiled,
    "TopK": _most,
    "Transpose": _transposed,
}
"""The shape of the outputs, by operator; onnx's inference tells the others."""


# Contents

_Number: TypeAlias = "Callable[[Call, Size, Size], Size | None]"


def _remainder(call: Call, left: Size, right: Size) -> Size | None:
    if left.number is not None and right.number is not None and right.number > 0 <= left.number:
        return Size.of(left.number % right.number)
    if left.over(right) is not None:
        return Size.of(0)
    return call.atom(("Mod", left, right)) if left.is_never_negative and right.is_never_negative else None


def _extreme(name: str, pick: Callable[[int, int], int]) -> _Number:
    def of(call: Call, left: Size, right: Size) -> Size | None:
        if left == right:
            return left
        if left.number is not None and right.number is not None:
            return Size.of(pick(left.number, right.number))
        return call.atom((name, left, right)) if left.is_never_negative and right.is_never_negative else None

    return of


def _equal(call: Call, left: Size, right: Size) -> Size | None:
    if left == right:
        return ONE
    difference = left - right
    differs = difference.is_positive() or (right - left).is_positive()
    return Size.of(0) if difference.number is not None or differs else None


def _pairwise(number: _Number) -> Callable[[Call], Elements]:
    def elements(call: Call) -> Elements:
        if len(call.node.input) != 2:
            raise UnknownError
        left, right = _alike(call.elements(0), call.elements(1))
        return tuple(
            None if one is None or other is None else number(call, one, other)
            for one, other in zip(left, right, strict=True)
        )

    return elements


def _alike(*vectors: Elements) -> list[Elements]:
    """Vectors repeated to one length, as far as they broadcast so."""
    length = max(map(len, vectors))
    if any(len(vector) not in (1, length) for vector in vectors):
        raise UnknownError
    return [vector * length if len(vector) == 1 else vector for vector in vectors]


def _chosen(call: Call) -> Elements:
    chosen, then, otherwise = _alike(*(call.elements(index) for index in range(3)))
    numbers = [None if each is None else each.number for each in chosen]
    return tuple(
        (None if one != other else one) if number is None else one if number else other
        for number, one, other in zip(numbers, then, otherwise, strict=True)
    )


def _cast(call: Call) -> Elements:
    if call.attribute("to") not in (TensorProto.INT32, TensorProto.INT64):
        raise UnknownError
    return call.elements(0)


def _filled(call: Call) -> Elements:
    value = call.attribute("value")
    if value is not None and value.data_type not in (TensorProto.INT32, TensorProto.INT64):
        raise UnknownError
    length = product_of(size for size in call.elements(0) if size is not None).number
    if None in call.elements(0) or length is None or length > LONGEST or value is None:
        raise UnknownError
    number = value_of_tensor(value)
    if number is None or not number.size:
        raise UnknownError
    return (Size.of(int(number.reshape(-1)[0])),) * length


def _expanded(call: Call) -> Elements:
    (only,) = call.elements(0) if len(call.elements(0)) == 1 else (None,)
    (length,) = call.elements(1) if len(call.elements(1)) == 1 else (None,)
    if only is None or length is None or length.number is None or not 0 <= length.number <= LONGEST:
        raise UnknownError
    return (only,) * length.number


def _total(call: Call) -> Elements:
    elements = [each for each in call.elements(0) if each is not None]
    if len(elements) < len(call.elements(0)) or len(call.shape(0)) != 1:
        raise UnknownError
    if call.node.op_type == "ReduceProd":
        return (product_of(elements),)
    return (sum(elements, Size.of(0)),)


def _first(call: Call) -> Elements:
    return call.elements(0)


def _stated(call: Call) -> Elements:
    tensor = tensor_of(call.node)
    is_counting = tensor is not None and tensor.data_type in (TensorProto.INT32, TensorProto.INT64)
    value = value_of_tensor(tensor) if tensor is not None and is_counting and prod(tensor.dims) <= LONGEST else None
    if value is None:
        raise UnknownError
    return tuple(map(Size.of, value.reshape(-1).tolist()))


ELEMENTS: Mapping[str, Callable[[Call], Elements]] = {
    **dict.fromkeys(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"), _first),
    **dict.fromkeys(("ReduceProd", "ReduceSum"), _total),
    "Add": _pairwise(lambda call, left, right: left + right),
    "Cast": _cast,
    "Concat": _concatenated_elements,
    "Constant": _stated,
    "ConstantOfShape": _filled,
    "Div": _pairwise(lambda call, left, right: quotient(left, right, call.atom)),
    "Equal": _pairwise(_equal),
    "Expand": _expanded,
    "Gather": _gathered_elements,
    "Max": _pairwise(_extreme("Max", max)),
    "Min": _pairwise(_extreme("Min", min)),
    "Mod": _pairwise(_remainder),
    "Mul": _pairwise(lambda call, left, right: left * right),
    "Neg": lambda call: tuple(None if each is None else Size.of(0) - each for each in call.elements(0)),
    "Shape": _counted,
    "Size": lambda call: (product_of(call.shape(0)),),
    "Slice": _sliced_elements,
    "Sub": _pairwise(lambda call, left, right: left - right),
    "Where": _chosen,
}
"""The contents of the first output where it is a small vector of integers, by operator."""
