"""Element types that the target's version of an operator does not take: cast, compute, cast back.

Only where the wider type holds every value and the result comes back exactly; otherwise the node is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, defs, helper

from reducelower.build import make_node
from reducelower.errors import RefusedError
from reducelower.schemas import element_type_name, schema
from reducelower.scope import Scope

__all__ = ["CAST_OPSET", "Retype", "cast_around", "retype", "retypes"]

CAST_OPSET = 13
"""Opset version that the nodes added here are written for."""

Retype: TypeAlias = Callable[
    [NodeProto, Scope, int, defs.OpSchema], "tuple[list[NodeProto], NodeProto, list[NodeProto]]"
]
"""Nodes to put before a node, the node itself, nodes to put after it; the ones added are written for `CAST_OPSET`."""

_RETYPES: dict[str, Retype] = {}


def retypes(*op_types: str) -> Callable[[Retype], Retype]:
    """Register what operators do about data of an element type the target's version of them does not take."""

    def register(answer: Retype) -> Retype:
        for op_type in op_types:
            _RETYPES[op_type] = answer
        return answer

    return register


def retype(
    node: NodeProto, scope: Scope, element_type: int, goal: defs.OpSchema
) -> tuple[list[NodeProto], NodeProto, list[NodeProto]]:
    """Fit a node to a version of its operator that does not take an element type.

    Raises:
        RefusedError: no wider type would give the same result.
    """
    answer = _RETYPES.get(node.op_type)
    if answer is None:
        raise _refusal(node, element_type)
    return answer(node, scope, element_type, goal)


def cast_around(
    node: NodeProto, scope: Scope, element_type: int, wide: int, *, clamp: bool
) -> tuple[list[NodeProto], NodeProto, list[NodeProto]]:
    """Compute one node in a wider element type: its data cast to it, every output cast back.

    Args:
        node: the node; its inputs and outputs are renamed in place.
        scope: where it stands.
        element_type: element type of the data.
        wide: element type that holds every value of it exactly.
        clamp: whether results may lie outside the narrow type's range (the maximum of nothing is minus infinity) and
            must be brought back to its ends, as computing in the narrow type would.
    """
    stem = node.name or node.output[0]
    before, after = [], []
    formals = goal_inputs(node, scope)
    for index, name in enumerate(node.input):
        narrow = f"tensor({element_type_name(element_type)})"
        if name and scope.element_type(name) == element_type and narrow not in formals(index):
            cast = scope.ground.names.fresh(stem, f"/{node.op_type}/{element_type_name(wide)}")
            scope.declare(cast, wide)
            before.append(make_node("Cast", [name], [cast], to=wide))
            node.input[index] = cast
    for index, name in enumerate(node.output):
        if not name:
            continue
        result = scope.ground.names.fresh(stem, f"/{node.op_type}/result")
        node.output[index] = result
        scope.declare(result, wide)
        if clamp:
            lowest, highest = _range(element_type)
            clamped = scope.ground.names.fresh(stem, f"/{node.op_type}/clamped")
            dtype = helper.tensor_dtype_to_np_dtype(wide)
            bounds = [
                scope.add_constant(np.array(bound, dtype), f"{element_type_name(element_type)}_{end}")
                for end, bound in (("lowest", lowest), ("highest", highest))
            ]
            scope.declare(clamped, wide)
            after.append(make_node("Clip", [result, *bounds], [clamped]))
            result = clamped
        last = make_node("Cast", [result], [name], to=element_type)
        last.name = scope.ground.names.fresh(stem, f"/{node.op_type}/{element_type_name(element_type)}")
        after.append(last)
    return before, node, after


def goal_inputs(node: NodeProto, scope: Scope) -> Callable[[int], Collection[str]]:
    """Types that each input of a node may have at the target, as schemas spell them."""
    goal = schema(node.op_type, scope.ground.opset)
    formals = [] if goal is None else list(goal.inputs)
    return lambda index: formals[min(index, len(formals) - 1)].types if formals else ()


def _range(element_type: int) -> tuple[int, int]:
    if element_type == TensorProto.BOOL:
        return 0, 1
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(element_type))
    return int(limits.min), int(limits.max)


@retypes("ReduceMax", "ReduceMin")
def _order(
    node: NodeProto, scope: Scope, element_type: int, goal: defs.OpSchema
) -> tuple[list[NodeProto], NodeProto, list[NodeProto]]:
    """The largest of bools or small integers is the largest of the same numbers as floats."""
    if element_type not in (TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8):
        raise _refusal(node, element_type)
    return cast_around(node, scope, element_type, TensorProto.FLOAT, clamp=True)


@retypes("ReduceLogSum", "ReduceLogSumExp")
def _logarithm(
    node: NodeProto, scope: Scope, element_type: int, goal: defs.OpSchema
) -> tuple[list[NodeProto], NodeProto, list[NodeProto]]:
    """Integers compute in double and truncate, as the specification's function body says where it takes integers."""
    if element_type not in (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64):
        raise _refusal(node, element_type)
    return cast_around(node, scope, element_type, TensorProto.DOUBLE, clamp=False)


def _refusal(node: NodeProto, element_type: int) -> RefusedError:
    return RefusedError(
        f"{node.op_type} does not take {element_type_name(element_type)} there, and no wider type gives the same result"
    )
