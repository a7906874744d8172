"""Bernoulli where the target has none: a uniform draw compared with the chance.

The function body in the schema (onnx 1.23.2) compares the other way round, and so yields 1 with the chance
of 0. Source: https://onnx.ai/onnx/operators/onnx__Bernoulli.html (15, 22).
"""

from __future__ import annotations

from typing import Any

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.model.attributes import attribute_of, value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []


@expresses("Bernoulli", opset=13)
def _bernoulli(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """1 where a number between 0, included, and 1, excluded, is below the chance; so never at 0 and always at 1."""
    body = Writer(node, scope)
    chances = node.input[0]
    element_type = scope.needed_element_type(chances)
    # A short float could round a draw up to 1.
    wide = TensorProto.DOUBLE if element_type == TensorProto.DOUBLE else TensorProto.FLOAT
    if wide != element_type:
        chances = body.add("Cast", chances, tail="chances", to=wide)
    seed: dict[str, Any] = {} if attribute_of(node, "seed") is None else {"seed": value_of(node, "seed", 0.0)}
    drawn = body.add("RandomUniformLike", chances, tail="drawn", dtype=wide, low=0.0, high=1.0, **seed)
    goal = int(value_of(node, "dtype", element_type))
    if goal == TensorProto.BOOL:
        return body.yields("Less", drawn, chances)
    return body.yields("Cast", body.add("Less", drawn, chances, tail="happens"), to=goal)
