"""Branches of an If that a constant condition never takes: what they hold need not be legal, nor valid."""

from __future__ import annotations

from collections.abc import Collection

from onnx import FunctionProto, GraphProto, ModelProto

from reducelower.model.graph import function_path, inner_path, subgraphs
from reducelower.types import GraphKey, Inference, function_key

__all__ = ["without_dead_branches"]


def without_dead_branches(
    model: ModelProto, refused: Collection[str] | None = None, *, freezes_defaults: bool = False
) -> ModelProto | None:
    """A copy in which the branch that is taken stands for the one that never is; None if there is none of these.

    Args:
        model: any model, also one that is not valid.
        refused: graph paths of what is refused, so that branches without such are left as they are; None if all count.
        freezes_defaults: whether a default that callers may override is a constant.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    work = _Replacing(Inference(lambda: model, freezes_defaults=freezes_defaults), refused)
    found = work.replace(copy.graph, (), "graph")
    for number, function in enumerate(copy.functions):
        found |= work.replace(function, function_key(number), function_path(function))
    return copy if found else None


_BRANCHES = {"else_branch", "then_branch"}


class _Replacing:
    def __init__(self, inference: Inference, refused: Collection[str] | None) -> None:
        self._inference = inference
        self._refused = refused

    def replace(self, holder: GraphProto | FunctionProto, key: GraphKey, path: str) -> bool:
        """Replace the dead branches in a graph or function body, given where it lies in the model."""
        found = False
        for place, node in enumerate(holder.node):
            inner = {name: graph for _, name, graph in subgraphs(node)}
            dead = self._inference.never_taken(key, node) if inner.keys() == _BRANCHES else ""
            for number, name, graph in subgraphs(node):
                if name != dead:
                    found |= self.replace(graph, (*key, place, number), inner_path(path, node, place, name))
            if dead and self._counts(inner_path(path, node, place, dead)):
                (taken,) = inner.keys() - {dead}
                inner[dead].CopyFrom(inner[taken])
                found = True
        return found

    def _counts(self, path: str) -> bool:
        refused = self._refused
        return refused is None or any(each == path or each.startswith(f"{path}/") for each in refused)
