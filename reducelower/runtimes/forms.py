"""Equivalent ways to write other operators than reductions, for runtimes that get one of them wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from onnx import AttributeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.ops.shaping import without_allowzero
from reducelower.model.schemas import default_attributes, schema
from reducelower.runtimes.features import BROADCASTING
from reducelower.runtimes.recurrences import RECURRENCES
from reducelower.runtimes.remedies import Remedy, Written, once_more
from reducelower.runtimes.windows import WINDOWS

__all__ = ["FORMS"]

_OPSET = 13
"""Opset version that the nodes are written for."""

_SHAPE_IS_INPUT = 5
"""The oldest opset version at which the shape of Reshape is an input."""

_MIRRORED: Mapping[str, str] = {
    "Greater": "Less",
    "GreaterOrEqual": "LessOrEqual",
    "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
}
"""The same comparison of swapped operands; for NaN both are false."""

_MOST_ONES = 4096
"""Elements that a constant of ones may have."""

_MOST_SPREAD = 1 << 20
"""Most elements of a constant operand that is repeated for each matrix of a stack."""

_MOST_SLICES = 16
"""Indices for each of which a node is written."""

_COUNTABLE = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64)


def _swap_operands(op: Writer) -> Written:
    return op.yields(_MIRRORED[op.node.op_type], op.input(1), op.input(0)), _OPSET


def _set_factor_apart(op: Writer) -> Written:
    """Keep what computes a factor apart from the product, which a runtime fuses otherwise."""
    is_computed = [op.scope.constant(name) is None for name in op.node.input]
    factors = [
        op.add("Identity", name, tail="apart") if computed else name
        for name, computed in zip(op.node.input, is_computed, strict=True)
    ]
    return once_more(op, *factors)


def _swap_branches(op: Writer) -> Written:
    """Pick by the opposite, so that the last branch comes first."""
    condition, one, other = op.node.input
    return op.yields("Where", op.add("Not", condition, tail="opposite"), other, one), _OPSET


def _expand_operands(op: Writer) -> Written | None:
    """Bring every operand to the shape of the result beforehand."""
    sizes = op.scope.shape(op.node.output[0])
    if sizes is None or None in sizes or all(op.scope.shape(name) == sizes for name in op.node.input):
        return None
    shape = op.integers(sizes, "shape")
    operands = [
        name if op.scope.shape(name) == sizes else op.add("Expand", name, shape, tail=f"operand_{at}")
        for at, name in enumerate(op.node.input)
    ]
    return op.yields(op.node.op_type, *operands), _OPSET


def _reshape_vectors(op: Writer) -> Written | None:
    """Give vectors the rank of the result beforehand; they run along its last axis."""
    rank, scope = op.scope.rank(op.node.output[0]), op.scope
    if rank is None or rank < 2 or scope.target_opset < _SHAPE_IS_INPUT:
        return None
    operands = [
        op.add("Reshape", name, op.integers([*[1] * (rank - 1), -1], "shape"), tail=f"operand_{at}")
        if scope.rank(name) == 1 and scope.constant(name) is None
        else name
        for at, name in enumerate(op.node.input)
    ]
    return once_more(op, *operands) if op.nodes else None


def _reshape(op: Writer) -> Written | None:
    """State the shape of the result, of which one size may be known at run time only."""
    sizes = op.scope.shape(op.node.output[0])
    if sizes is None or 0 in sizes or sizes.count(None) > 1:
        return None
    shape = op.integers([-1 if size is None else size for size in sizes], "shape")
    op.scope.release(*op.node.input[1:])
    return op.yields("Reshape", op.input(0), shape), _OPSET


def _reshape_flat(op: Writer) -> Written | None:
    """State the shape of a Flatten whose sizes before the axis, or behind it, are known as numbers."""
    sizes = op.scope.shape(op.input(0))
    if sizes is None:
        return None
    axis = op.attribute("axis", 1)
    axis += len(sizes) if axis < 0 else 0
    before, behind = _count_of(sizes[:axis]), _count_of(sizes[axis:])
    if before == behind == -1 or 0 in (before, behind):
        return None
    return op.yields("Reshape", op.input(0), op.integers([before, behind], "shape")), _OPSET


def _count_of(sizes: Sequence[int | None]) -> int:
    """The product of sizes; -1 if one of them is not known."""
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else -1


def _reshape_no_zeros(op: Writer) -> Written | None:
    """Leave allowzero out if a zero in the shape means the same, or there is none."""
    plain = without_allowzero(op) if op.attribute("allowzero", 0) else None
    return None if plain is None else (plain, _OPSET)


def _times_ones(op: Writer) -> Written | None:
    """Multiply by ones of the shape, which is exact."""
    sizes, element_type = op.constant_input(1), op.element_type(0)
    if sizes is None or element_type not in _COUNTABLE or not 0 < prod(map(int, sizes)) <= _MOST_ONES:
        return None
    ones = op.constant(np.ones(tuple(map(int, sizes))), element_type, "ones")
    op.scope.release(*op.node.input[1:])
    return op.yields("Mul", op.input(0), ones), _OPSET


def _negate_twice(op: Writer) -> Written | None:
    """A copy that no optimizer removes, unlike a product with one."""
    if op.element_type(0) not in _COUNTABLE:
        return None
    return op.yields("Neg", op.add("Neg", op.input(0), tail="opposite")), _OPSET


def _slice_each(op: Writer) -> Written | None:
    """Slice out what each index names, and concatenate the slices."""
    indices = op.constant_input(1)
    if indices is None or indices.ndim != 1 or not 0 < indices.size <= _MOST_SLICES:
        return None
    axis = op.attribute("axis", 0)
    parts = [
        op.add(
            "Slice",
            op.input(0),
            *(op.number(place) for place in (at, TO_THE_END if at == -1 else at + 1, axis)),
            tail=f"part_{number}",
        )
        for number, at in enumerate(map(int, indices))
    ]
    op.scope.release(*op.node.input[1:])
    return op.yields("Concat", *parts, axis=axis), _OPSET


def _set_apart(op: Writer) -> Written:
    """Put an Identity before it, so that a runtime does not fuse it with the node before."""
    return once_more(op, op.add("Identity", op.input(0)), *op.node.input[1:])


def _set_inputs_apart(op: Writer) -> Written | None:
    """Put an Identity after each model input that it reads, so that these are computed values."""
    operands = [
        op.add("Identity", name, tail=f"operand_{at}") if op.scope.written_as(name) == "fed" else name
        for at, name in enumerate(op.node.input)
    ]
    return once_more(op, *operands) if op.nodes else None


def _compare_to_zero(op: Writer) -> Written | None:
    """A cast to bool is a comparison with zero."""
    element_type = op.element_type(0)
    if op.attribute("to") != TensorProto.BOOL or element_type not in _COUNTABLE:
        return None
    return op.yields("Not", op.add("Equal", op.input(0), op.constant(0, element_type, "zero"))), _OPSET


def _compare_as_integers(op: Writer) -> Written | None:
    """Compare truth values as integers of 32 bits."""
    if op.element_type(0) != TensorProto.BOOL:
        return None
    operands = [op.add("Cast", op.input(at), tail=f"integers_{at}", to=TensorProto.INT32) for at in range(2)]
    return op.yields("Equal", *operands), _OPSET


def _without_zero_point(op: Writer) -> Written | None:
    """Leave out a zero point that is zero."""
    zero = op.constant_input(2)
    if zero is None or np.any(zero):
        return None
    op.scope.release(op.input(2))
    return once_more(op, *op.node.input[:2])


def _add_up_exponentials(op: Writer) -> Written | None:
    """Subtract the logarithm of a sum of exponentials; behind an Identity it is not fused to a LogSoftmax again."""
    if op.scope.target_opset < _OPSET:
        return None  # it goes over several axes
    axis = op.attribute("axis", -1)
    data = op.input(0)
    largest = op.add("ReduceMax", data, tail="largest", axes=[axis], keepdims=1)
    shifted = op.add("Sub", data, largest, tail="shifted")
    total = op.add("ReduceSum", op.add("Exp", shifted, tail="exponentials"), op.integers([axis], "axes"), tail="total")
    apart = op.add("Identity", op.add("Log", total, tail="logarithm"), tail="apart")
    return op.yields("Sub", shifted, apart), _OPSET


def _recast_sizes(op: Writer) -> Written | None:
    """Take sizes for numbers, by way of doubles, which hold every size that a tensor may have."""
    if op.element_type(0) not in (TensorProto.INT32, TensorProto.INT64):
        return None
    inputs = []
    for at, name in enumerate(op.node.input):
        elements = op.scope.known(name).elements
        if elements is not None and None not in elements and op.scope.constant(name) is None:
            number = op.add("Cast", name, tail=f"number_{at}", to=TensorProto.DOUBLE)
            name = op.add("Cast", number, tail=f"size_{at}", to=op.element_type(0))
        inputs.append(name)
    return once_more(op, *inputs) if op.nodes else None


def _in_integers(op: Writer) -> Written | None:
    """Move truth values as integers of 32 bits."""
    if op.element_type(0) != TensorProto.BOOL:
        return None
    data = op.add("Cast", op.input(0), tail="integers", to=TensorProto.INT32)
    moved = op.add(op.node.op_type, data, *op.node.input[1:], copied=op.node.attribute, tail="moved")
    return op.yields("Cast", moved, to=TensorProto.BOOL), op.scope.target_opset


def _leave_defaults_out(op: Writer) -> Written | None:
    """Omit attributes that have their default value."""
    found = schema(op.node.op_type, op.scope.target_opset)
    defaults = {_bytes(each.default_value) for each in found.attributes.values()} if found is not None else set()
    kept = [each for each in op.node.attribute if _bytes(each) not in defaults]
    if len(kept) == len(op.node.attribute):
        return None
    return once_more(op, *op.node.input, copied=kept)


def _multiply_and_add(op: Writer) -> Written | None:
    """Gemm as MatMul and Add."""
    element_type = op.element_type(0)
    factors = {name: op.attribute(name, 1.0) for name in ("alpha", "beta")}
    if element_type not in _COUNTABLE:
        return None

    def turned(name: str, flag: str) -> str:
        return op.add("Transpose", name, tail=flag, perm=[1, 0]) if op.attribute(flag, 0) else name

    def scaled(name: str, by: str) -> str:
        factor = factors[by]
        return name if factor == 1 else op.add("Mul", name, op.constant(factor, element_type, by), tail=f"by_{by}")

    operands = turned(op.input(0), "transA"), turned(op.input(1), "transB")
    product = scaled(op.add("MatMul", *operands, tail="product"), "alpha")
    if len(op.node.input) < 3 or not op.input(2):
        return op.yields_value(product), _OPSET
    return op.yields("Add", product, scaled(op.input(2), "beta")), _OPSET


def _spread_operands(op: Writer) -> Written | None:
    """Broadcast the stacks of both operands of a MatMul beforehand."""
    shapes = [op.scope.shape(name) for name in (*op.node.input, op.node.output[0])]
    known = [[size for size in shape if size is not None] for shape in shapes if shape is not None and len(shape) > 1]
    if len(known) < len(shapes) or any(
        len(sizes) != len(shape or ()) for sizes, shape in zip(known, shapes, strict=True)
    ):
        return None
    stack = known.pop()[:-2]
    operands = []
    for name, sizes in zip(op.node.input, known, strict=True):
        wanted, value = [*stack, *sizes[-2:]], op.scope.constant(name)
        if sizes == wanted:
            operands.append(name)
        elif value is not None and prod(wanted) <= _MOST_SPREAD:
            operands.append(op.scope.add_constant(np.broadcast_to(value, wanted).copy(), "spread"))
            op.scope.release(name)
        else:
            operands.append(op.add("Expand", name, op.integers(wanted, "shape"), tail="spread"))
    return None if operands == list(op.node.input) else (op.yields(op.node.op_type, *operands), _OPSET)


def _count(op: Writer) -> Written:
    """The number of elements as the product of the sizes."""
    return op.yields("ReduceProd", op.add("Shape", op.input(0)), keepdims=0), _OPSET


def _write_defaults(op: Writer) -> Written | None:
    """State every attribute that has a default."""
    stated = {each.name for each in op.node.attribute}
    missing = {
        name: value
        for name, value in default_attributes(op.node.op_type, op.scope.target_opset).items()
        if name not in stated
    }
    return once_more(op, *op.node.input, **missing) if missing else None


def _bytes(attribute: AttributeProto) -> bytes:
    return attribute.SerializeToString(deterministic=True)


_VECTORS_RESHAPED = Remedy("its vectors reshaped to the rank of the result", _reshape_vectors, ("vector",))
_SWAPPED = Remedy("the other comparison of the operands swapped", _swap_operands)
_IDENTITY_BEFORE = Remedy("Identity before it", _set_apart, ("after",))
_DEFAULTS_LEFT_OUT = Remedy("defaults left out", _leave_defaults_out, ("attributes",))
_IN_INTEGERS = Remedy("bools moved as integers", _in_integers, ("element_types",))
_RESHAPED = Remedy("Reshape in place of it", _reshape)

FORMS: Mapping[str, Sequence[Remedy]] = {
    **WINDOWS,
    **RECURRENCES,
    **dict.fromkeys(BROADCASTING, (_VECTORS_RESHAPED,)),
    **dict.fromkeys(_MIRRORED, (_SWAPPED, _VECTORS_RESHAPED)),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), (_RESHAPED,)),
    **dict.fromkeys(("GatherElements", "GatherND"), (_DEFAULTS_LEFT_OUT, _IN_INTEGERS)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (_DEFAULTS_LEFT_OUT,)),
    "Cast": (_IDENTITY_BEFORE, Remedy("comparison with zero in place of it", _compare_to_zero)),
    "Concat": (Remedy("Identity before its inputs", _set_inputs_apart, ("data", "last")),),
    "Flatten": (Remedy("Reshape in place of it", _reshape_flat),),
    "Expand": (Remedy("Mul by ones in place of it", _times_ones),),
    "Gather": (Remedy("Slice and Concat in place of it", _slice_each),),
    "Gemm": (Remedy("MatMul and Add in place of it", _multiply_and_add),),
    "Identity": (Remedy("Neg twice in place of it", _negate_twice),),
    "DequantizeLinear": (Remedy("zero point left out", _without_zero_point, ("inputs",)),),
    "Equal": (
        _VECTORS_RESHAPED,
        Remedy(
            "integers compared in place of bools", _compare_as_integers, ("element_types", "second_types", "last_types")
        ),
    ),
    "LogSoftmax": (
        Remedy("defaults written", _write_defaults, ("attributes",)),
        Remedy("exponentials added up in place of it", _add_up_exponentials, keeps_range=True),
    ),
    "MatMul": (Remedy("its operands spread beforehand", _spread_operands, ("broadcast",)),),
    "Reshape": (Remedy("allowzero left out", _reshape_no_zeros),),
    "Mul": (
        _VECTORS_RESHAPED,
        Remedy("Identity before its computed factor", _set_factor_apart, ("after", "after_second")),
        Remedy("sizes cast to numbers", _recast_sizes, ("scaled_by_size",)),
    ),
    "Size": (Remedy("the product of its sizes", _count),),
    "Where": (
        Remedy("its branches swapped", _swap_branches, ("broadcast",)),
        _VECTORS_RESHAPED,
        Remedy("Expand before it", _expand_operands, ("broadcast",)),
    ),
}
"""By operator, in the order in which they are tried."""
