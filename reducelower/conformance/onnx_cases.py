"""onnx's own cases of one node, by operator."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.legalization.tidying import is_repeatable
from reducelower.model.schemas import opset_of

__all__ = ["cases_of"]


def cases_of(op_type: str) -> Iterator[tuple[str, ModelProto, dict[str, Any]]]:
    """onnx's single-node cases of the operator, with their input values: one for each form.

    Cases have the same form if their attributes, the element types and ranks of inputs, and int64 inputs are equal.
    """
    seen = set[object]()
    for case in _cases(op_type):
        model, (inputs, _) = case.model, case.data_sets[0]
        node = model.graph.node[0]
        if not is_repeatable(node) or not all(isinstance(value, np.ndarray) for value in inputs):
            continue
        attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
        input_forms = [(value.dtype, value.ndim, value.tolist() if value.dtype == np.int64 else ()) for value in inputs]
        form = repr((opset_of(model), attributes, [bool(name) for name in (*node.input, *node.output)], input_forms))
        if form not in seen:
            seen.add(form)
            yield case.name, model, dict(zip([value.name for value in model.graph.input], inputs, strict=True))


@cache
def _cases(op_type: str) -> list[Any]:
    """The cases in modules named like the operator. Loading a module computes its cases; all of them take seconds."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, name, _ in pkgutil.iter_modules(node.__path__):
            if name.replace("_", "").startswith(op_type.lower()):
                importlib.import_module(f"{node.__name__}.{name}")
    cases = [case for case in node._NodeTestCases if case.model is not None and case.data_sets]
    return [case for case in cases if [each.op_type for each in case.model.graph.node] == [op_type]]
