"""Scattering with a reduction for runtimes that leave it out: one index after the other, few of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.model.attributes import value_of
from reducelower.runtimes.remedies import Remedy, Written
from reducelower.scope.scope import Scope

__all__ = ["SCATTERING"]

_OPSET = 13
"""Opset version that the nodes are written for, which has no reduction."""

_MOST = 64
"""Indices for each of which five nodes are written."""

_STEPS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
"""What puts together what is there and an update, by reduction."""

_COUNTABLE = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64)


def _one_by_one(node: NodeProto, scope: Scope) -> Written | None:
    """Put each update together with what is there by then, and scatter that."""
    step = _STEPS.get(value_of(node, "reduction", "none"))
    data, indices, updates = node.input
    sizes, extents = scope.shape(indices), scope.shape(data)
    if step is None or not sizes or not extents or scope.needed_element_type(data) not in _COUNTABLE:
        return None
    body = Writer(node, scope)
    is_nd = node.op_type == "ScatterND"
    axis = 0 if is_nd else value_of(node, "axis", 0)
    known = [size for size in (*sizes, *extents) if size is not None]
    count = prod(known[: len(sizes) - 1]) if is_nd else known[axis % len(sizes)]
    if len(known) < len(sizes) + len(extents) or not 0 < count <= _MOST:
        return None
    if is_nd and len(sizes) != 2:  # one list of them all
        depth = known[len(sizes) - 1]
        indices = body.add("Reshape", indices, body.integers([count, depth], "shape"), tail="indices")
        updates = body.add(
            "Reshape", updates, body.integers([count, *known[len(sizes) + depth :]], "shape"), tail="updates"
        )
    stated: dict[str, Any] = {} if is_nd else {"axis": axis}
    for at in range(count):
        bounds = [body.number(place) for place in (at, at + 1, axis)]
        place, update = (body.add("Slice", name, *bounds, tail=f"part_{at}") for name in (indices, updates))
        there = body.add("GatherND" if is_nd else "GatherElements", data, place, tail=f"there_{at}", **stated)
        both = body.add(step, there, update, tail=f"both_{at}")
        data = body.add(node.op_type, data, place, both, tail=f"scattered_{at}", **stated)
    return body.yields_value(data), _OPSET


SCATTERING: Mapping[str, Mapping[str, Remedy]] = {
    operator: {"one index after the other": _one_by_one} for operator in ("ScatterElements", "ScatterND")
}
"""By operator."""
