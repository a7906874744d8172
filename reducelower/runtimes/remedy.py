"""A remedy: another way to write a node.

It takes a node that is written for the target's opset version, and returns equivalent nodes. The engine checks these
against the facts, and tries the next remedy if a fact is true of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnx import AttributeProto, NodeProto

from reducelower.adapters.builder import Writer
from reducelower.rulebook import Rule

__all__ = ["Remedy", "Written", "rewrite"]

Written: TypeAlias = "tuple[list[NodeProto], int]"
"""Nodes, and the opset version they are written for."""


@dataclass(frozen=True)
class Remedy:
    """Another way to write a node.

    Attributes:
        name: its name in reports, and in the facts that it does not avoid.
        by: a rule whose body replaces the node, or a function that writes the replacement. The function returns None if
            it has nothing to change, and raises RefusedError if it needs something unknown.
        keeps_range: whether it may help if large or small values go wrong.
        caveat: what is still wrong on the runtime if it is used.
    """

    name: str
    by: Callable[[Writer], Written | None] | Rule
    keeps_range: bool = False
    caveat: str = ""


def rewrite(op: Writer, *inputs: str, copied: Iterable[AttributeProto] | None = None, **attributes: Any) -> Written:
    """The same operator with other inputs or attributes; by default the attributes are kept."""
    nodes = op.yields(op.node.op_type, *inputs, copied=op.node.attribute if copied is None else copied, **attributes)
    nodes[-1].output[:] = op.node.output
    return nodes, op.scope.target_opset
