"""DepthToSpace and SpaceToDepth in another order of channels, ReverseSequence, TensorScatter: elements change places.

Both orders of channels (mode) cut the same blocks; they number the channels differently, so that a Gather over the
channels turns one into the other.

Sources: https://onnx.ai/onnx/operators/onnx__DepthToSpace.html (1, 11),
https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html (1, 28),
https://onnx.ai/onnx/operators/onnx__ReverseSequence.html (10),
https://onnx.ai/onnx/operators/onnx__TensorScatter.html (24).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope


def _channels(node: NodeProto, scope: Scope) -> int:
    shape = scope.shape(node.input[0])
    if shape is None or len(shape) != 4 or shape[1] is None:
        raise RefusedError(
            "it uses mode=CRD on data with an unknown number of channels",
            f"opset {_SINCE[node.op_type]} is the oldest that has the mode",
        )
    return shape[1]


_SINCE = {"DepthToSpace": 11, "SpaceToDepth": 28}


@lowers("DepthToSpace", 11)
@lowers("SpaceToDepth", 28)
def _lower_order(node: NodeProto, scope: Scope) -> Outcome:
    """CRD numbers channels (depth, block), DCR (block, depth): before the one operator, and behind the other."""
    if value_of(node, "mode", "DCR") == "DCR":
        return None
    block = int(value_of(node, "blocksize"))
    body, channels = Writer(node, scope), _channels(node, scope)
    if node.op_type == "DepthToSpace":
        order = np.arange(channels).reshape(-1, block * block).T.reshape(-1)
        turned = body.add("Gather", node.input[0], body.integers(order, "channels"), axis=1)
        return body.yields("DepthToSpace", turned, blocksize=block)
    order = np.arange(channels * block * block).reshape(block * block, channels).T.reshape(-1)
    blocks = body.add("SpaceToDepth", node.input[0], blocksize=block)
    return body.yields("Gather", blocks, body.integers(order, "channels"), axis=1)


@expresses("ReverseSequence", opset=10, reads=10)
def _reverse_sequence(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The steps of all sequences as one row of rows, gathered by computed places."""
    body = Writer(node, scope)
    rank = scope.needed_rank(node.input[0])
    turned = [1, 0, *range(2, rank)] if int(value_of(node, "time_axis", 0)) == 0 else []
    data = body.add("Transpose", node.input[0], tail="turned", perm=turned) if turned else node.input[0]
    sizes = body.add("Shape", data, tail="sizes")

    column = body.integers([-1, 1], "column")
    batch = ramp(body, body.add("Gather", sizes, body.number(0), tail="batch", axis=0))
    time = body.add("Gather", sizes, body.number(1), tail="time", axis=0)
    step = ramp(body, time)
    length = body.add("Reshape", node.input[1], column, tail="lengths")
    last = body.add("Sub", length, body.number(1), tail="last")
    inside = body.add("Less", step, length, tail="is_inside")
    place = body.add("Where", inside, body.add("Sub", last, step, tail="from_the_end"), step, tail="place")
    start = body.add("Mul", body.add("Reshape", batch, column, tail="row"), time, tail="start")
    rest = body.add("Slice", sizes, body.number(2), body.number(TO_THE_END), tail="rest")
    rows = body.add("Reshape", data, body.add("Concat", body.number(-1), rest, tail="row_shape", axis=0), tail="rows")
    places = body.add("Add", start, place, tail="places")
    if not turned:
        return body.yields("Gather", rows, places, axis=0)
    return body.yields("Transpose", body.add("Gather", rows, places, tail="reversed", axis=0), perm=turned)


@expresses("TensorScatter", opset=13)
def _tensor_scatter(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Place p of a sample takes element p - start of the update where there is one, else its own of the cache.

    Both are one row to gather from, so that no runtime needs to scatter.
    """
    body = Writer(node, scope)
    cache, update, start = node.input[0], node.input[1], body.input(2)
    rank = scope.needed_rank(cache)
    axis = from_the_front(int(value_of(node, "axis", -2)), rank)
    zero = body.number(0)

    def size(name: str, tail: str) -> str:
        place = body.integers([axis], f"axis_{axis}")
        return body.add("Gather", body.add("Shape", name, tail=f"{tail}_shape"), place, tail=tail, axis=0)

    length, count = size(cache, "length"), size(update, "count")
    along = body.integers([1] * axis + [-1] + [1] * (rank - axis - 1), "along_the_sequence")
    places = body.add("Reshape", ramp(body, length), along, tail="places")
    offset = places
    if start:
        samples = body.integers([-1] + [1] * (rank - 1), "along_the_batch")
        first = body.add("Reshape", start, samples, tail="first")
        offset = body.add("Sub", places, first, tail="offset")
        if value_of(node, "mode", "linear") == "circular":
            offset = body.add("Mod", offset, length, tail="turned")
    is_new = body.add("Less", offset, count, tail="is_before_the_end")
    is_new = body.add("And", is_new, body.add("Not", body.add("Less", offset, zero, tail="is_earlier")), tail="is_new")
    # The update lies behind the cache, so that its elements are numbered from the length of the cache on.
    moved = body.add("Add", offset, length, tail="behind")
    source = body.add("Where", is_new, moved, places, tail="source")
    both = body.add("Concat", cache, update, tail="old_and_new", axis=axis)
    whole = body.add("Expand", source, body.add("Shape", cache, tail="shape"), tail="sources")
    return body.yields("GatherElements", both, whole, axis=axis)
