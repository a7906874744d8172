"""All types of a model that can be inferred, in subgraphs and bodies of functions too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial

from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
    shape_inference,
)

from reducelower.model.calls import (
    FunctionId,
    attributes_of_call,
    bind,
    called_function,
    functions_of,
    reached,
)
from reducelower.model.graph import walk
from reducelower.model.inference import protected
from reducelower.model.inference.shapes import drop_value_info, infer_with_help, propagate_data
from reducelower.model.value_info import without_made_up_symbols

__all__ = ["complete_types", "infer", "infer_body", "infer_function", "infer_strictly"]


def infer(model: ModelProto) -> ModelProto:
    """Infer as many types as possible, in a model copy used for its types only.

    If stated types of inner values are in the way, all of them are dropped; invalid nodes are skipped.
    """
    found, is_inferred = infer_with_help(model, lenient=True)
    complete_types(found, is_inferred=is_inferred)
    return found


def infer_strictly(model: ModelProto) -> tuple[ModelProto, str]:
    """Infer types in a model copy, and return them with the objection of strict inference, empty if there is none.

    The objection may also be to the model with these types stated: they may be more than strict inference finds by
    itself, and show that another stated type is wrong.
    """
    try:
        found = protected.infer_shapes(model, check_type=True, strict_mode=True)
        data = found.SerializeToString()
        if any(map(_has_open_size, found.graph.value_info)):
            found = propagate_data(model, found)
        complete_types(found, is_inferred=True, lenient=False)
        if found.SerializeToString() != data:
            protected.infer_shapes(found, check_type=True, strict_mode=True)
    except Exception as error:  # inference raises several types
        objection = " ".join(str(error).split()) or type(error).__name__
        try:
            return infer(model), objection
        except Exception:
            return model, objection
    return found, ""


def complete_types(model: ModelProto, *, is_inferred: bool, lenient: bool = True) -> None:
    """Complete the types that onnx's inference left open. If a stated type is in the way, raise, or drop all stated
    types."""
    from reducelower.model.inference.completion import complete

    of_call = partial(_types_of_call, functions_of(model), model.ir_version)
    try:
        complete(model, of_call, is_inferred=is_inferred, objects=True)
    except shape_inference.InferenceError:
        if not lenient:
            raise
        drop_value_info(model.graph)
        found, is_inferred = infer_with_help(model, lenient=True)
        model.CopyFrom(found)
        complete(model, of_call, is_inferred=is_inferred)


def _types_of_call(
    functions: Mapping[FunctionId, FunctionProto], ir_version: int, call: NodeProto, given: list[TypeProto | None]
) -> list[TypeProto | None]:
    """The output types of a call of a model-local function, from its input types."""
    function = functions.get(called_function(call))
    if function is None:  # there is none of this overload
        return []
    bound = FunctionProto()
    bound.CopyFrom(function)
    bind(bound.node, attributes_of_call(function, call))
    types = {name: found for name, found in zip(function.input, given, strict=False) if found is not None}
    body = infer_function(bound, types, functions, ir_version)
    types.update((value.name, without_made_up_symbols(value.type)) for value in body.value_info)
    return [types.get(name) for name in function.output]


def _has_open_size(value: ValueInfoProto) -> bool:
    return any(dim.WhichOneof("value") is None for dim in value.type.tensor_type.shape.dim)


def infer_function(
    function: FunctionProto,
    types: Mapping[str, TypeProto],
    functions: Mapping[FunctionId, FunctionProto],
    ir_version: int,
) -> GraphProto:
    """A function body as a graph, with types inferred from the types of its inputs.

    If nodes refer to attributes of the function, shapes depend on the call, and only element types are kept.

    Args:
        function: the function.
        types: known types of its inputs, by name.
        functions: the model's functions, which it may call.
        ir_version: that of the model.
    """
    graph = GraphProto(name=function.name)
    graph.node.extend(function.node)
    for name in function.input:
        if name in types:
            graph.input.add(name=name).type.CopyFrom(types[name])
    body = ModelProto(ir_version=ir_version, graph=graph)
    body.opset_import.extend(function.opset_import)
    body.functions.extend(reached(function.node, functions).values())
    try:
        inferred = infer(body).graph
    except Exception:
        return graph
    if _has_references(function.node):
        for value in inferred.value_info:
            if value.type.WhichOneof("value") == "tensor_type":
                value.type.tensor_type.ClearField("shape")
    return inferred


def _has_references(nodes: Iterable[NodeProto]) -> bool:
    return any(attribute.ref_attr_name for node in walk(nodes) for attribute in node.attribute)


_BODIES_KEPT = 512


def infer_body(nodes: list[NodeProto], types: Mapping[str, TypeProto], opset: int) -> GraphProto:
    """A few nodes as a graph, with all types inferred from the types of their inputs.

    The result is cached, since the same bodies come up again and again, so do not change it.
    """
    function = FunctionProto(name="body", node=nodes, input=types)
    function.opset_import.add(version=opset)
    return _infer_body(function.SerializeToString(), tuple(found.SerializeToString() for found in types.values()))


@lru_cache(_BODIES_KEPT)
def _infer_body(body: bytes, types: tuple[bytes, ...]) -> GraphProto:
    function = FunctionProto.FromString(body)
    given = dict(zip(function.input, map(TypeProto.FromString, types), strict=True))
    return infer_function(function, given, {}, 10)
