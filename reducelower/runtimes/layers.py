"""Equivalent ways to write convolutions, pools and recurrences, for runtimes that get some of them wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.runtimes.remedy import Nodes, Remedy, remedy, rewrite

__all__ = ["LAYERS"]

_PADS_AS_INPUT = 11
"""Opset version from which on Pad takes its pads as an input."""

_LENGTHS = 4
"""The input of recurrences with the length of each sequence."""

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


@remedy("pads stated")
def _state_pads(op: Writer) -> Nodes:
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


@remedy("auto_pad VALID in place of no pads")
def _state_valid(op: Writer) -> Nodes:
    """Replace pads of zero by auto_pad VALID."""
    if op.attribute("auto_pad", "NOTSET") != "NOTSET" or any(op.attribute("pads", ())) or op.attribute("ceil_mode", 0):
        return None
    attributes = _without(op.node, "auto_pad", "pads", "ceil_mode")
    return rewrite(op, *op.node.input, copied=attributes, auto_pad="VALID")


@remedy("Neg twice before it")
def _negate_before(op: Writer) -> Nodes:
    """Negate the data twice beforehand, so that a runtime does not fuse the node with the one that computes them."""
    if op.scope.element_type(op.input(0)) not in _FLOATS:
        return None
    data = op.add("Neg", op.add("Neg", op.input(0), tail="opposite"), tail="apart")
    return rewrite(op, data, *op.node.input[1:])


@remedy("Pad before it")
def _pad_before(op: Writer) -> Nodes:
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
    amounts, value = [0, 0, *pads[:half], 0, 0, *pads[half:]], -np.inf if op.node.op_type == "MaxPool" else 0.0
    if op.scope.target_opset < _PADS_AS_INPUT:
        padded = op.add("Pad", op.input(0), tail="padded", pads=amounts, value=value)
    else:
        operands = op.integers(amounts, "pads"), op.constant(value, element_type, "pad")
        padded = op.add("Pad", op.input(0), *operands, tail="padded")
    attributes = _without(op.node, "auto_pad", "pads", "count_include_pad")
    return op.yields(op.node.op_type, padded, *op.node.input[1:], copied=attributes)


@remedy("strides stated")
def _state_strides(op: Writer) -> Nodes:
    """State the strides of 1 that a pool has by default."""
    kernel = op.attribute("kernel_shape")
    if op.attribute("strides") or not kernel:
        return None
    return rewrite(op, *op.node.input, strides=[1] * len(kernel))


@remedy("Identity after it")
def _copy_after(op: Writer) -> Nodes:
    """Copy the result by an Identity."""
    result = op.add(op.node.op_type, *op.node.input, tail="result", copied=op.node.attribute)
    return op.yields("Identity", result)


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


@remedy("the last of its steps")
def _last_of_steps(op: Writer) -> Nodes:
    """Take the output of the last step from the outputs of all steps."""
    is_plain = op.attribute("direction", "forward") == "forward" and not op.attribute("layout", 0)
    has_lengths = any(op.node.input[_LENGTHS : _LENGTHS + 1])
    if not is_plain or has_lengths or op.node.output[0] or not any(op.node.output[1:2]):
        return None
    shape = op.shape(0)
    steps = op.add(op.node.op_type, *op.node.input, tail="steps", copied=op.node.attribute)
    op.nodes[-1].output.extend(["", *op.node.output[2:]] if len(op.node.output) > 2 else [])
    last = op.scope.add_constant(np.array(shape[0] - 1 if shape and shape[0] else -1, np.int64), "last")
    return op.yields("Gather", steps, last, output=1, axis=0)


@remedy("its last states named")
def _name_outputs(op: Writer) -> Nodes:
    """Give the last states names although nothing reads them."""
    tails = ("last", "cell") if op.node.op_type == "LSTM" else ("last",)
    names = [*op.node.output, *[""] * len(tails)][1 : 1 + len(tails)]
    if all(names) or not op.node.output[0]:
        return None
    op.yields(op.node.op_type, *op.node.input, copied=op.node.attribute)
    op.nodes[-1].output.extend(name or op.fresh(tail) for name, tail in zip(names, tails, strict=True))
    return op.nodes


LAYERS: Mapping[str, Sequence[Remedy]] = {
    "AveragePool": (_state_strides, _state_pads, _pad_before, _state_valid, _negate_before),
    "Conv": (_state_pads, _pad_before, _copy_after),
    "ConvTranspose": (_state_pads, _copy_after),
    "LpPool": (_state_strides,),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (_last_of_steps, _name_outputs)),
    "MaxPool": (_state_strides, _state_pads, _pad_before, _state_valid, _negate_before),
}
"""By operator, in the order in which they are tried."""
