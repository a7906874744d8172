"""A model without its weights, for questions that only types and the values of shapes answer."""

from __future__ import annotations

from math import prod

from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

__all__ = ["LARGEST_KEPT", "skeleton", "weight_bytes", "without_values"]

LARGEST_KEPT = 1024
"""How many elements a tensor has at most that shape inference may read the values of; larger ones are weights."""


def without_values(tensor: TensorProto) -> TensorProto:
    """The tensor itself if it is small, else one of the same name, type and shape without its values."""
    if prod(tensor.dims) <= LARGEST_KEPT:
        return tensor
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)


def weight_bytes(model: ModelProto) -> int:
    """About how many bytes the initializers of the main graph take, from their shapes alone."""
    # Asking the message for its size would serialize it.
    return sum(8 * prod(tensor.dims) for tensor in model.graph.initializer)


def skeleton(model: ModelProto) -> ModelProto:
    """A copy of the model whose initializers carry no weights; nothing large is copied on the way."""
    bare = ModelProto()
    _copy_fields(model, bare, but="graph")
    if model.HasField("graph"):
        _copy_fields(model.graph, bare.graph, but="initializer")
        bare.graph.initializer.extend(map(without_values, model.graph.initializer))
    return bare


def _copy_fields(source: Message, made: Message, *, but: str) -> None:
    for field, value in source.ListFields():
        if field.name == but:
            continue
        if hasattr(value, "extend"):
            getattr(made, field.name).extend(value)
        elif isinstance(value, Message):
            getattr(made, field.name).CopyFrom(value)
        else:
            setattr(made, field.name, value)
