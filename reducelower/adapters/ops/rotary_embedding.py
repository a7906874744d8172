"""RotaryEmbedding where the target has none.

With the two halves of the rotated part as a and b, the schema's body yields [a * cos - b * sin, a * sin + b * cos].
That is [a, b] * [cos, cos] + [b, a] * [-sin, sin], rounded alike. The tables on the right depend on the angles alone,
so nodes with the same angles share them.

Source: the page of RotaryEmbedding (23).
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses


@expresses("RotaryEmbedding", opset=13)
def _rotated(op: Writer) -> list[NodeProto] | None:
    """Halves that lie side by side; the schema's body serves interleaved ones."""
    shape, heads = op.shape(0), int(op.attribute("num_heads", 0))
    rotated = int(op.attribute("rotary_embedding_dim", 0))
    if shape is None or len(shape) not in (3, 4) or op.attribute("interleaved", 0):
        return None
    size = shape[-1] if len(shape) == 4 else shape[-1] // heads if shape[-1] and heads else None
    if not size and (rotated or len(shape) == 3):
        return None
    data, rest = op.input(0), ""
    if len(shape) == 3:
        data = op.add("Reshape", data, op.integers([0, 0, heads, size], "by_head"), tail="by_head")
    if rotated and rotated != size:
        sizes = op.integers([rotated, (size or 0) - rotated], "sizes")
        data, rest = op.add_many("Split", [data, sizes], ["rotated", "rest"], axis=-1)
    cosines, sines = (
        op.add("Gather", op.input(table), op.input(3), tail="angles", axis=0) if op.input(3) else op.input(table)
        for table in (1, 2)
    )
    heads_axis = op.integers([1 if len(shape) == 4 else 2], "heads")
    cosines = op.add("Unsqueeze", op.add("Concat", cosines, cosines, axis=-1), heads_axis, tail="cosines")
    negated = op.add("Neg", sines, tail="negated")
    sines = op.add("Unsqueeze", op.add("Concat", negated, sines, axis=-1), heads_axis, tail="sines")
    first, second = op.add_many("Split", [data], ["first", "second"], axis=-1)
    swapped = op.add("Concat", second, first, tail="swapped", axis=-1)
    result = op.add(
        "Add", op.add("Mul", data, cosines, tail="kept"), op.add("Mul", swapped, sines, tail="turned"), tail="sum"
    )
    if rest:
        result = op.add("Concat", result, rest, tail="whole", axis=-1)
    if len(shape) == 3:
        result = op.add("Reshape", result, op.integers([0, 0, heads * (size or 0)], "together"), tail="together")
    return op.yields_value(result)
