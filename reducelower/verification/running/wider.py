"""Runs the same nodes in double, to see what float or float16 lose in digits or range."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, inliner, numpy_helper

from reducelower.files.external import all_tensors
from reducelower.model.graph import all_nodes, graphs
from reducelower.model.numbers import FLOATS
from reducelower.model.schemas import DEFAULT_DOMAINS, REDUCTIONS, has_body, schema
from reducelower.verification.running.reference import TYPES_IN_ATTRIBUTES, float_types, wrong_in_reference
from reducelower.verification.running.source import default_opset

__all__ = ["in_double", "modern", "with_bodies"]

_WITH_BODIES = 18
_KEPT = [("", "Clip"), ("", "Range")]  # their bodies depend on types, which are unknown within other bodies


def in_double(model: ModelProto) -> ModelProto | None:
    """The model in double, results included, for the reference evaluator, which widens what it is fed.

    None if the model has floats of several types, operators that the evaluator is no evidence for, or nothing to widen.
    """
    if wrong_in_reference(model) or len(float_types(model)) != 1:
        return None
    if any(node.domain not in DEFAULT_DOMAINS for node in all_nodes(model)):
        return None
    # The body of an operator may cast to float, even if its data is double.
    inlined = with_bodies(model) or model
    if float_types(inlined) == {TensorProto.DOUBLE}:
        return None
    wide = deepcopy(inlined)
    _widen(wide)
    for value in wide.graph.output:
        value.type.Clear()
    return wide


def _widen(model: ModelProto) -> None:
    for _, graph in graphs(model):
        for value in [*graph.input, *graph.output, *graph.value_info]:
            if value.type.tensor_type.elem_type in FLOATS:
                value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.name in TYPES_IN_ATTRIBUTES and attribute.i in FLOATS:
                attribute.i = TensorProto.DOUBLE
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                values = np.array(helper.get_attribute_value(attribute), np.float64)
                attribute.Clear()
                attribute.name, attribute.type = "value", AttributeProto.TENSOR
                attribute.t.CopyFrom(numpy_helper.from_array(values))
    for tensor in all_tensors(model):
        if tensor.data_type in FLOATS:
            wide = numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))


def modern(model: ModelProto) -> ModelProto:
    """A model of one Reduce operator at the opset version in which it got a function body; any other one itself."""
    nodes, opset = model.graph.node, default_opset(model)
    if len(nodes) != 1 or nodes[0].op_type not in REDUCTIONS or opset >= _WITH_BODIES:
        return model
    copy = deepcopy(model)
    (node,) = copy.graph.node
    axes = [item for item in node.attribute if item.name == "axes"]
    if axes:
        node.input.append("axes/of body")
        copy.graph.initializer.append(numpy_helper.from_array(np.array(axes[0].ints, np.int64), node.input[-1]))
        node.attribute.remove(axes[0])
    del copy.opset_import[:]
    copy.opset_import.add(version=_WITH_BODIES)
    return copy


def with_bodies(model: ModelProto) -> ModelProto | None:
    """The model with the specification's function bodies in place of operators; None if no operator has one."""
    nodes = list(all_nodes(model))
    if not any(_is_function(node, default_opset(model)) for node in nodes):
        return None
    copy = deepcopy(model)
    for tensor in model.graph.initializer:  # bodies that depend on types do not see those of initializers
        copy.graph.value_info.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    for node in all_nodes(copy):
        _state_defaults(node, default_opset(model))
    try:
        return inliner.inline_selected_functions(copy, _KEPT, exclude=True, inline_schema_functions=True)
    except Exception:  # a body depends on unknown types, or this version of onnx lacks the function
        return None


def _state_defaults(node: NodeProto, opset: int) -> None:
    """Add the attributes that have their default, since bodies refer to them."""
    op_schema = schema(node.op_type, opset) if _is_function(node, opset) else None
    if op_schema is not None:
        present = {item.name for item in node.attribute}
        defaults = (item.default_value for name, item in sorted(op_schema.attributes.items()) if name not in present)
        node.attribute.extend(item for item in defaults if item.name)


def _is_function(node: NodeProto, opset: int) -> bool:
    op_schema = schema(node.op_type, opset) if node.domain in DEFAULT_DOMAINS else None
    return op_schema is not None and has_body(op_schema)
