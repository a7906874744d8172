"""Equivalent ways to write operators, for runtimes that get one of them wrong.

Those whose nodes depend on no count are text, in `rules/targets/remedies`; the doc string begins with the name in
reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from onnx import AttributeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.ops.shaping import without_allowzero
from reducelower.model.schemas import REDUCTIONS, schema
from reducelower.rulebook.boundaries import Alternatives, Boundaries
from reducelower.rulebook.reading import home
from reducelower.runtimes.features import BROADCASTING
from reducelower.runtimes.layers import LAYERS
from reducelower.runtimes.remedies import REMEDIES
from reducelower.runtimes.remedy import Nodes, Remedy, remedy, rewrite
from reducelower.scope.body import AnyScope

__all__ = ["forms_of"]

_OPSET = 13
"""Opset version that the nodes are written for."""

_SHAPE_IS_INPUT = 5
"""Opset version from which on Reshape takes its shape as an input."""

_MOST_SLICES = 16
"""Most indices of a Gather; each takes a Slice."""

_NUMERIC = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64)


@cache
def _texts() -> Boundaries:
    return Boundaries(home() / "targets" / "remedies", {})


@cache
def forms_of(op_type: str) -> Sequence[Remedy]:
    """The ways to write an operator, in the order in which they are tried; those in text come first."""
    texts = _texts().rules(op_type)
    by_text = [Remedy(rule.function.doc_string.partition(":")[0], (Alternatives((rule,)),)) for rule in texts]
    return (*by_text, *_FORMS.get(op_type, ()))


def _copying(name: str, is_copied: Callable[[AnyScope, str], bool]) -> Remedy:
    """Copy some operands by Identity, so that a runtime does not fuse the node with those that compute them."""

    def copy(op: Writer) -> Nodes:
        operands = [
            op.add("Identity", each, tail="apart") if is_copied(op.scope, each) else each for each in op.node.input
        ]
        return rewrite(op, *operands) if op.nodes else None

    return remedy(name)(copy)


@remedy("its vectors reshaped to the rank of the result")
def _reshape_vectors(op: Writer) -> Nodes:
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


@remedy("Reshape in place of it", opset=_OPSET)
def _reshape(op: Writer) -> Nodes:
    """Reshape to the shape of the result, of which one size may be unknown."""
    sizes = op.scope.shape(op.node.output[0])
    if sizes is None or 0 in sizes or sizes.count(None) > 1:
        return None
    shape = op.integers([-1 if size is None else size for size in sizes], "shape")
    return op.yields("Reshape", op.input(0), shape)


@remedy("allowzero left out", opset=_OPSET)
def _drop_allowzero(op: Writer) -> Nodes:
    """Drop allowzero if a zero in the shape means the same without it, or there is none."""
    return without_allowzero(op) if op.attribute("allowzero", 0) else None


@remedy("Slice and Concat in place of it", opset=_OPSET)
def _slice_each(op: Writer) -> Nodes:
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
    return op.yields("Concat", *parts, axis=axis)


@remedy("zero point left out")
def _drop_zero_point(op: Writer) -> Nodes:
    """Drop a zero point that is zero."""
    zero = op.constant_input(2)
    if zero is None or np.any(zero):
        return None
    return rewrite(op, *op.node.input[:2])


@remedy("exponentials added up in place of it", opset=_OPSET, keeps_range=True)
def _subtract_log_of_sum(op: Writer) -> Nodes:
    """Subtract the logarithm of the sum of exponentials; the Identity keeps runtimes from fusing it to LogSoftmax."""
    if op.scope.target_opset < _OPSET:
        return None  # it reduces several axes there
    axis = op.attribute("axis", -1)
    data = op.input(0)
    largest = op.add("ReduceMax", data, tail="largest", axes=[axis], keepdims=1)
    shifted = op.add("Sub", data, largest, tail="shifted")
    total = op.add("ReduceSum", op.add("Exp", shifted, tail="exponentials"), op.integers([axis], "axes"), tail="total")
    apart = op.add("Identity", op.add("Log", total, tail="logarithm"), tail="apart")
    return op.yields("Sub", shifted, apart)


@remedy("sizes cast to numbers")
def _sizes_by_double(op: Writer) -> Nodes:
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


@remedy("defaults left out")
def _drop_defaults(op: Writer) -> Nodes:
    """Drop attributes that have their default value."""
    definition = schema(op.node.op_type, op.scope.target_opset)
    defaults = {_bytes(each.default_value) for each in definition.attributes.values()} if definition else set()
    kept = [each for each in op.node.attribute if _bytes(each) not in defaults]
    if len(kept) == len(op.node.attribute):
        return None
    return rewrite(op, *op.node.input, copied=kept)


@remedy("MatMul and Add in place of it", opset=_OPSET)
def _matmul_and_add(op: Writer) -> Nodes:
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
        return op.yields_value(product)
    return op.yields("Add", product, scaled(op.input(2), "beta"))


def _bytes(attribute: AttributeProto) -> bytes:
    return attribute.SerializeToString(deterministic=True)


_FORMS: Mapping[str, Sequence[Remedy]] = {
    **LAYERS,
    **dict.fromkeys(REDUCTIONS, REMEDIES),
    **dict.fromkeys(BROADCASTING, (_reshape_vectors,)),
    **dict.fromkeys(("Flatten", "Squeeze", "Unsqueeze"), (_reshape,)),
    **dict.fromkeys(("GatherElements", "GatherND", "ScatterElements", "ScatterND"), (_drop_defaults,)),
    "Cast": (_copying("Identity before it", lambda scope, name: True),),
    "Concat": (_copying("Identity before its inputs", lambda scope, name: scope.written_as(name) == "fed"),),
    "DequantizeLinear": (_drop_zero_point,),
    "Gather": (_slice_each,),
    "Gemm": (_matmul_and_add,),
    "LogSoftmax": (_subtract_log_of_sum,),
    "Mul": (
        _reshape_vectors,
        _copying("Identity before its computed factor", lambda scope, name: scope.constant(name) is None),
        _sizes_by_double,
    ),
    "Reshape": (_drop_allowzero,),
}
