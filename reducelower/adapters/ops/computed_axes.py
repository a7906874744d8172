"""Squeeze and Unsqueeze of axes that are computed at run time, which were an attribute below opset 13: a Reshape.

Sources: https://onnx.ai/onnx/operators/onnx__Squeeze.html (13),
https://onnx.ai/onnx/operators/onnx__Unsqueeze.html (13).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import counted_axes
from reducelower.adapters.registry import Outcome, lowers
from reducelower.scope.scope import Scope

__all__: list[str] = []

_INT64 = TensorProto.INT64


def _is_computed(node: NodeProto, scope: Scope) -> bool:
    name = node.input[1] if len(node.input) > 1 else ""
    return bool(name) and scope.constant(name) is None and scope.reference(name) is None


@lowers("Unsqueeze", 13)
def _lower_unsqueeze(node: NodeProto, scope: Scope) -> Outcome:
    """The sizes of the data stand where no axis is named, and ones elsewhere."""
    if not _is_computed(node, scope):
        return None
    body = Writer(node, scope)
    data, axes = node.input
    sizes, given = body.add("Shape", data, tail="sizes"), scope.shape(axes)
    rank, count = scope.rank(data), None if given is None else given[0]
    if rank is None or count is None:
        counts = [body.add("Shape", name, tail="length") for name in (sizes, axes)]
        total: str | int = body.add("Add", *counts, tail="rank")
    else:
        total = rank + count
    kept = _kept(body, axes, total)
    shape = body.add("ScatterElements", _filled(body, total, 1), kept, sizes, tail="shape", axis=0)
    return body.yields_reshaped(data, shape, scope.needed_element_type(data))


@lowers("Squeeze", 13)
def _lower_squeeze(node: NodeProto, scope: Scope) -> Outcome:
    """The sizes of the data that no axis names."""
    if not _is_computed(node, scope):
        return None
    body = Writer(node, scope)
    data, axes = node.input
    sizes = body.add("Shape", data, tail="sizes")
    rank, given = scope.rank(data), scope.shape(axes)
    kept = _kept(body, axes, body.add("Shape", sizes, tail="rank") if rank is None else rank)
    if rank is not None and given is not None and given[0] is not None:
        kept = body.add("Reshape", kept, body.number(rank - given[0]), tail="places")  # so that the rank is known
    shape = body.add("Gather", sizes, kept, tail="shape", axis=0)
    return body.yields_reshaped(data, shape, scope.needed_element_type(data))


def _filled(body: Writer, length: str | int, value: int) -> str:
    """A list of one number again and again, of a length that is known, or is computed as a tensor of one number."""
    if isinstance(length, int):
        return body.constant([value] * length, _INT64, f"{length}_times_{value}")
    return body.add("ConstantOfShape", length, tail="filled", value=helper.make_tensor("value", _INT64, [1], [value]))


def _kept(body: Writer, axes: str, rank: str | int) -> str:
    """The dimensions that no axis names, in order."""
    axes = counted_axes(body, axes, body.number(rank) if isinstance(rank, int) else rank)
    ones = _filled(body, body.add("Shape", axes, tail="count"), 1)
    marked = body.add("ScatterElements", _filled(body, rank, 0), axes, ones, tail="marked", axis=0)
    free = body.add("Equal", marked, body.number(0), tail="is_kept")
    return body.add("Reshape", body.add("NonZero", free), body.number(-1), tail="kept")
