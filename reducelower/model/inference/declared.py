"""Write element types and ranks that the user declares into a copy of the model used for shape inference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onnx import FunctionProto, GraphProto, ModelProto, TypeProto

from reducelower.model.graph import bodies, subgraphs
from reducelower.model.schemas import element_type_name
from reducelower.model.text import did_you_mean
from reducelower.model.value_info import stated_type

__all__ = ["declare", "names_in", "objection"]


def declare(holder: GraphProto | FunctionProto, element_types: Mapping[str, int], ranks: Mapping[str, int]) -> None:
    """State the declared types in a graph or function and its subgraphs, so that inference starts from them."""
    if not element_types and not ranks:
        return
    ends = (*holder.output, *holder.input) if isinstance(holder, GraphProto) else ()
    stated = {value.name: value for value in (*holder.value_info, *ends)}
    for name in sorted((element_types.keys() | ranks.keys()) & set(_defined_in(holder))):
        value = stated[name] if name in stated else holder.value_info.add(name=name)
        _complete(value.type, element_types.get(name), ranks.get(name))
    for node in holder.node:
        for _, _, inner in subgraphs(node):
            declare(inner, element_types, ranks)


def _complete(stated: TypeProto, element_type: int | None, rank: int | None) -> None:
    if stated.WhichOneof("value") not in (None, "tensor_type"):
        return
    tensor = stated.tensor_type
    if element_type is not None:
        tensor.elem_type = element_type
    if rank is not None and not tensor.HasField("shape"):
        tensor.shape.SetInParent()
        for _ in range(rank):
            tensor.shape.dim.add()


def objection(model: ModelProto, element_types: Mapping[str, int], ranks: Mapping[str, int]) -> str:
    """Return a sentence about a declaration that contradicts the model, or an empty string.

    Several graphs may use one name. A declaration is accepted if it equals the type in one of them, or fills it in.
    `model` has the inferred types, without the declared ones.
    """
    known = names_in(model)
    types = [(set(_defined_in(holder)), _types_in(holder)) for _, holder in bodies(model)]
    kinds: tuple[tuple[str, Mapping[str, int], Callable[[int], str]], ...] = (
        ("element type", element_types, element_type_name),
        ("rank", ranks, str),
    )
    for at, (what, declared, spelled) in enumerate(kinds):
        for name, value in sorted(declared.items()):
            if name not in known:
                return f"no value of the model is named {name!r}, whose {what} is declared{did_you_mean(name, known)}"
            found = {stated.get(name, (None, None))[at] for names, stated in types if name in names}
            if not found & {None, value}:
                there = spelled(min(each for each in found if each is not None))
                return f"the {what} of {name!r} is {there}, and {spelled(value)} is declared of it"
    return ""


def names_in(model: ModelProto) -> set[str]:
    """All value names in the graphs and functions of a model."""
    return {name for _, holder in bodies(model) for name in _defined_in(holder)}


def _types_in(holder: GraphProto | FunctionProto) -> dict[str, tuple[int | None, int | None]]:
    """Stated element type and rank by name."""
    stated = list(holder.value_info)
    types: dict[str, tuple[int | None, int | None]] = {}
    if isinstance(holder, GraphProto):
        stated += [*holder.output, *holder.input]
        types = {tensor.name: (tensor.data_type, len(tensor.dims)) for tensor in holder.initializer}
    for value in stated:
        contents = stated_type(value.type)
        types[value.name] = (contents.element_type or None, None if contents.sizes is None else len(contents.sizes))
    return types


def _defined_in(holder: GraphProto | FunctionProto) -> Iterator[str]:
    if isinstance(holder, GraphProto):
        yield from (value.name for value in holder.input)
        yield from (tensor.name for tensor in holder.initializer)
    else:
        yield from holder.input
    for node in holder.node:
        yield from node.output
