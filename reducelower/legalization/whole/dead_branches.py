"""Replace branches of an If that its constant condition never takes: runtimes do not look at their nodes."""

from __future__ import annotations

from onnx import ModelProto

from reducelower.legalization.whole import Attempt, Changed
from reducelower.model.document import Document
from reducelower.model.graph import UNLIKE_BRANCHES_SINCE, subgraphs
from reducelower.options import Settings
from reducelower.types import Inference

__all__ = ["replace_dead_branches", "without_dead_branches"]

_BRANCHES = {"else_branch", "then_branch"}


def without_dead_branches(tried: Attempt, settings: Settings) -> Changed | None:
    """The model without them if something is refused, or if the shapes of branches have to agree at the target."""
    source, _, plan = tried
    agree = (plan.target.opset or plan.source_opset) < UNLIKE_BRANCHES_SINCE <= plan.source_opset
    if not (agree or plan.refusals):
        return None
    made = source.copy()
    return Changed(Document(made)) if replace_dead_branches(made) else None


def replace_dead_branches(model: ModelProto) -> bool:
    """Put the other branch in the place of each branch that is never taken; return whether there was one.

    The model need not be valid.
    """
    inference = Inference(model)
    never_taken = [
        (node, never)
        for key in reversed(inference.keys)  # inner graphs first
        for node in inference.graph(key).holder.node
        if (never := inference.never_taken(key, node))
    ]
    inference.clear()  # it is in a circle with its graphs, which would wait for the garbage collector
    has_replaced = False
    for node, never in never_taken:
        branches = {name: graph for _, name, graph in subgraphs(node)}
        if branches.keys() == _BRANCHES:
            (taken,) = branches.keys() - {never}
            branches[never].CopyFrom(branches[taken])
            has_replaced = True
    return has_replaced
