"""AveragePool, MaxPool and LpPool around opset 22; not text, since sizes decide whether anything is written at all.

Opset 22 drops a window that would start in the end padding; runtimes did so before, but shape inference of the versions
that round up did not. So such a node is written without ceil_mode when it goes down to one of them: longer end padding
makes the same windows. Its size is kept from inference when it leaves them.

Sources: the pages of AveragePool (10, 22), MaxPool (10, 22), LpPool (18, 22).
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of


@dataclass(frozen=True)
class _Window:
    """How windows lie along one axis; the size of the data is None where it is not known."""

    size: int | None
    kernel: int
    stride: int
    begin: int
    end: int

    @property
    def dropped(self) -> bool | None:
        """Whether rounding up makes a window that starts in the end padding; None where that is not known."""
        if self.end + self.stride - 1 < self.kernel:
            return False
        if self.size is None:
            return None
        return (self._rounded_up - 1) * self.stride >= self.size + self.begin

    @property
    def _rounded_up(self) -> int:
        assert self.size is not None
        return -(-(self.size + self.begin + self.end - self.kernel) // self.stride) + 1

    @property
    def plain_end(self) -> int | None:
        """The end padding that makes the same windows without rounding up; None where that is not known."""
        if self.size is not None:
            return max(self.reach - self.size, 0)
        return self.end + self.stride - 1 if self.dropped is False else None

    @property
    def reach(self) -> int:
        """Where the last window ends, counted from where the data begins."""
        windows = self._rounded_up - bool(self.dropped)
        return (windows - 1) * self.stride + self.kernel - self.begin


def _windows_of(op: Writer, *, with_sizes: bool = True) -> list[_Window]:
    """How the windows of a pool lie along each spatial axis, by its attributes and the shape of its data.

    Without sizes the shape is not asked for, which may take longer than all else that is done to a model.
    """
    kernel = [int(size) for size in op.attribute("kernel_shape")]
    count = len(kernel)
    strides = op.attribute("strides") or [1] * count
    dilations = op.attribute("dilations") or [1] * count
    pads = op.attribute("pads") or [0] * (2 * count)
    shape = op.shape(0) if with_sizes else None
    sizes = [None] * count if shape is None else shape[2:]
    if len(sizes) != count:
        raise RefusedError(f"its kernel_shape {kernel} does not fit data of rank {len(sizes) + 2}")
    return [
        _Window(size, (extent - 1) * dilation + 1, stride, begin, end)
        for size, extent, stride, dilation, begin, end in zip(
            sizes, kernel, strides, dilations, pads[:count], pads[count:], strict=True
        )
    ]


def _rounds_up(node: NodeProto) -> bool:
    """Whether ceil_mode has a say: with auto_pad SAME the number of windows is given."""
    return bool(value_of(node, "ceil_mode", 0)) and not str(value_of(node, "auto_pad", "NOTSET")).startswith("SAME")


def _without_ceil(op: Writer, windows: list[_Window]) -> Outcome:
    """Say ceil_mode=1 by longer end padding."""
    ends = [window.plain_end for window in windows]
    if None in ends:
        raise RefusedError(
            f"it uses ceil_mode=1 on data of unknown size, where a window may start in the padding; opset "
            f"{_SINCE[op.node.op_type]} is the oldest that has it",
            "give its data a fixed size",
        )
    pads = [window.begin for window in windows] + [end for end in ends if end is not None]
    op.drop("ceil_mode")
    op.drop("auto_pad")
    if not op.attribute("count_include_pad", 0):
        op.set("pads", pads)
        return None
    # The padding asked for is counted, what rounding up adds to it is not.
    count = len(windows)
    wanted = [window.begin for window in windows] + [window.end for window in windows]
    added = [max(new - old, 0) for new, old in zip(pads, wanted, strict=True)]
    kept = [min(new, old) for new, old in zip(pads, wanted, strict=True)]
    whole = [0, 0, *kept[:count], 0, 0, *kept[count:]]
    data = op.input(0)
    if any(kept):
        data = op.add("Pad", data, op.integers(whole, "pads"), tail="padded")
    op.drop("count_include_pad")
    op.set("pads", added)
    return op.yields(op.node.op_type, data, copied=op.node.attribute)


_SINCE = {"AveragePool": 10, "MaxPool": 10, "LpPool": 18}


@lowers("AveragePool", 22)
@lowers("MaxPool", 22)
@lowers("LpPool", 22)
def _lower_dropped(op: Writer) -> Outcome:
    """A window in the end padding is dropped; inference of older versions would count it."""
    if not _may_drop(op):
        return None
    windows = _windows_of(op)
    if not any(window.dropped for window in windows):
        return None
    if not _rounds_up(op.node):
        op.drop("ceil_mode")
        return None
    too_long = any((w.plain_end or 0) >= size for w, size in zip(windows, op.attribute("kernel_shape"), strict=True))
    return _covered(op, windows) if too_long and not any(op.node.output[1:]) else _without_ceil(op, windows)


def _covered(op: Writer, windows: list[_Window]) -> list[NodeProto]:
    """Cut off what no window covers where one would be dropped, so that rounding up makes none.

    For windows with gaps, whose padding may come to be longer than kernel_shape, which runtimes refuse.
    """
    dropped = [(axis, window, window.size) for axis, window in enumerate(windows) if window.dropped and window.size]
    ends = [window.end for window in windows]
    for axis, window, size in dropped:
        ends[axis] = max(window.reach - size, 0)
    starts = op.integers([0] * len(dropped), "starts")
    stops = op.integers([min(window.reach, size) for _, window, size in dropped], "stops")
    axes = op.integers([axis + 2 for axis, _, _ in dropped], "axes")
    covered = op.add("Slice", op.input(0), starts, stops, axes, tail="covered")
    op.drop("auto_pad")
    op.set("pads", [window.begin for window in windows] + ends)
    return op.yields(op.node.op_type, covered, copied=op.node.attribute)


@raises("AveragePool", 22)
@raises("MaxPool", 22)
@raises("LpPool", 22)
def _raise_dropped(op: Writer) -> Outcome:
    """Inference counted the window in the end padding, so exporters state shapes that have it; runtimes never did."""
    return _of_its_own_size(op) if _drops_a_window(op) else None


def _drops_a_window(op: Writer) -> bool:
    """Whether inference before opset 22 counts a window that no runtime makes.

    With auto_pad SAME it may, too: neither pads where strides are longer than windows.
    """
    if any(attribute.ref_attr_name for attribute in op.node.attribute):
        return False  # a function states no shapes, and the sizes depend on its calls
    return _may_drop(op) and any(window.dropped for window in _windows_of(op))


def _may_drop(op: Writer) -> bool:
    """Whether rounding up may make a window that starts in the end padding, whatever the sizes are."""
    windows = _windows_of(op, with_sizes=False) if op.attribute("ceil_mode", 0) else []
    return any(window.dropped is not False for window in windows)


def _of_its_own_size(op: Writer) -> list[NodeProto]:
    """Keep inference from finding a window less than the shapes that the model states from here on.

    The result goes through a Reshape to its own shape, taken at run time, so that its size is left to the runtime.
    """
    tails = [tail if name else "" for tail, name in zip(("pooled", "indices"), op.node.output, strict=False)]
    results = op.add_many(op.node.op_type, op.node.input, tails, copied=op.node.attribute)
    for output, result in enumerate(results):
        if result:
            op.yields("Reshape", result, op.add("Shape", result, tail="its_shape"), output=output)
    return op.nodes
