"""The two small models that a region is run as."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
    inliner,
    numpy_helper,
    shape_inference,
)

from reducelower.model.calls import (
    attributes_given,
    attributes_of_call,
    bind,
    functions_of,
    reached,
    spell_out_defaults,
)
from reducelower.model.graph import walk
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.verification.regions.pairs import FreeInput, Pair
from reducelower.verification.regions.places import Place
from reducelower.verification.running.source import plainly_spelled

__all__ = ["opened", "small_models"]


def small_models(pair: Pair) -> Iterator[tuple[ModelProto, ModelProto]]:
    """The two models; several pairs where the node refers to attributes of the function it stands in."""
    for values in _attribute_values(pair):
        yield (
            _model(pair, pair.nodes, pair.before, pair.constants[0], values),
            _model(pair, pair.replacement, pair.after, pair.constants[1], values),
        )


def _model(
    pair: Pair, nodes: Sequence[NodeProto], place: Place, constants: dict[str, Array], values: dict[str, AttributeProto]
) -> ModelProto:
    graph = GraphProto(name="site")
    graph.node.extend(nodes)
    bind(graph.node, values)
    for item in pair.inputs:
        graph.input.add(name=item.name).type.CopyFrom(_value_type(item))
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    produced = {name for node in nodes for name in node.output if name}
    for name in pair.outputs:
        if name in produced:
            graph.output.add(name=name)
    model = ModelProto(ir_version=max(place.model.ir_version, 4), graph=graph)
    model.opset_import.extend(helper.make_opsetid(*item) for item in place.opsets.items())
    if any(node.domain not in DEFAULT_DOMAINS for node in nodes):
        model.functions.extend(place.model.functions)
        known = {item.domain for item in model.opset_import} | DEFAULT_DOMAINS
        model.opset_import.extend(item for item in place.model.opset_import if item.domain not in known)
    return _typed(plainly_spelled(model))


def _typed(model: ModelProto) -> ModelProto:
    """The model with the element types of its outputs, which the reference evaluator does not always keep to."""
    try:
        outputs = infer_shapes(model).graph.output
    except shape_inference.InferenceError:
        return model
    for value, inferred in zip(model.graph.output, outputs, strict=True):
        if inferred.type.tensor_type.elem_type:
            value.type.tensor_type.elem_type = inferred.type.tensor_type.elem_type
    return model


def _value_type(item: FreeInput) -> TypeProto:
    """Rank only, so that every size can be fed; float where the element type is not known."""
    dims = None if item.dims is None else [None] * len(item.dims)
    return helper.make_tensor_type_proto(item.element_type or TensorProto.FLOAT, dims)


def _attribute_values(pair: Pair) -> Iterator[dict[str, AttributeProto]]:
    """Values for references to function attributes: those of the calls in the model, else the function's defaults."""
    nodes = walk([*pair.nodes, *pair.replacement])
    references = {attribute.ref_attr_name for node in nodes for attribute in node.attribute if attribute.ref_attr_name}
    function = pair.before.function
    if not references or function is None:
        yield {}
        return
    seen = set()
    for given in attributes_given(pair.before.model, function) or [dict(attributes_of_call(function, NodeProto()))]:
        values = {name: given[name] for name in sorted(references) if name in given}
        key = tuple(value.SerializeToString(deterministic=True) for value in values.values())
        if key not in seen:
            seen.add(key)
            yield values


def opened(pair: Pair, nodes: list[NodeProto], place: Place, constants: dict[str, Array]) -> list[NodeProto]:
    """Nodes with the bodies of the functions that they call, which tell what may be fed."""
    if not place.model.functions or not reached(nodes, functions_of(place.model)):
        return nodes
    if any(attribute.ref_attr_name for node in walk(nodes) for attribute in node.attribute):
        return nodes  # what they refer to is another in each call of the function that they stand in
    model = _model(pair, nodes, place, constants, {})
    spell_out_defaults(model)
    try:
        return list(inliner.inline_local_functions(model).graph.node)
    except Exception:  # a body for another opset version than its caller's
        return nodes
