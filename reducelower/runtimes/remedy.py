"""A remedy: another way to write a node.

It takes a node that is written for the target's opset version, and returns equivalent nodes. The engine checks these
against the facts, and tries the next remedy if a fact is true of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnx import AttributeProto, NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import AnyRule, Function
from reducelower.rulebook.occasions import Occasion

__all__ = ["Nodes", "Remedy", "remedy", "rewrite"]

Nodes: TypeAlias = "list[NodeProto] | None"
"""What a function writes in place of a node; None if it has nothing to change."""


@dataclass(frozen=True)
class Remedy:
    """Another way to write a node.

    Attributes:
        name: its name in reports, and in the facts that it does not avoid.
        rules: the first of these that is for the node says what replaces it.
        keeps_range: whether it may help if large or small values go wrong.
        caveat: what is still wrong on the runtime if it is used.
    """

    name: str
    rules: Sequence[AnyRule]
    keeps_range: bool = False
    caveat: str = ""


def remedy(name: str, *, opset: int = 0, keeps_range: bool = False) -> Callable[[Callable[[Writer], Nodes]], Remedy]:
    """Make a remedy of a function whose nodes are written for an opset version, by default the target's.

    The function raises RefusedError if it needs something unknown.
    """

    def made(write: Callable[[Writer], Nodes]) -> Remedy:
        return Remedy(name, (Function(Occasion("absent", ""), opset, write),), keeps_range)

    return made


def rewrite(
    op: Writer, *inputs: str, copied: Iterable[AttributeProto] | None = None, **attributes: Any
) -> list[NodeProto]:
    """The same operator with other inputs or attributes; by default the attributes are kept."""
    nodes = op.yields(op.node.op_type, *inputs, copied=op.node.attribute if copied is None else copied, **attributes)
    nodes[-1].output[:] = op.node.output
    return nodes
