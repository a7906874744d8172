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
    """onnx's cases of one node of the operator, with the values they feed: one of each form.

    Of a form are those of the same attributes, and of inputs of the same element types, ranks and whole numbers.
    """
    met = set[object]()
    for case in _cases(op_type):
        model, (given, _) = case.model, case.data_sets[0]
        node = model.graph.node[0]
        if not is_repeatable(node) or not all(isinstance(value, np.ndarray) for value in given):
            continue
        attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
        inputs = [(value.dtype, value.ndim, value.tolist() if value.dtype == np.int64 else ()) for value in given]
        form = repr((opset_of(model), attributes, [bool(name) for name in (*node.input, *node.output)], inputs))
        if form not in met:
            met.add(form)
            yield case.name, model, dict(zip([value.name for value in model.graph.input], given, strict=True))


@cache
def _cases(op_type: str) -> list[Any]:
    """Those in modules that are named like the operator: they are computed when loaded, for which all take seconds."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, name, _ in pkgutil.iter_modules(node.__path__):
            if name.replace("_", "").startswith(op_type.lower()):
                importlib.import_module(f"{node.__name__}.{name}")
    cases = [case for case in node._NodeTestCases if case.model is not None and case.data_sets]
    return [case for case in cases if [each.op_type for each in case.model.graph.node] == [op_type]]
