"""DepthToSpace and SpaceToDepth in another order of channels, ReverseSequence, TensorScatter: elements change places.

Both orders of channels (mode) cut the same blocks; they number the channels differently, so that a Gather over the
channels turns one into the other.

Sources: the pages of DepthToSpace (1, 11), SpaceToDepth (1, 28), ReverseSequence (10), TensorScatter (24).
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError


def _channels(op: Writer) -> int:
    shape = op.shape(0)
    if shape is None or len(shape) != 4 or shape[1] is None:
        raise RefusedError(
            "it uses mode=CRD on data with an unknown number of channels",
            f"opset {_SINCE[op.node.op_type]} is the oldest that has the mode",
        )
    return shape[1]


_SINCE = {"DepthToSpace": 11, "SpaceToDepth": 28}


@lowers("DepthToSpace", 11)
@lowers("SpaceToDepth", 28)
def _lower_order(op: Writer) -> Outcome:
    """CRD numbers channels (depth, block), DCR (block, depth): before the one operator, and behind the other."""
    if op.attribute("mode", "DCR") == "DCR":
        return None
    block = int(op.attribute("blocksize"))
    channels = _channels(op)
    if op.node.op_type == "DepthToSpace":
        order = op.numbered(0, channels).reshape(-1, block * block).T.reshape(-1)
        turned = op.add("Gather", op.input(0), op.integers(order, "channels"), axis=1)
        return op.yields("DepthToSpace", turned, blocksize=block)
    order = op.numbered(0, channels * block * block).reshape(block * block, channels).T.reshape(-1)
    blocks = op.add("SpaceToDepth", op.input(0), blocksize=block)
    return op.yields("Gather", blocks, op.integers(order, "channels"), axis=1)


@expresses("ReverseSequence", opset=10, reads=10)
def _reverse_sequence(op: Writer) -> list[NodeProto]:
    """The steps of all sequences as one row of rows, gathered by computed places."""
    rank = op.rank(0)
    turned = [1, 0, *range(2, rank)] if int(op.attribute("time_axis", 0)) == 0 else []
    data = op.add("Transpose", op.input(0), tail="turned", perm=turned) if turned else op.input(0)
    sizes = op.add("Shape", data, tail="sizes")

    column = op.integers([-1, 1], "column")
    batch = ramp(op, op.add("Gather", sizes, op.number(0), tail="batch", axis=0))
    time = op.add("Gather", sizes, op.number(1), tail="time", axis=0)
    step = ramp(op, time)
    length = op.add("Reshape", op.input(1), column, tail="lengths")
    last = op.add("Sub", length, op.number(1), tail="last")
    inside = op.add("Less", step, length, tail="is_inside")
    place = op.add("Where", inside, op.add("Sub", last, step, tail="from_the_end"), step, tail="place")
    start = op.add("Mul", op.add("Reshape", batch, column, tail="row"), time, tail="start")
    rest = op.add("Slice", sizes, op.number(2), op.number(TO_THE_END), tail="rest")
    rows = op.add("Reshape", data, op.add("Concat", op.number(-1), rest, tail="row_shape", axis=0), tail="rows")
    places = op.add("Add", start, place, tail="places")
    if not turned:
        return op.yields("Gather", rows, places, axis=0)
    return op.yields("Transpose", op.add("Gather", rows, places, tail="reversed", axis=0), perm=turned)


@expresses("TensorScatter", opset=13)
def _tensor_scatter(op: Writer) -> list[NodeProto]:
    """Place p of a sample takes element p - start of the update where there is one, else its own of the cache.

    Both are one row to gather from, so that no runtime needs to scatter.
    """
    cache, update, start = op.input(0), op.input(1), op.input(2)
    rank = op.scope.needed_rank(cache)
    axis = from_the_front(int(op.attribute("axis", -2)), rank)
    zero = op.number(0)

    def size(name: str, tail: str) -> str:
        place = op.integers([axis], f"axis_{axis}")
        return op.add("Gather", op.add("Shape", name, tail=f"{tail}_shape"), place, tail=tail, axis=0)

    length, count = size(cache, "length"), size(update, "count")
    along = op.integers([1] * axis + [-1] + [1] * (rank - axis - 1), "along_the_sequence")
    places = op.add("Reshape", ramp(op, length), along, tail="places")
    offset = places
    if start:
        samples = op.integers([-1] + [1] * (rank - 1), "along_the_batch")
        first = op.add("Reshape", start, samples, tail="first")
        offset = op.add("Sub", places, first, tail="offset")
        if op.attribute("mode", "linear") == "circular":
            offset = op.add("Mod", offset, length, tail="turned")
    is_new = op.add("Less", offset, count, tail="is_before_the_end")
    is_new = op.add("And", is_new, op.add("Not", op.add("Less", offset, zero, tail="is_earlier")), tail="is_new")
    # The update lies behind the cache, so that its elements are numbered from the length of the cache on.
    moved = op.add("Add", offset, length, tail="behind")
    source = op.add("Where", is_new, moved, places, tail="source")
    both = op.add("Concat", cache, update, tail="old_and_new", axis=axis)
    whole = op.add("Expand", source, op.add("Shape", cache, tail="shape"), tail="sources")
    return op.yields("GatherElements", both, whole, axis=axis)
