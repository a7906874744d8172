"""ReduceProd as multiplications, for runtimes without a kernel for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from reducelower.adapters.builder import Writer
from reducelower.errors import RefusedError
from reducelower.runtimes.reduction import Reduction
from reducelower.runtimes.remedy import Remedy, Written

__all__ = ["PRODUCTS"]

_OPSET = 13
"""Opset version that the nodes are written for."""

_MOST_FACTORS = 64
"""Most factors of one product; each takes a node."""

_ROUNDED_EACH_TIME = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
"""Element types in which every multiplication would round, unlike in kernels; they are cast to float first."""


def _product(op: Writer) -> Written | None:
    """Split along each axis and multiply the parts in order, as kernels do."""
    if op.node.op_type != "ReduceProd" or op.element_type(0) in _ROUNDED_EACH_TIME:
        return None
    reduction = Reduction(op)
    if reduction.reduces_nothing:
        return None
    sizes, axes = _sizes(op), sorted(set(reduction.all_axes()))
    counts = [_factor_count(sizes, axis) for axis in axes]
    if not axes:
        return None
    data = op.input(0)
    for axis, count in zip(axes, counts, strict=True):
        if count > 1:
            lengths = op.integers(np.ones(count), "split")
            data, *others = op.add_many(
                "Split", [data, lengths], [f"part_{axis}_{at}" for at in range(count)], axis=axis
            )
            for part in others:
                data = op.add("Mul", data, part, tail=f"product_{axis}")
    if reduction.keepdims:
        return op.yields_value(data), _OPSET
    return op.yields("Squeeze", data, op.integers(axes, "axes")), _OPSET


def _sizes(op: Writer) -> tuple[int | None, ...]:
    shape = op.shape(0)
    if shape is None:
        op.rank(0)  # Its error says what to declare.
        raise RefusedError("the sizes of what it multiplies are not known", "make the shapes of the model static")
    return shape


def _factor_count(sizes: tuple[int | None, ...], axis: int) -> int:
    count = sizes[axis]
    if count is None:
        raise RefusedError(
            f"it multiplies along axis {axis}, whose size is known at run time only",
            "make that dimension static, or use a runtime with a kernel of ReduceProd",
        )
    if count == 0 or count > _MOST_FACTORS:
        raise RefusedError(
            f"it multiplies {count} values along axis {axis}, and products are written out for 1 to {_MOST_FACTORS}",
            "use a runtime with a kernel of ReduceProd",
        )
    return count


PRODUCTS: Sequence[Remedy] = (Remedy("product by Split and Mul", _product),)
"""Tried after all remedies that keep the product one node."""
