"""Branches of an If that are never taken, because its condition is constant."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TypeAlias

from onnx import NodeProto

from reducelower.legalization.edits import Edit
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.scope.graph import GraphScope

__all__ = ["NeverRun", "branch_never_taken", "replace_refused"]

NeverRun: TypeAlias = "tuple[Edit, NodeProto, str, list[Edit]]"
"""The edit of a graph, an If in it, the attribute that holds the branch, and the edits in there."""

_BRANCHES = ("else_branch", "then_branch")


def branch_never_taken(node: NodeProto, graph: GraphScope) -> str:
    """The attribute that holds the branch of an If that its constant condition never takes; empty if there is none."""
    if node.op_type != "If" or node.domain not in DEFAULT_DOMAINS or not node.input:
        return ""
    condition = graph.constant(node.input[0])
    return "" if condition is None or condition.size != 1 else _BRANCHES[0 if condition.reshape(-1)[0] else 1]


def replace_refused(never_run: Iterable[NeverRun]) -> None:
    """Let the branch that is taken stand for one that is never taken and holds what cannot be legalized."""
    for edit, node, dead, inside in never_run:
        if any(inner.refused for inner in inside):
            branches = {attribute.name: attribute.g for attribute in node.attribute if attribute.name in _BRANCHES}
            (taken,) = (name for name in branches if name != dead)
            edit.scope.deferred.append(partial(branches[dead].CopyFrom, branches[taken]))
            for inner in inside:
                inner.refused.clear()
