"""Copies of a model without weights, for shape inference."""

from __future__ import annotations

from math import prod
from typing import Any

from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, TensorProto

from reducelower.model.value_info import clear_sizes_below_zero

__all__ = [
    "DEFAULTS_SINCE",
    "LARGEST_CONSTANT",
    "skeleton",
    "without_weights",
]

DEFAULTS_SINCE = 4
"""From this IR version on, initializers need not be inputs; an initializer of an input is only its default."""

_LARGEST_INFERRED = 1024
"""The most elements of a constant whose value shape inference may read."""

LARGEST_CONSTANT = 65_536
"""The most elements of a constant whose value a rule may read; larger ones are weights."""


def skeleton(model: ModelProto, largest: int = _LARGEST_INFERRED) -> ModelProto:
    """A copy of the model for shape inference, in which larger initializers have no values."""
    bare = without_weights(model, largest)
    clear_sizes_below_zero((*bare.graph.input, *bare.graph.output, *bare.graph.value_info))
    return bare


def without_weights(model: ModelProto, largest: int = _LARGEST_INFERRED) -> ModelProto:
    """A copy of the model in which larger initializers have no values, made without copying them."""
    bare = ModelProto(**_fields(model, but="graph"))
    if model.HasField("graph"):
        bare.graph.MergeFrom(GraphProto(**_fields(model.graph, but="initializer")))
        bare.graph.initializer.extend(
            TensorProto(name=each.name, data_type=each.data_type, dims=each.dims) if prod(each.dims) > largest else each
            for each in model.graph.initializer
        )
    return bare


def _fields(message: Message, *, but: str) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields() if field.name != but}
