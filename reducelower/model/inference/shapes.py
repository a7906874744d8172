"""Shape inference as onnx does it, run so that it finds as much as it can."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    defs,
    shape_inference,
)

from reducelower.model.element_types import only_element_type
from reducelower.model.graph import may_hold_graphs, subgraphs
from reducelower.model.inference import protected
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import LARGEST_KEPT

__all__ = ["drop_value_info", "infer_with_help", "propagate_data"]


def infer_with_help(model: ModelProto, *, lenient: bool) -> tuple[ModelProto, bool]:
    """Run onnx's inference; return its result and True, or the model itself and False if it fails."""
    _help_inference(model.graph, set())
    try:
        inferred = protected.infer_shapes(model, strict_mode=not lenient)
    except Exception:  # it raises several types, among them the checker's
        if not lenient:
            raise
        drop_value_info(model.graph)
        try:
            inferred = protected.infer_shapes(model)
        except Exception:
            return model, False
    return propagate_data(model, inferred), True


def propagate_data(model: ModelProto, inferred: ModelProto) -> ModelProto:
    """Infer again with data propagation, which follows the values of shapes, starting from the inferred types."""
    # Data propagation keeps a record for every element of a vector, however many there are.
    if _has_long_vector(inferred.graph) or (model.functions and _has_long_dimension(inferred.graph)):
        return inferred
    from reducelower.model.inference.completion import state_ranks

    state_ranks(model, inferred)
    try:
        return protected.infer_shapes(model, data_prop=True)
    except shape_inference.InferenceError:
        return inferred


def drop_value_info(graph: GraphProto) -> None:
    """Remove the stated types of node outputs from a graph and its subgraphs."""
    del graph.value_info[:]
    for inner in _inner_graphs(graph):
        drop_value_info(inner)


_LONGEST_OF_OTHERS = 1_000_000


def _has_long_vector(graph: GraphProto) -> bool:
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        # Values of floats tell no shape, but they are recorded as well: a million take 40 ms.
        longest = LARGEST_KEPT if tensor.elem_type in (TensorProto.INT32, TensorProto.INT64) else _LONGEST_OF_OTHERS
        dims = tensor.shape.dim
        if len(dims) == 1 and dims[0].dim_value > longest:
            return True
    return any(map(_has_long_vector, _inner_graphs(graph)))


def _has_long_dimension(graph: GraphProto) -> bool:
    """Whether a function may make a long vector of what a graph hands it: inside of functions no types are told."""
    values = chain(graph.input, graph.value_info, graph.output)
    dims = chain.from_iterable(value.type.tensor_type.shape.dim for value in values)
    return any(dim.dim_value > _LONGEST_OF_OTHERS for dim in dims) or any(
        map(_has_long_dimension, _inner_graphs(graph))
    )


def _inner_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    return (inner for node in graph.node if may_hold_graphs(node) for _, _, inner in subgraphs(node))


# Outputs have the type of the input, but the schemas lack inference.
_WITHOUT_INFERENCE = {"GroupNormalization": "", "MeanVarianceNormalization": "", "Imputer": "ai.onnx.ml"}


def _help_inference(graph: GraphProto, constants: set[str]) -> None:
    """Rewrite nodes at which inference gives up although their result type is clear."""
    constants = constants | {tensor.name for tensor in graph.initializer}
    constants |= {node.output[0] for node in graph.node if node.op_type == "Constant" and node.output}
    for node in graph.node:
        op_type = node.op_type
        if op_type.startswith("Reduce"):
            if _keeps_rank_only(node, constants):
                # Inference gives up on unknown axes. With keepdims=1 the rank stays the same, as a Slice states.
                node.op_type = "Slice"
                node.input.append(node.input[1])
                del node.attribute[:]
        elif op_type == "Squeeze":
            for attribute in node.attribute:
                attribute.ints.sort()  # before opset 11, inference sees only axes in order
        elif op_type in _WITHOUT_INFERENCE:
            if node.domain == _WITHOUT_INFERENCE[op_type]:
                node.op_type, node.domain = "Identity", ""
                del node.attribute[:], node.input[1:]
        elif may_hold_graphs(node):
            if node.domain == "ai.onnx.ml":
                _state_outputs(node, graph)
            for _, _, inner in subgraphs(node):
                _help_inference(inner, constants)


def _state_outputs(node: NodeProto, graph: GraphProto) -> None:
    """State the element types of outputs that allow only one; inference misses them if the schema has no inference."""
    if not defs.has(node.op_type, node.domain):
        return
    found = defs.get_schema(node.op_type, node.domain)
    for name, formal in zip(node.output, found.outputs, strict=False):
        if name and (only := only_element_type(found, formal)):
            graph.value_info.add(name=name).type.tensor_type.elem_type = only


def _keeps_rank_only(node: NodeProto, constants: set[str]) -> bool:
    if node.domain not in DEFAULT_DOMAINS or len(node.input) < 2 or not node.input[1] or node.input[1] in constants:
        return False
    keepdims = next((attribute for attribute in node.attribute if attribute.name == "keepdims"), None)
    return keepdims is None or (keepdims.i == 1 and not keepdims.ref_attr_name)
