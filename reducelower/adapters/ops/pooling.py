"""AveragePool, MaxPool and LpPool around opset 22; not text, since sizes decide whether a node changes.

Opset 22 drops a window that would start in the end padding. Runtimes always did, but shape inference of older versions
with ceil_mode counts it. So such a node is refused on the way down, and on the way up its size is hidden from
inference.

Sources: the pages of AveragePool (10, 22), MaxPool (10, 22), LpPool (18, 22).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of

__all__ = ["Window", "windows_of"]


@dataclass(frozen=True)
class Window:
    """The windows along one axis; the size of the data is None if unknown."""

    size: int | None
    kernel: int
    stride: int
    begin: int
    end: int

    @property
    def dropped(self) -> bool | None:
        """Whether rounding up makes a window that starts in the end padding; None if unknown."""
        if self.end + self.stride - 1 < self.kernel:
            return False
        if self.size is None:
            return None
        last = -(-(self.size + self.begin + self.end - self.kernel) // self.stride)
        return last * self.stride >= self.size + self.begin


def windows_of(node: NodeProto, shape: Sequence[int | None] | None) -> list[Window]:
    """The windows of a pool along each spatial axis, by its attributes and the shape of its data.

    Raises:
        RefusedError: kernel_shape does not fit the rank of the data.
    """
    kernel = [int(size) for size in value_of(node, "kernel_shape", ())]
    count = len(kernel)
    strides, dilations = (value_of(node, name) or [1] * count for name in ("strides", "dilations"))
    pads = value_of(node, "pads") or [0] * (2 * count)
    sizes = [None] * count if shape is None else shape[2:]
    if len(sizes) != count:
        raise RefusedError(f"its kernel_shape {kernel} does not fit data of rank {len(sizes) + 2}")
    return [
        Window(size, (extent - 1) * dilation + 1, stride, begin, end)
        for size, extent, stride, dilation, begin, end in zip(
            sizes, kernel, strides, dilations, pads[:count], pads[count:], strict=True
        )
    ]


@rule("AveragePool LpPool MaxPool", "below 22")
def _refuse_dropped(op: Writer) -> None:
    """Refuse nodes with a dropped window, which shape inference of older versions counts."""
    if _drops_a_window(op):
        raise RefusedError(
            "rounding up makes a window that starts in the end padding, which inference of older versions counts",
            "opset 22 is the oldest that leaves it out",
        )


@rule("AveragePool LpPool MaxPool", "from 22")
def _raise_dropped(op: Writer) -> list[NodeProto] | None:
    """Hide the size of nodes with a dropped window, since exporters state the size that older inference found."""
    return _hide_size(op) if _drops_a_window(op) else None


def _drops_a_window(op: Writer) -> bool:
    """Whether inference before opset 22 counts a window that runtimes drop.

    auto_pad SAME does not rule that out: with strides longer than windows, neither pads.
    """
    if not op.attribute("ceil_mode", 0) or all(window.dropped is False for window in windows_of(op.node, None)):
        return False  # for any sizes; finding these may take longer than the rest of the conversion
    return any(window.dropped for window in windows_of(op.node, op.shape(0)))


def _hide_size(op: Writer) -> list[NodeProto]:
    """Keep inference from finding sizes that contradict the shapes which the model states after the node.

    The result is reshaped to its own shape, which is computed at run time.
    """
    tails = [tail if name else "" for tail, name in zip(("pooled", "indices"), op.node.output, strict=False)]
    results = op.add_many(op.node.op_type, op.node.input, tails, copied=op.node.attribute)
    for output, result in enumerate(results):
        if result:
            op.yields("Reshape", result, op.add("Shape", result, tail="its_shape"), output=output)
    return op.nodes
