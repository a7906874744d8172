"""Stand-ins for parts that ONNX's checker cannot handle, so that it can check the rest of a model.

The checker looks for external data in files and does not find it behind offsets, links or another working directory; it
knows nothing of references to the model's own file. All it needs of these tensors is type and shape. It also requires
stated shapes of inputs and outputs, which runtimes and onnx's own converter do not.
"""

from __future__ import annotations

import math
from copy import deepcopy

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import make_node, make_tensor_type_proto

from reducelower.files import external_tensors
from reducelower.model.graph import graphs

__all__ = ["states_every_shape", "with_every_shape_stated", "without_external_tensors"]

_LARGEST_ELEMENT = 16
_LARGEST_STAND_IN = 1 << 26
_DOMAIN = "reducelower.stand_in"


def states_every_shape(model: ModelProto) -> bool:
    """Whether every graph input and output has the type and the shape that the checker asks for."""
    return all(map(_is_stated, (*model.graph.input, *model.graph.output)))


def _is_stated(value: ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return bool(getattr(value.type, kind).elem_type) and getattr(value.type, kind).HasField("shape")
    return kind is not None


def with_every_shape_stated(model: ModelProto) -> ModelProto:
    """A copy in which nodes of an unknown operator compute the inputs and read the outputs that lack a stated shape.

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
    """A copy with graph inputs instead of external initializers, since the checker needs only type and shape."""
    copy = deepcopy(model)
    known = {value.name for value in copy.graph.input}
    for _, graph in list(graphs(copy)):
        for position in reversed(range(len(graph.initializer))):
            tensor = graph.initializer[position]
            if tensor.data_location != TensorProto.EXTERNAL:
                continue
            if tensor.name not in known:
                known.add(tensor.name)
                value_type = make_tensor_type_proto(tensor.data_type, list(tensor.dims))
                copy.graph.input.append(ValueInfoProto(name=tensor.name, type=value_type))
            del graph.initializer[position]
    for _, graph in list(graphs(copy)):
        _shrink_constants(graph)
    for function in copy.functions:
        _shrink_constants(function)
    for tensor in external_tensors(copy):  # those of attributes
        size = math.prod(tensor.dims) * _LARGEST_ELEMENT
        if size > _LARGEST_STAND_IN:
            tensor.dims[:], size = [0], 0
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
        tensor.raw_data = bytes(size)
    return copy


def _shrink_constants(holder: GraphProto | FunctionProto) -> None:
    """Replace large Constant nodes by Expand, with the same type and shape."""
    for position in reversed(range(len(holder.node))):
        node = holder.node[position]
        if node.op_type != "Constant" or len(node.attribute) != 1:
            continue
        tensor = node.attribute[0].t
        external = tensor.data_location == TensorProto.EXTERNAL
        if not external or math.prod(tensor.dims) * _LARGEST_ELEMENT <= _LARGEST_STAND_IN:
            continue
        name = node.output[0]
        one = TensorProto(data_type=tensor.data_type, raw_data=bytes(_LARGEST_ELEMENT))
        shape = numpy_helper.from_array(np.array(tensor.dims, np.int64))
        small = [
            make_node("Constant", [], [f"{name}/stand_in/one"], value=one),
            make_node("Constant", [], [f"{name}/stand_in/shape"], value=shape),
            make_node("Expand", [f"{name}/stand_in/one", f"{name}/stand_in/shape"], [name], name=node.name),
        ]
        del holder.node[position]
        for made in reversed(small):
            holder.node.insert(position, made)
