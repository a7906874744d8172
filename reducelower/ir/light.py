"""Convert between an onnx_ir model and a ModelProto without weights, keeping the same objects for large tensors.

The engine works on ModelProto. It reads the values of small tensors such as axes and shapes, but only type and shape of
weights. So large tensors become references to files that do not exist and are never opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir
from onnx import ModelProto

from reducelower.model.skeleton import LARGEST_CONSTANT

__all__ = ["Light", "lighten"]

_SMALL_FILE = 1024
"""The maximum number of elements of a tensor that is read from a file; in memory, the limit is `LARGEST_CONSTANT`."""


@dataclass
class Light:
    """A model without weights; in `proto`, large tensors refer to files that do not exist."""

    proto: ModelProto
    _original: ir.Model
    _references: dict[str, ir.TensorProtocol]

    def restored(self, converted: ModelProto) -> ir.Model:
        """The converted `proto` as a model with the original's tensors."""
        model: ir.Model = ir.serde.deserialize_model(converted)
        _change_tensors(model, self._tensor)
        model.meta.update(self._original.meta)
        return model

    def _tensor(self, tensor: ir.TensorProtocol) -> ir.TensorProtocol:
        """The original of a large tensor."""
        return self._references.get(str(tensor.location), tensor) if isinstance(tensor, ir.ExternalTensor) else tensor


def lighten(model: ir.Model) -> Light:
    """Serialize a model without its weights; the model does not change, and no weight is read or copied."""
    references: dict[str, ir.TensorProtocol] = {}

    def stand_in(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
        is_file = isinstance(tensor, ir.ExternalTensor)
        if tensor.size <= (_SMALL_FILE if is_file else LARGEST_CONSTANT) or tensor.dtype == ir.DataType.STRING:
            return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name) if is_file else tensor
        location = f"reducelower-weight-{len(references)}"
        references[location] = tensor
        shape = ir.Shape(tensor.shape.numpy())
        return ir.ExternalTensor(location, None, None, tensor.dtype, shape=shape, name=tensor.name or location)

    copy = model.clone()
    _change_tensors(copy, stand_in)
    return Light(ir.serde.serialize_model(copy), model, references)


def _change_tensors(model: ir.Model, change: Callable[[ir.TensorProtocol], ir.TensorProtocol]) -> None:
    """Replace initializers and attributes, in subgraphs and functions too."""
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for body in bodies:
        for holder in (body, *body.subgraphs()):
            for value in holder.initializers.values() if isinstance(holder, ir.Graph) else ():
                if value.const_value is not None:
                    value.const_value = change(value.const_value)
            for node in holder:
                for name, attribute in list(node.attributes.items()):
                    if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                        tensor = attribute.as_tensor()
                        if (changed := change(tensor)) is not tensor:
                            node.attributes[name] = ir.AttrTensor(name, changed)
