"""Replace branches of an If that its constant condition never takes: runtimes do not look at their nodes."""

from __future__ import annotations

from copy import deepcopy

from onnx import ModelProto

from reducelower.model.graph import subgraphs
from reducelower.types import Inference

__all__ = ["without_dead_branches"]

_BRANCHES = {"else_branch", "then_branch"}


def without_dead_branches(model: ModelProto) -> ModelProto | None:
    """A copy with the other branch in place of each branch that is never taken; None if there is no such branch.

    The model need not be valid.
    """
    copy = deepcopy(model)
    inference, edited = Inference(model), Inference(copy)
    has_replaced = False
    for key in reversed(inference.keys):  # inner graphs first
        for node, own in zip(inference.graph(key).holder.node, edited.graph(key).holder.node, strict=True):
            branches = {name: graph for _, name, graph in subgraphs(own)}
            never_taken = inference.never_taken(key, node) if branches.keys() == _BRANCHES else ""
            if never_taken:
                (taken,) = branches.keys() - {never_taken}
                branches[never_taken].CopyFrom(branches[taken])
                has_replaced = True
    for each in (inference, edited):  # in a circle with their graphs, which would wait for the garbage collector
        each.clear()
    return copy if has_replaced else None
