"""TensorScatter where the target has none: the update of a cache, as a Gather of old and new elements.

Every place along the sequence takes its element from the cache or from the update put behind it, so that no runtime
needs to scatter.

Source: https://onnx.ai/onnx/operators/onnx__TensorScatter.html (24).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_INT64 = TensorProto.INT64


@expresses("TensorScatter", opset=13)
def _tensor_scatter(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Place p of a sample takes element p - start of the update where there is one, else its own of the cache."""
    body = Writer(node, scope)
    cache, update, start = node.input[0], node.input[1], body.input(2)
    rank = scope.needed_rank(cache)
    axis = from_the_front(int(value_of(node, "axis", -2)), rank)
    zero = body.number(0)

    def size(name: str, tail: str) -> str:
        place = body.constant([axis], _INT64, f"axis_{axis}")
        return body.add("Gather", body.add("Shape", name, tail=f"{tail}_shape"), place, tail=tail, axis=0)

    length, count = size(cache, "length"), size(update, "count")
    along = body.constant([1] * axis + [-1] + [1] * (rank - axis - 1), _INT64, "along_the_sequence")
    places = body.add("Reshape", ramp(body, length), along, tail="places")
    offset = places
    if start:
        samples = body.constant([-1] + [1] * (rank - 1), _INT64, "along_the_batch")
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
