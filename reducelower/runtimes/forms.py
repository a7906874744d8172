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
from reducelower.runtimes.remedy import Remedy, Written, rewrite
from reducelower.runtimes.windows import WINDOWS

__all__ = ["FORMS"]

_OPSET = 13
"""Opset version that the nodes are written for."""

_SHAPE_IS_INPUT = 5
"""Opset version from which on Reshape takes its shape as an input."""

_MIRRORED: Mapping[str, str] = {
    "Greater": "Less",
    "GreaterOrEqual": "LessOrEqual",
    "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
}
"""The equal comparison of swapped operands; for NaN both are false."""

_MOST_ONES = 4096
"""Most elements of a constant of ones."""

_MOST_BROADCAST = 1 << 20
"""Most elements of a constant operand that is broadcast to a stack of matrices."""

_MOST_SLICES = 16
"""Most indices of a Gather; each takes a Slice."""

_NUMERIC = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64)


def _swap_operands(op: Writer) -> Written:
    return op.yields(_MIRRORED[op.node.op_type], op.input(1), op.input(0)), _OPSET


def _copy_factors(op: Writer) -> Written:
    """Copy computed factors by Identity, so that a runtime does not fuse their nodes with the product."""
    is_computed = [op.scope.constant(name) is None for name in op.node.input]
    factors = [
        op.add("Identity", name, tail="apart") if computed else name
        for name, computed in zip(op.node.input, is_computed, strict=True)
    ]
    return rewrite(op, *factors)


def _swap_branches(op: Writer) -> Written:
    """Negate the condition and swap the branches."""
    condition, one, other = op.node.input
    return op.yields("Where", op.add("Not", condition, tail="opposite"), other, one), _OPSET


def _expand_operands(op: Writer) -> Written | None:
    """Expand every operand to the shape of the result beforehand."""
    goal = op.scope.shape(op.node.output[0])
    if goal is None or None in goal or all(op.scope.shape(name) == goal for name in op.node.input):
        return None
    shape = op.integers(goal, "shape")
    operands = [
        name if op.scope.shape(name) == goal else op.add("Expand", name, shape, tail=f"operand_{at}")
        for at, name in enumerate(op.node.input)
    ]
    return op.yields(op.node.op_type, *operands), _OPSET


def _reshape_vectors(op: Writer) -> Written | None:
    """Reshape vectors to the rank of the result beforehand; they lie along its last axis."""
    rank, scope = op.scope.rank(op.node.output[0]), op.scope
    if rank is None or rank < 2 or scope.target_opset < _SHAPE_IS_INPUT:
        return None
    operands = [
        op.add("Reshape", name, op.integers([*[1] * (rank - 1), -1], "shape"), tail=f"operand_{at}")
        if scope.rank(name) == 1 and scope.constant(name) is None
        else name
        for at, name in enumerate(op.node.input)
    ]
    return rewrite(op, *operands) if op.nodes else None


def _reshape(op: Writer) -> Written | None:
    """Reshape to the shape of the result, of which one size may be unknown."""
    sizes = op.scope.shape(op.node.output[0])
    if sizes is None or 0 in sizes or sizes.count(None) > 1:
        return None
    shape = op.integers([-1 if size is None else size for size in sizes], "shape")
    return op.yields("Reshape", op.input(0), shape), _OPSET


def _reshape_flat(op: Writer) -> Written | None:
    """Write Flatten as Reshape, if the sizes before the axis, or those from it on, are known."""
    sizes = op.scope.shape(op.input(0))
    if sizes is None:
        return None
    axis = op.attribute("axis", 1)
    axis += len(sizes) if axis < 0 else 0
    shape = [_product(sizes[:axis]), _product(sizes[axis:])]
    if shape == [-1, -1] or 0 in shape:
        return None
    return op.yields("Reshape", op.input(0), op.integers(shape, "shape")), _OPSET


def _product(sizes: Sequence[int | None]) -> int:
    """The product of sizes; -1 if one of them is unknown."""
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else -1


def _drop_allowzero(op: Writer) -> Written | None:
    """Drop allowzero if a zero in the shape means the same without it, or there is none."""
    plain = without_allowzero(op) if op.attribute("allowzero", 0) else None
    return None if plain is None else (plain, _OPSET)


def _times_ones(op: Writer) -> Written | None:
    """Write Expand as a product with ones of the shape, which is exact."""
    sizes, element_type = op.constant_input(1), op.element_type(0)
    if sizes is None or element_type not in _NUMERIC or not 0 < prod(map(int, sizes)) <= _MOST_ONES:
        return None
    ones = op.constant(np.ones(tuple(map(int, sizes))), element_type, "ones")
    return op.yields("Mul", op.input(0), ones), _OPSET


def _negate_twice(op: Writer) -> Written | None:
    """Copy by two Neg, which no optimizer removes, unlike a product with one."""
    if op.element_type(0) not in _NUMERIC:
        return None
    return op.yields("Neg", op.add("Neg", op.input(0), tail="opposite")), _OPSET


def _slice_each(op: Writer) -> Written | None:
    """Write Gather as one Slice for each index, concatenated."""
    indices = op.constant_input(1)
    if indices is None or indices.ndim != 1 or not 0 < indices.size <= _MOST_SLICES:
        return None
    axis = op.attribute("axis", 0)
    parts = [
        op.add(
            "Slice",
            op.input(0),
            *(op.number(each) for each in (at, TO_THE_END if at == -1 else at + 1, axis)),
            tail=f"part_{number}",
        )
        for number, at in enumerate(map(int, indices))
    ]
    return op.yields("Concat", *parts, axis=axis), _OPSET


def _copy_input(op: Writer) -> Written:
    """Put an Identity before the node, so that a runtime does not fuse it with the node before."""
    return rewrite(op, op.add("Identity", op.input(0)), *op.node.input[1:])


def _copy_inputs(op: Writer) -> Written | None:
    """Copy each model input that the node reads by Identity, so that it reads computed values."""
    operands = [
        op.add("Identity", name, tail=f"operand_{at}") if op.scope.written_as(name) == "fed" else name
        for at, name in enumerate(op.node.input)
    ]
    return rewrite(op, *operands) if op.nodes else None


def _compare_to_zero(op: Writer) -> Written | None:
    """Write a cast to bool as a comparison with zero."""
    element_type = op.element_type(0)
    if op.attribute("to") != TensorProto.BOOL or element_type not in _NUMERIC:
        return None
    return op.yields("Not", op.add("Equal", op.input(0), op.constant(0, element_type, "zero"))), _OPSET


def _compare_as_integers(op: Writer) -> Written | None:
    """Compare bools as 32-bit integers."""
    if op.element_type(0) != TensorProto.BOOL:
        return None
    operands = [op.add("Cast", op.input(at), tail=f"integers_{at}", to=TensorProto.INT32) for at in range(2)]
    return op.yields("Equal", *operands), _OPSET


def _drop_zero_point(op: Writer) -> Written | None:
    """Drop a zero point that is zero."""
    zero = op.constant_input(2)
    if zero is None or np.any(zero):
        return None
    return rewrite(op, *op.node.input[:2])


def _subtract_log_of_sum(op: Writer) -> Written | None:
    """Subtract the logarithm of the sum of exponentials; the Identity keeps runtimes from fusing it to LogSoftmax."""
    if op.scope.target_opset < _OPSET:
        return None  # it reduces several axes there
    axis = op.attribute("axis", -1)
    data = op.input(0)
    largest = op.add("ReduceMax", data, tail="largest", axes=[axis], keepdims=1)
    shifted = op.add("Sub", data, largest, tail="shifted")
    total = op.add("ReduceSum", op.add("Exp", shifted, tail="exponentials"), op.integers([axis], "axes"), tail="total")
    apart = op.add("Identity", op.add("Log", total, tail="logarithm"), tail="apart")
    return op.yields("Sub", shifted, apart), _OPSET


def _sizes_by_double(op: Writer) -> Written | None:
    """Cast sizes to double and back, so that a runtime takes them for numbers; double holds every possible size."""
    if op.element_type(0) not in (TensorProto.INT32, TensorProto.INT64):
        return None
    operands = []
    for at, name in enumerate(op.node.input):
        elements = op.scope.known(name).elements
        if elements is not None and None not in elements and op.scope.constant(name) is None:
            number = op.add("Cast", name, tail=f"number_{at}", to=TensorProto.DOUBLE)
            name = op.add("Cast", number, tail=f"size_{at}", to=op.element_type(0))
        operands.append(name)
    return rewrite(op, *operands) if op.nodes else None


def _in_integers(op: Writer) -> Written | None:
    """Move bools as 32-bit integers."""
    if op.element_type(0) != TensorProto.BOOL:
        return None
    data = op.add("Cast", op.input(0), tail="integers", to=TensorProto.INT32)
    moved = op.add(op.node.op_type, data, *op.node.input[1:], copied=op.node.attribute, tail="moved")
    return op.yields("Cast", moved, to=TensorProto.BOOL), op.scope.target_opset


def _drop_defaults(op: Writer) -> Written | None:
    """Drop attributes that have their default value."""
    definition = schema(op.node.op_type, op.scope.target_opset)
    defaults = {_bytes(each.default_value) for each in definition.attributes.values()} if definition else set()
    kept = [each for each in op.node.attribute if _bytes(each) not in defaults]
    if len(kept) == len(op.node.attribute):
        return None
    return rewrite(op, *op.node.input, copied=kept)


def _matmul_and_add(op: Writer) -> Written | None:
    """Write Gemm as MatMul and Add."""
    element_type = op.element_type(0)
    if element_type not in _NUMERIC:
        return None

    def transposed(name: str, flag: str) -> str:
        return op.add("Transpose", name, tail=flag, perm=[1, 0]) if op.attribute(flag, 0) else name

    def scaled(name: str, by: str) -> str:
        factor = op.attribute(by, 1.0)
        return name if factor == 1 else op.add("Mul", name, op.constant(factor, element_type, by), tail=f"by_{by}")

    operands = transposed(op.input(0), "transA"), transposed(op.input(1), "transB")
    product = scaled(op.add("MatMul", *operands, tail="product"), "alpha")
    if len(op.node.input) < 3 or not op.input(2):
        return op.yields_value(product), _OPSET
    return op.yields("Add", product, scaled(op.input(2), "beta")), _OPSET


def _broadcast_stacks(op: Writer) -> Written | None:
    """Broadcast the leading dimensions of both operands of a MatMul beforehand."""
    shapes = [op.scope.shape(name) for name in (*op.node.input, op.node.output[0])]
    known = [[size for size in shape if size is not None] for shape in shapes if shape is not None and len(shape) > 1]
    if [len(sizes) for sizes in known] != [len(shape or ()) for shape in shapes]:
        return None
    stack = known.pop()[:-2]
    operands = []
    for name, sizes in zip(op.node.input, known, strict=True):
        goal, value = [*stack, *sizes[-2:]], op.scope.constant(name)
        if sizes == goal:
            operands.append(name)
        elif value is not None and prod(goal) <= _MOST_BROADCAST:
            operands.append(op.scope.add_constant(np.broadcast_to(value, goal).copy(), "spread"))
        else:
            operands.append(op.add("Expand", name, op.integers(goal, "shape"), tail="spread"))
    return None if operands == list(op.node.input) else (op.yields(op.node.op_type, *operands), _OPSET)


def _product_of_sizes(op: Writer) -> Written:
    """Write Size as the product of the sizes."""
    return op.yields("ReduceProd", op.add("Shape", op.input(0)), keepdims=0), _OPSET


def _state_defaults(op: Writer) -> Written | None:
    """State every attribute that has a default."""
    stated = {each.name for each in op.node.attribute}
    missing = {
        name: value
        for name, value in default_attributes(op.node.op_type, op.scope.target_opset).items()
        if name not in stated
    }
    return rewrite(op, *op.node.input, **missing) if missing else None


def _bytes(attribute: AttributeProto) -> bytes:
    return attribute.SerializeToString(deterministic=True)


_VECTORS_RESHAPED = Remedy("its vectors reshaped to the rank of the result", _reshape_vectors, ("vector",))
_SWAPPED = Remedy("the other comparison of the operands swapped", _swap_operands)
_IDENTITY_BEFORE = Remedy("Identity before it", _copy_input, ("after",))
_NO_DEFAULTS = Remedy("defaults left out", _drop_defaults, ("attributes",))
_IN_INTEGERS = Remedy("bools moved as integers", _in_integers, ("element_types",))
_RESHAPED = Remedy("Reshape in place of it", _reshape)

FORMS: Mapping[str, Sequence[Remedy]] = {
    **WINDOWS,
    **RECURRENCES,
    **dict.fromkeys(BROADCASTING, (_VECTORS_RESHAPED,)),
    **dict.fromkeys(_MIRRORED, (_SWAPPED, _VECTORS_RESHAPED)),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), (_RESHAPED,)),
    **dict.fromkeys(("GatherElements", "GatherND"), (_NO_DEFAULTS, _IN_INTEGERS)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (_NO_DEFAULTS,)),
    "Cast": (_IDENTITY_BEFORE, Remedy("comparison with zero in place of it", _compare_to_zero)),
    "Concat": (Remedy("Identity before its inputs", _copy_inputs, ("data", "last")),),
    "Flatten": (Remedy("Reshape in place of it", _reshape_flat),),
    "Expand": (Remedy("Mul by ones in place of it", _times_ones),),
    "Gather": (Remedy("Slice and Concat in place of it", _slice_each),),
    "Gemm": (Remedy("MatMul and Add in place of it", _matmul_and_add),),
    "Identity": (Remedy("Neg twice in place of it", _negate_twice),),
    "DequantizeLinear": (Remedy("zero point left out", _drop_zero_point, ("inputs",)),),
    "Equal": (
        _VECTORS_RESHAPED,
        Remedy(
            "integers compared in place of bools", _compare_as_integers, ("element_types", "second_types", "last_types")
        ),
    ),
    "LogSoftmax": (
        Remedy("defaults written", _state_defaults, ("attributes",)),
        Remedy("exponentials added up in place of it", _subtract_log_of_sum, keeps_range=True),
    ),
    "MatMul": (Remedy("its operands spread beforehand", _broadcast_stacks, ("broadcast",)),),
    "Reshape": (Remedy("allowzero left out", _drop_allowzero),),
    "Mul": (
        _VECTORS_RESHAPED,
        Remedy("Identity before its computed factor", _copy_factors, ("after", "after_second")),
        Remedy("sizes cast to numbers", _sizes_by_double, ("scaled_by_size",)),
    ),
    "Size": (Remedy("the product of its sizes", _product_of_sizes),),
    "Where": (
        Remedy("its branches swapped", _swap_branches, ("broadcast",)),
        _VECTORS_RESHAPED,
        Remedy("Expand before it", _expand_operands, ("broadcast",)),
    ),
}
"""By operator, in the order in which they are tried."""
