"""Stand-ins for parts that ONNX's checker cannot handle, so that it can check the rest of a model.

The checker looks for external data in files. It does not find data behind links or in another folder, and does not
know references to the model's own file. It only needs type and shape of these tensors. It also requires shapes for
inputs and outputs, unlike runtimes and onnx's own converter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_node, make_tensor_type_proto

from reducelower.files import external_tensors
from reducelower.model.graph import graphs

__all__ = ["states_every_shape", "with_every_shape_stated", "without_external_tensors"]

_LARGEST_ELEMENT = 16
_LARGEST_STAND_IN = 1 << 26
_DOMAIN = "reducelower.stand_in"


def states_every_shape(model: ModelProto) -> bool:
    """Whether every graph input and output has the type and shape that the checker requires."""
    return all(map(_is_stated, (*model.graph.input, *model.graph.output)))


def _is_stated(value: ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return bool(getattr(value.type, kind).elem_type) and getattr(value.type, kind).HasField("shape")
    return kind is not None


def with_every_shape_stated(model: ModelProto) -> ModelProto:
    """A copy in which nodes of an unknown operator replace the inputs and outputs that lack a shape.

    The checker accepts any output of such a node, but checks that its inputs are defined.
    """
    copy = deepcopy(model)
    graph = copy.graph
    for position in reversed(range(len(graph.output))):
        if not _is_stated(graph.output[position]):
            graph.node.append(make_node("Read", [graph.output[position].name], [], domain=_DOMAIN))
            del graph.output[position]
    for position in reversed(range(len(graph.input))):
        value = graph.input[position]
        if value.type.tensor_type.elem_type and not _is_stated(value):
            graph.node.insert(0, make_node("Given", [], [value.name], domain=_DOMAIN))
            del graph.input[position]
    copy.opset_import.add(domain=_DOMAIN, version=1)
    return copy


def without_external_tensors(model: ModelProto) -> ModelProto:
    """A copy with graph inputs in place of external initializers and constants: the checker needs type and shape."""
    copy = deepcopy(model)
    input_names = {value.name for value in copy.graph.input}
    for _, graph in list(graphs(copy)):
        external = {tensor.name: tensor for tensor in graph.initializer if _is_external(tensor)}
        external |= {node.output[0]: node.attribute[0].t for node in graph.node if _is_external_constant(node)}
        for name, tensor in external.items():
            if name not in input_names:
                tensor_type = make_tensor_type_proto(tensor.data_type, list(tensor.dims))
                copy.graph.input.append(ValueInfoProto(name=name, type=tensor_type))
                input_names.add(name)
        _keep(graph.initializer, lambda tensor: not _is_external(tensor))
        _keep(graph.node, lambda node: not _is_external_constant(node))
    for tensor in external_tensors(copy):  # the rest are in other attributes
        size = math.prod(tensor.dims) * _LARGEST_ELEMENT
        if size > _LARGEST_STAND_IN:
            tensor.dims[:], size = [0], 0
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
        tensor.raw_data = bytes(size)
    return copy


def _keep(items: Any, matches: Callable[[Any], bool]) -> None:
    """Keep only the matching items of a repeated field."""
    kept = list(filter(matches, items))
    if len(kept) < len(items):
        del items[:]
        items.extend(kept)


def _is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def _is_external_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and bool(node.output) and any(_is_external(item.t) for item in node.attribute)
