"""A form of a model that ONNX's checker can judge: stand-ins take the place of what it cannot handle.

The checker looks for external data in files. It does not find data behind links or in another folder, and does not
know references to the model's own file. It also requires shapes for inputs and outputs, unlike runtimes and onnx's own
converter. Of nodes in a domain that it does not know, it accepts any outputs, and checks that the inputs are defined.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import prod
from pathlib import Path

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_node

from reducelower.files import DataFolder, external_tensors
from reducelower.model.document import Document
from reducelower.model.graph import graphs
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.model.skeleton import LARGEST_INFERRED

__all__ = ["Ignores", "checkable"]

Ignores = Callable[[NodeProto, int], bool]
"""Whether the checker shall ignore a node of ONNX's own domain in a model of an opset version."""

_DOMAIN = "reducelower.stand_in"
_NOWHERE = "#"
"""A location of external data that the checker does not look for."""


def checkable(document: Document, *, place: Path | None, ignores: Ignores | None) -> Document:
    """The model, or a copy with stand-ins if it needs any; `place`: see `diagnosis.what_is_wrong`."""
    model = document.message
    opset = opset_of(model)

    def ignored(model: ModelProto) -> list[NodeProto]:
        nodes = (node for _, graph in graphs(model) for node in graph.node if node.domain in DEFAULT_DOMAINS)
        return [] if ignores is None else [node for node in nodes if ignores(node, opset)]

    uses_domain = bool(ignored(model)) or not all(map(_is_stated, (*model.graph.input, *model.graph.output)))
    if not uses_domain and place is None:
        return document
    copy = deepcopy(model)
    if place is not None:
        _replace_external(copy, DataFolder.of(place))
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
            graph.node.append(make_node("Output", [graph.output[position].name], [], domain=_DOMAIN))
            del graph.output[position]
    for position in reversed(range(len(graph.input))):
        value = graph.input[position]
        if value.type.tensor_type.elem_type and not _is_stated(value):
            graph.node.insert(0, make_node("Given", [], [value.name], domain=_DOMAIN))
            del graph.input[position]


def _replace_external(model: ModelProto, folder: DataFolder) -> None:
    """Read the small tensors, whose values inference asks for; of the others the checker needs type and shape."""
    for tensor in external_tensors(model):
        data = folder.read(tensor) if prod(tensor.dims) <= LARGEST_INFERRED else None
        del tensor.external_data[:]
        if data is None:
            tensor.external_data.add(key="location", value=_NOWHERE)
        else:
            tensor.data_location, tensor.raw_data = TensorProto.DEFAULT, data
