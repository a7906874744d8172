"""Equivalent ways to write convolutions and pools, for runtimes that pad them otherwise than ONNX says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.model.attributes import value_of
from reducelower.runtimes.remedies import Remedy, Written
from reducelower.scope.scope import Scope

__all__ = ["WINDOWS"]

_PADS_AS_INPUT = 11
"""Opset version from which Pad takes its pads as an input."""

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def _state_pads(node: NodeProto, scope: Scope) -> Written | None:
    """State the pads that auto_pad stands for, where all sizes are known."""
    upper = value_of(node, "auto_pad", "NOTSET") == "SAME_UPPER"
    if not upper and value_of(node, "auto_pad", "NOTSET") != "SAME_LOWER":
        return None
    sizes, kernel = _known(scope.shape(node.input[0])), _kernel(node, scope)
    if sizes is None or kernel is None:
        return None
    ones = [1] * len(kernel)
    strides, dilations = (value_of(node, name, ones) for name in ("strides", "dilations"))
    added = value_of(node, "output_padding", [0] * len(kernel))
    begins, ends = [], []
    for size, length, stride, dilation, more in zip(sizes, kernel, strides, dilations, added, strict=True):
        reach = (length - 1) * dilation + 1
        if node.op_type == "ConvTranspose":
            total = stride * (size - 1) + more + reach - size * stride
            if total < 0:
                return None  # The page of the operator does not say what then.
        else:
            total = max((-(size // -stride) - 1) * stride + reach - size, 0)
        begins.append(total // 2 if upper else total - total // 2)
        ends.append(total - begins[-1])
    kept = _without(node, "auto_pad", "pads", "ceil_mode")
    made = Writer(node, scope).yields(node.op_type, *node.input, copied=kept, pads=[*begins, *ends])
    made[-1].output[:] = node.output
    return made, scope.target_opset


def _pad_before(node: NodeProto, scope: Scope) -> Written | None:
    """Pad the data beforehand, where what is padded counts as any other value."""
    pads, element_type = value_of(node, "pads", ()), scope.element_type(node.input[0])
    counts = node.op_type == "Conv" or (
        value_of(node, "count_include_pad", 0) and not value_of(node, "ceil_mode", 0)
        if node.op_type == "AveragePool"
        else not any(node.output[1:])
    )
    if not any(pads) or not counts or element_type not in _FLOATS:
        return None
    body, half = Writer(node, scope), len(pads) // 2
    places = body.integers([0, 0, *pads[:half], 0, 0, *pads[half:]], "pads")
    value = body.constant(-np.inf if node.op_type == "MaxPool" else 0, element_type, "pad")
    padded = body.add("Pad", node.input[0], places, value, tail="padded")
    kept = _without(node, "auto_pad", "pads", "count_include_pad")
    return body.yields(node.op_type, padded, *node.input[1:], copied=kept), max(scope.target_opset, _PADS_AS_INPUT)


def _state_strides(node: NodeProto, scope: Scope) -> Written | None:
    """State the strides of 1 that a pool has by default."""
    kernel = value_of(node, "kernel_shape")
    if value_of(node, "strides") or not kernel:
        return None
    made = Writer(node, scope).yields(node.op_type, *node.input, copied=node.attribute, strides=[1] * len(kernel))
    made[-1].output[:] = node.output
    return made, scope.target_opset


def _kernel(node: NodeProto, scope: Scope) -> Sequence[int] | None:
    stated: Sequence[int] | None = value_of(node, "kernel_shape")
    if stated is not None or len(node.input) < 2:
        return stated
    return _known(scope.shape(node.input[1]))


def _known(shape: Sequence[int | None] | None) -> list[int] | None:
    """The sizes along which windows move; None unless all are known."""
    sizes = [size for size in (shape or ())[2:] if size is not None]
    return sizes if shape is not None and len(sizes) == len(shape) - 2 else None


def _without(node: NodeProto, *names: str) -> list[AttributeProto]:
    return [attribute for attribute in node.attribute if attribute.name not in names]


WINDOWS: Mapping[str, Mapping[str, Remedy]] = {
    "AveragePool": {"strides stated": _state_strides, "pads stated": _state_pads, "Pad before it": _pad_before},
    "Conv": {"pads stated": _state_pads, "Pad before it": _pad_before},
    "ConvTranspose": {"pads stated": _state_pads},
    "LpPool": {"strides stated": _state_strides},
    "MaxPool": {"strides stated": _state_strides, "pads stated": _state_pads, "Pad before it": _pad_before},
}
"""By operator, in the order in which they are tried."""
