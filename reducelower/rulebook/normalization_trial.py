"""Try rules for normalizations out: run each against exact arithmetic on the calls that `calls` makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower.numerics.normalizations import exact_normalization
from reducelower.numerics.ulp import distance_in_ulps
from reducelower.rulebook.bindings import AXES
from reducelower.rulebook.book import Rule, bind
from reducelower.rulebook.normalization_specimens import Call, calls

__all__ = ["call_model", "calls", "compare_call"]


def call_model(
    rule: Rule,
    element_type: int,
    values: Sequence[npt.NDArray[Any]],
    attributes: Mapping[str, Any],
    axes: Sequence[int] | None = None,
) -> ModelProto:
    """A model whose only node calls a rule on inputs of open shapes.

    The first inputs are to have these values; axes are the next one, an initializer, which None leaves out.
    """
    function = rule.function
    given = function.input[: len(values)]
    rest = [] if len(given) == len(function.input) else ["" if axes is None else "axes"]
    initializers = [] if axes is None else [numpy_helper.from_array(np.array(axes, np.int64), "axes")]
    node = helper.make_node(
        function.name, [*given, *rest], [function.output[0]], domain=function.domain, overload=function.overload
    )
    for name, value in attributes.items():
        if name in function.attribute:
            node.attribute.append(helper.make_attribute(name, value))
    for name in rule.axes:
        bound = AXES[name].of(attributes.get("axis", -1), lambda: values[0].ndim)
        node.attribute.append(helper.make_attribute(name, bound))
    if "stash_type" in function.attribute:
        node.attribute.append(helper.make_attribute("stash_type", TensorProto.FLOAT))
    node.attribute.extend(bind(rule, element_type).values())
    inputs = [
        helper.make_tensor_value_info(name, element_type, [f"{name}{axis}" for axis in range(value.ndim)])
        for name, value in zip(given, values, strict=True)
    ]
    outputs = [helper.make_tensor_value_info(function.output[0], element_type, None)]
    graph = helper.make_graph([node], "rule", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", rule.opset), helper.make_opsetid(function.domain, 1)]
    return helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=10)


def compare_call(
    op_type: str, element_type: int, call: Call, output: npt.NDArray[Any], limit: float
) -> tuple[int, float, list[str]]:
    """How many elements were compared, their largest error, and a sentence for each that is wrong.

    An element is off by units in the last place of the largest of what it is normalized with, or of the bias that is
    added. Where the operator does not normalize, of the largest input, as of the Reduce operators.
    """
    expected = exact_normalization(op_type, call.inputs, call.attributes)
    if output.shape != expected.shape:
        return 0, 0.0, [f"{call}: shape {output.shape}, expected {expected.shape}"]
    others = call.inputs[:1] if op_type in _OF_ITS_INPUT else call.inputs[2:]
    results = _rows(expected, by_row=call.by_row)
    bases = [max(map(abs, row)) for row in results.astype(np.float64)]
    for other in others:
        sizes = np.abs(_rows(other.astype(np.float64), by_row=call.by_row and other.ndim > 1)).max(axis=1)
        bases = [max(base, size) for base, size in zip(bases, np.broadcast_to(sizes, len(bases)), strict=True)]
    largest, wrong = 0.0, []
    for given, exact, base in zip(output.astype(np.float64).reshape(results.shape), results, bases, strict=True):
        for number, value in zip(given.tolist(), exact, strict=True):
            error = distance_in_ulps(number, Decimal(value), [float(base)], element_type)
            largest = max(largest, error)
            if not error <= limit:
                wrong.append(f"{call}: {number:.9g} where {float(value):.9g} is right ({error:.3g} ULP)")
    return output.size, largest, wrong


_OF_ITS_INPUT = frozenset({"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LogSoftmax"})


def _rows(values: npt.NDArray[Any], *, by_row: bool) -> npt.NDArray[Any]:
    return values.reshape(-1, values.shape[-1]) if by_row else values.reshape(1, -1)
