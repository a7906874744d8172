"""Copies of a model without weights, for shape inference."""

from __future__ import annotations

from math import prod
from typing import Any

from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, TensorProto

from reducelower.model.value_info import clear_sizes_below_zero

__all__ = [
    "DEFAULTS_SINCE",
    "LARGEST_KEPT",
    "skeleton",
    "weight_bytes",
    "without_values",
]

DEFAULTS_SINCE = 4
"""From this IR version on, initializers need not be inputs; an initializer of an input is only its default."""

LARGEST_KEPT = 1024
"""Tensors with at most this many elements keep their values, which shape inference may read; larger ones are
weights."""


def without_values(tensor: TensorProto) -> TensorProto:
    """The tensor itself if it is small; else one of the same name, type and shape without values."""
    if prod(tensor.dims) <= LARGEST_KEPT:
        return tensor
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)


def weight_bytes(model: ModelProto) -> int:
    """The approximate size of the main graph's initializers, from their shapes alone."""
    # The message's own size method would serialize it.
    return sum(8 * prod(tensor.dims) for tensor in model.graph.initializer)


def skeleton(model: ModelProto) -> ModelProto:
    """A copy of the model without weights, made without copying any large tensor."""
    bare = ModelProto(**_fields(model, but="graph"))
    if model.HasField("graph"):
        bare.graph.MergeFrom(GraphProto(**_fields(model.graph, but="initializer")))
        bare.graph.initializer.extend(map(without_values, model.graph.initializer))
        clear_sizes_below_zero((*bare.graph.input, *bare.graph.output, *bare.graph.value_info))
    return bare


def _fields(message: Message, *, but: str) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields() if field.name != but}
