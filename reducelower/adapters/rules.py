"""The rules that say what becomes of a node, in the order in which they are tried.

The user's own come first, then those of the package: text, rows, and the functions in `ops`, which `rule` registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeAlias

from onnx import NodeProto

from reducelower.adapters import ops
from reducelower.adapters.builder import Writer
from reducelower.rulebook.asked import Tried
from reducelower.rulebook.boundaries import Alternatives, Boundaries, shipped
from reducelower.rulebook.occasions import Occasion, Way, Written
from reducelower.rulebook.rows import rows_of
from reducelower.scope.body import AnyScope

__all__ = ["AnyRule", "Function", "first", "rule", "rules_for"]


class AnyRule(Protocol):
    """What a node becomes on an occasion."""

    @property
    def occasion(self) -> Occasion:
        """When it is tried."""

    def written(self, tried: Tried) -> Written | None:
        """What replaces the node; None if the next rule is to be tried, perhaps on the node as edited.

        Raises:
            RefusedError: the node cannot be rewritten.
        """


_Write: TypeAlias = Callable[[Writer], "list[NodeProto] | None"]


@dataclass(frozen=True)
class Function:
    """A rule in Python; opset 0 stands for that of the node."""

    occasion: Occasion
    opset: int
    write: _Write

    def written(self, tried: Tried) -> Written | None:
        """See `AnyRule.written`."""
        nodes = self.write(Writer(tried.node, tried.scope))
        return None if nodes is None else Written(nodes, self.opset or tried.opset)


_FUNCTIONS: dict[str, list[Function]] = {}


def rule(op_types: str, overload: str, opset: int = 0) -> Callable[[_Write], _Write]:
    """Register a function as a rule for operators; `overload` says when it is tried, as that of a rule in text.

    The nodes that it returns are written for `opset`, by default that of the far side of the boundary. The function may
    edit the node and return None. Then the next rules are tried, and at a boundary the changes in the schemas applied.
    """
    occasion = Occasion.of(overload)
    far_side = int(occasion.at or 0) - (occasion.way == "below")

    def register(write: _Write) -> _Write:
        for op_type in op_types.split():
            _FUNCTIONS.setdefault(op_type, []).append(Function(occasion, opset or far_side, write))
        return write

    return register


def rules_for(op_type: str, way: Way, boundary: int = 0, own: Boundaries | None = None) -> list[AnyRule]:
    """The rules for an operator on an occasion, the user's `own` first; see `Occasion.is_at`."""
    ops.load(op_type)
    of_user = () if own is None else own.rules(op_type)
    texts = [each for each in (*of_user, *shipped().rules(op_type)) if each.occasion.is_at(op_type, way, boundary)]
    others = (*rows_of(op_type), *_FUNCTIONS.get(op_type, ()))
    return [
        *(Alternatives(tuple(group)) for _, group in groupby(texts, lambda each: each.occasion.boundary(op_type))),
        *(each for each in others if each.occasion.is_at(op_type, way, boundary)),
    ]


def first(rules: Iterable[AnyRule], node: NodeProto, scope: AnyScope, opset: int) -> Written | None:
    """What the first rule that is for a node writes in place of it; None if none is.

    Raises:
        RefusedError: the rule refuses the node, which is written for `opset`.
    """
    tried = Tried(node, scope, opset)
    for each in rules:
        written = each.written(tried)
        if written is not None:
            return written
    return None
