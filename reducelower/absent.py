"""Operators that the target's opset version does not have, expressed by ones it has."""

from __future__ import annotations

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.schemas import versions
from reducelower.scope import Scope

__all__ = ["replacement"]


def replacement(node: NodeProto, opset: int, scope: Scope) -> tuple[list[NodeProto], int, str]:
    """The nodes that do what a node of an absent operator does.

    Args:
        node: the node; written for `opset`.
        opset: opset version the node is written for.
        scope: where it stands; `scope.ground.opset` is the target's.

    Returns:
        The nodes, the opset version they are written for, and what the report calls this.

    Raises:
        RefusedError: it cannot be expressed there.
    """
    first = versions(node.op_type)[0]
    raise RefusedError(
        f"opset {scope.ground.opset} does not have {node.op_type}", f"opset {first} is the oldest that has it"
    )
