"""Equivalent ways to write convolutions and pools, for runtimes that pad them differently from ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.runtimes.remedy import Remedy, Written, rewrite

__all__ = ["WINDOWS"]

_PADS_AS_INPUT = 11
"""Opset version from which on Pad takes its pads as an input."""

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def _state_pads(op: Writer) -> Written | None:
    """Replace auto_pad by the pads that it stands for, if all sizes are known."""
    upper = op.attribute("auto_pad", "NOTSET") == "SAME_UPPER"
    if not upper and op.attribute("auto_pad", "NOTSET") != "SAME_LOWER":
        return None
    sizes, kernel = _spatial_sizes(op.shape(0)), _kernel(op)
    if sizes is None or kernel is None:
        return None
    ones = [1] * len(kernel)
    strides, dilations = (op.attribute(name, ones) for name in ("strides", "dilations"))
    added = op.attribute("output_padding", [0] * len(kernel))
    begins, ends = [], []
    for size, length, stride, dilation, more in zip(sizes, kernel, strides, dilations, added, strict=True):
        reach = (length - 1) * dilation + 1
        if op.node.op_type == "ConvTranspose":
            total = stride * (size - 1) + more + reach - size * stride
            if total < 0:
                return None  # The operator's page does not define this case.
        else:
            total = max((-(size // -stride) - 1) * stride + reach - size, 0)
        begins.append(total // 2 if upper else total - total // 2)
        ends.append(total - begins[-1])
    kept = _without(op.node, "auto_pad", "pads", "ceil_mode")
    return rewrite(op, *op.node.input, copied=kept, pads=[*begins, *ends])


def _state_valid(op: Writer) -> Written | None:
    """Replace pads of zero by auto_pad VALID."""
    if op.attribute("auto_pad", "NOTSET") != "NOTSET" or any(op.attribute("pads", ())) or op.attribute("ceil_mode", 0):
        return None
    attributes = _without(op.node, "auto_pad", "pads", "ceil_mode")
    return rewrite(op, *op.node.input, copied=attributes, auto_pad="VALID")


def _negate_before(op: Writer) -> Written | None:
    """Negate the data twice beforehand, so that a runtime does not fuse the node with the one that computes them."""
    if op.scope.element_type(op.input(0)) not in _FLOATS:
        return None
    data = op.add("Neg", op.add("Neg", op.input(0), tail="opposite"), tail="apart")
    return rewrite(op, data, *op.node.input[1:])


def _pad_before(op: Writer) -> Written | None:
    """Pad the data beforehand, if padded values count like any others."""
    pads, element_type = op.attribute("pads", ()), op.scope.element_type(op.input(0))
    counts = op.node.op_type == "Conv" or (
        op.attribute("count_include_pad", 0) and not op.attribute("ceil_mode", 0)
        if op.node.op_type == "AveragePool"
        else not any(op.node.output[1:])
    )
    if not any(pads) or not counts or element_type not in _FLOATS:
        return None
    half = len(pads) // 2
    amounts = op.integers([0, 0, *pads[:half], 0, 0, *pads[half:]], "pads")
    value = op.constant(-np.inf if op.node.op_type == "MaxPool" else 0, element_type, "pad")
    padded = op.add("Pad", op.input(0), amounts, value, tail="padded")
    attributes = _without(op.node, "auto_pad", "pads", "count_include_pad")
    return op.yields(op.node.op_type, padded, *op.node.input[1:], copied=attributes), max(
        op.scope.target_opset, _PADS_AS_INPUT
    )


def _state_strides(op: Writer) -> Written | None:
    """State the strides of 1 that a pool has by default."""
    kernel = op.attribute("kernel_shape")
    if op.attribute("strides") or not kernel:
        return None
    return rewrite(op, *op.node.input, strides=[1] * len(kernel))


def _copy_after(op: Writer) -> Written:
    """Copy the result by an Identity."""
    result = op.add(op.node.op_type, *op.node.input, tail="result", copied=op.node.attribute)
    return op.yields("Identity", result), op.scope.target_opset


def _kernel(op: Writer) -> Sequence[int] | None:
    stated: Sequence[int] | None = op.attribute("kernel_shape")
    if stated is not None or len(op.node.input) < 2:
        return stated
    return _spatial_sizes(op.shape(1))


def _spatial_sizes(shape: Sequence[int | None] | None) -> list[int] | None:
    """The sizes after batch and channels; None unless all are known."""
    sizes = [size for size in (shape or ())[2:] if size is not None]
    return sizes if shape is not None and len(sizes) == len(shape) - 2 else None


def _without(node: NodeProto, *names: str) -> list[AttributeProto]:
    return [attribute for attribute in node.attribute if attribute.name not in names]


_STRIDES_STATED = Remedy("strides stated", _state_strides)
_PADS_STATED = Remedy("pads stated", _state_pads)
_VALID = Remedy("auto_pad VALID in place of no pads", _state_valid)
_NEGATED = Remedy("Neg twice before it", _negate_before)
_PAD_BEFORE = Remedy("Pad before it", _pad_before)
_IDENTITY_AFTER = Remedy("Identity after it", _copy_after)

WINDOWS: Mapping[str, Sequence[Remedy]] = {
    "AveragePool": (_STRIDES_STATED, _PADS_STATED, _PAD_BEFORE, _VALID, _NEGATED),
    "Conv": (_PADS_STATED, _PAD_BEFORE, _IDENTITY_AFTER),
    "ConvTranspose": (_PADS_STATED, _IDENTITY_AFTER),
    "LpPool": (_STRIDES_STATED,),
    "MaxPool": (_STRIDES_STATED, _PADS_STATED, _PAD_BEFORE, _VALID, _NEGATED),
}
"""By operator, in the order in which they are tried."""
