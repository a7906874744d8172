"""A form of a model that ONNX's checker can judge: stand-ins take the place of what it cannot handle.

The checker looks for external data in files. It does not find data behind links or in another folder, and does not
know references to the model's own file. It only needs type and shape of these tensors. It also requires shapes for
inputs and outputs, unlike runtimes and onnx's own converter. Of nodes in a domain that it does not know, it accepts any
outputs, and checks that the inputs are defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_node, make_tensor_type_proto

from reducelower.files import external_tensors
from reducelower.model.document import Document
from reducelower.model.graph import graphs
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of

__all__ = ["Ignores", "checkable"]

Ignores = Callable[[NodeProto, int], bool]
"""Whether the checker shall ignore a node of ONNX's own domain in a model of an opset version."""

_LARGEST_ELEMENT = 16
_LARGEST_STAND_IN = 1 << 26
_DOMAIN = "reducelower.stand_in"


def checkable(document: Document, *, external: bool, ignores: Ignores | None) -> Document:
    """The model, or a copy with stand-ins if it needs any; `external`: some tensors have external data."""
    model = document.message
    opset = opset_of(model)

    def ignored(model: ModelProto) -> list[NodeProto]:
        nodes = (node for _, graph in graphs(model) for node in graph.node if node.domain in DEFAULT_DOMAINS)
        return [] if ignores is None else [node for node in nodes if ignores(node, opset)]

    uses_domain = bool(ignored(model)) or not all(map(_is_stated, (*model.graph.input, *model.graph.output)))
    if not uses_domain and not external:
        return document
    copy = deepcopy(model)
    if external:
        _replace_external(copy)
    if uses_domain:
        for node in ignored(copy):
            node.domain = _DOMAIN
        _replace_unstated(copy.graph)
        for imports in (copy.opset_import, *(function.opset_import for function in copy.functions)):
            imports.add(domain=_DOMAIN, version=1)
    return Document(copy)


def _is_stated(value: ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return bool(getattr(value.type, kind).elem_type) and getattr(value.type, kind).HasField("shape")
    return kind is not None


def _replace_unstated(graph: GraphProto) -> None:
    """Put nodes in the place of the inputs and outputs that lack a type or shape."""
    for position in reversed(range(len(graph.output))):
        if not _is_stated(graph.output[position]):
            graph.node.append(make_node("Read", [graph.output[position].name], [], domain=_DOMAIN))
            del graph.output[position]
    for position in reversed(range(len(graph.input))):
        value = graph.input[position]
        if value.type.tensor_type.elem_type and not _is_stated(value):
            graph.node.insert(0, make_node("Given", [], [value.name], domain=_DOMAIN))
            del graph.input[position]


def _replace_external(model: ModelProto) -> None:
    """Put graph inputs in the place of external initializers and constants."""
    input_names = {value.name for value in model.graph.input}
    for _, graph in list(graphs(model)):
        external = {tensor.name: tensor for tensor in graph.initializer if _is_external(tensor)}
        external |= {node.output[0]: node.attribute[0].t for node in graph.node if _is_external_constant(node)}
        for name, tensor in external.items():
            if name not in input_names:
                tensor_type = make_tensor_type_proto(tensor.data_type, list(tensor.dims))
                model.graph.input.append(ValueInfoProto(name=name, type=tensor_type))
                input_names.add(name)
        _keep(graph.initializer, lambda tensor: not _is_external(tensor))
        _keep(graph.node, lambda node: not _is_external_constant(node))
    for tensor in external_tensors(model):  # the rest are in other attributes
        size = math.prod(tensor.dims) * _LARGEST_ELEMENT
        if size > _LARGEST_STAND_IN:
            tensor.dims[:], size = [0], 0
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
        tensor.raw_data = bytes(size)


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
