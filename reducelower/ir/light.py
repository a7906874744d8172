"""Convert between an onnx_ir model and a ModelProto without weights, keeping the same objects for large tensors.

The engine works on ModelProto. It reads the values of small tensors such as axes and shapes, but only type and shape of
weights. So large tensors become references to files that do not exist and are never opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from onnx import ModelProto

from reducelower.types.fold import LARGEST

__all__ = ["Light", "lighten"]

_SMALL_FILE = 1024
"""The maximum number of elements of a tensor that is read from a file; in memory, the limit is `LARGEST`."""

_Path = tuple[Any, ...]


@dataclass
class Light:
    """A model without weights; in `proto`, large tensors refer to files that do not exist."""

    proto: ModelProto
    _original: ir.Model
    _references: dict[str, ir.TensorProtocol]

    def restored(self, converted: ModelProto) -> ir.Model:
        """The converted `proto` as a model with the original's tensors and metadata."""
        model: ir.Model = ir.serde.deserialize_model(converted)
        originals, none = dict(_graphs(self._original)), ir.Graph((), (), nodes=())
        for path, graph in _graphs(model):
            self._restore(graph, originals.get(path, none))
        model.meta.update(self._original.meta)
        return model

    def _restore(self, graph: ir.Graph | ir.Function, original: ir.Graph | ir.Function) -> None:
        values = {value.name: value for value in _values(original) if value.name}
        nodes = {_key(node): node for node in original}
        for value in _values(graph):
            if value.const_value is not None:
                value.const_value = self._tensor(value.const_value)
            if (original_value := values.get(value.name or "")) is not None:
                value.meta.update(original_value.meta)
        for node in graph:
            if (original_node := nodes.get(_key(node))) is not None:
                node.meta.update(original_node.meta)
            for name, attribute in _tensors_of(node).items():
                tensor = attribute.as_tensor()
                if (restored := self._tensor(tensor)) is not tensor:
                    node.attributes[name] = ir.AttrTensor(name, restored)

    def _tensor(self, tensor: ir.TensorProtocol) -> ir.TensorProtocol:
        """The original of a large tensor."""
        return self._references.get(str(tensor.location), tensor) if isinstance(tensor, ir.ExternalTensor) else tensor


def lighten(model: ir.Model) -> Light:
    """Serialize a model without its weights; the model does not change, and no weight is read or copied."""
    references: dict[str, ir.TensorProtocol] = {}

    def stand_in(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
        is_file = isinstance(tensor, ir.ExternalTensor)
        if tensor.size <= (_SMALL_FILE if is_file else LARGEST) or tensor.dtype == ir.DataType.STRING:
            return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name) if is_file else tensor
        location = f"reducelower-weight-{len(references)}"
        references[location] = tensor
        shape = ir.Shape(tensor.shape.numpy())
        return ir.ExternalTensor(location, None, None, tensor.dtype, shape=shape, name=tensor.name or location)

    copy = model.clone()
    for _, graph in _graphs(copy):
        if isinstance(graph, ir.Graph):
            for value in graph.initializers.values():
                if value.const_value is not None:
                    value.const_value = stand_in(value.const_value)
        for node in graph:
            for name, attribute in _tensors_of(node).items():
                tensor = attribute.as_tensor()
                light = stand_in(tensor)
                if light is not tensor:
                    node.attributes[name] = ir.AttrTensor(name, light)
    return Light(ir.serde.serialize_model(copy), model, references)


def _graphs(model: ir.Model) -> Iterator[tuple[_Path, ir.Graph | ir.Function]]:
    """Every graph and function of a model, each with a key that finds its counterpart in a converted model."""
    yield from _inside((), model.graph)
    for function in model.functions.values():
        yield from _inside((function.identifier(),), function)


def _inside(path: _Path, graph: ir.Graph | ir.Function) -> Iterator[tuple[_Path, ir.Graph | ir.Function]]:
    yield path, graph
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _inside((*path, _key(node), attribute.name), attribute.as_graph())
            elif attribute.type == ir.AttributeType.GRAPHS:
                for number, inner in enumerate(attribute.as_graphs()):
                    yield from _inside((*path, _key(node), attribute.name, number), inner)


def _key(node: ir.Node) -> str:
    """The name of a node's first output, which conversions keep."""
    return next((value.name for value in node.outputs if value.name), "")


def _values(graph: ir.Graph | ir.Function) -> Iterator[ir.Value]:
    yield from graph.inputs
    if isinstance(graph, ir.Graph):
        inputs = set(graph.inputs)
        yield from (value for value in graph.initializers.values() if value not in inputs)
    for node in graph:
        yield from node.outputs


def _tensors_of(node: ir.Node) -> dict[str, ir.Attr]:
    """The attributes of a node that are tensors, by name."""
    return {
        name: attribute
        for name, attribute in node.attributes.items()
        if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref()
    }
