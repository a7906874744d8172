"""The truth about floats: the same nodes in double, where float or float16 lose digits or range."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, defs, helper, inliner, numpy_helper

from reducelower.files.external import all_tensors
from reducelower.model.graph import all_nodes, graphs
from reducelower.model.numbers import FLOATS
from reducelower.model.schemas import DEFAULT_DOMAINS, has_body, schema
from reducelower.numerics.measure import is_float
from reducelower.verification.running.reference_gaps import TYPES_IN_ATTRIBUTES, float_types, wrong_in_reference
from reducelower.verification.running.runtimes import ReferenceRuntime, Session, try_load
from reducelower.verification.running.source import Source, default_opset

__all__ = ["InDouble", "with_bodies"]

_KEPT = [("", "Clip"), ("", "Range")]  # whose bodies depend on types that are not known within another


@dataclass(frozen=True)
class InDouble:
    """A model in double, in the reference evaluator; it exists only where all floats of the model are of one type."""

    session: Session

    @staticmethod
    def of(model: ModelProto) -> InDouble | None:
        """The model in double, its results too; None where that fails."""
        kinds = float_types(model)
        if wrong_in_reference(model) or len(kinds) != 1:
            return None
        if any(node.domain not in DEFAULT_DOMAINS for node in all_nodes(model)):
            return None
        # Bodies hold casts to float that operators do not show, those of doubles too.
        stated = with_bodies(model) or model
        if float_types(stated) == {TensorProto.DOUBLE}:
            return None
        wide = deepcopy(stated)
        _widen(wide)
        for value in wide.graph.output:
            value.type.Clear()
        session = try_load(ReferenceRuntime(), Source(wide))
        return None if session is None else InDouble(session)

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """The outputs for inputs in the model's own element types."""
        wide = {
            name: value.astype(np.float64) if isinstance(value, np.ndarray) and is_float(value) else value
            for name, value in feeds.items()
        }
        return self.session.run(wide, timeout)


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


def with_bodies(model: ModelProto) -> ModelProto | None:
    """The model with what the specification says in place of operators that are functions; None where none is."""
    nodes = list(all_nodes(model))
    if not any(_is_function(node, default_opset(model)) for node in nodes):
        return None
    stated = deepcopy(model)
    for tensor in model.graph.initializer:  # whose types bodies that depend on types do not see
        stated.graph.value_info.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    for node in all_nodes(stated):
        _state_defaults(node, default_opset(model))
    for kept in (_KEPT, _by_types()):
        try:
            return inliner.inline_selected_functions(stated, kept, exclude=True, inline_schema_functions=True)
        except Exception:  # bodies that depend on types that are not known, and versions of onnx without this
            continue
    return None


@cache
def _by_types() -> list[tuple[str, str]]:
    """The operators whose bodies depend on types, which within other bodies are not known."""
    found: list[Any] = [item for item in defs.get_all_schemas() if item.domain in DEFAULT_DOMAINS]
    return [("", item.name) for item in found if item.has_context_dependent_function]


def _state_defaults(node: NodeProto, opset: int) -> None:
    """Add the attributes that are at their default, to which bodies refer as to any."""
    found = schema(node.op_type, opset) if _is_function(node, opset) else None
    if found is not None:
        given = {item.name for item in node.attribute}
        defaults = (item.default_value for name, item in sorted(found.attributes.items()) if name not in given)
        node.attribute.extend(item for item in defaults if item.name)


def _is_function(node: NodeProto, opset: int) -> bool:
    found = schema(node.op_type, opset) if node.domain in DEFAULT_DOMAINS else None
    return found is not None and has_body(found)
