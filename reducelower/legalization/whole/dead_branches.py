"""Replace branches of an If that its constant condition never takes: their nodes need not be legal, nor valid."""

from __future__ import annotations

from collections.abc import Collection

from onnx import GraphProto, ModelProto

from reducelower.model.graph import inner_path, subgraphs
from reducelower.types import GraphKey, Inference

__all__ = ["without_dead_branches"]


def without_dead_branches(
    model: ModelProto, refused: Collection[str] | None = None, *, freezes_defaults: bool = False
) -> ModelProto | None:
    """A copy with the other branch in place of each branch that is never taken; None if there is no such branch.

    Args:
        model: any model, also one that is not valid.
        refused: paths of graphs with refused nodes and of refused Ifs; only branches that contain the former, or are of
            the latter, are replaced. None for all branches.
        freezes_defaults: whether a default that callers may override is a constant.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    work = _Replacing(Inference(model, freezes_defaults=freezes_defaults), refused)
    return copy if work.replace(copy.graph, (), "graph") else None


_BRANCHES = {"else_branch", "then_branch"}


class _Replacing:
    def __init__(self, inference: Inference, refused: Collection[str] | None) -> None:
        self._inference = inference
        self._refused = refused

    def replace(self, holder: GraphProto, key: GraphKey, path: str) -> bool:
        """Replace the dead branches in a graph; `key` and `path` say where it is in the model."""
        has_replaced = False
        for place, node in enumerate(holder.node):
            inner = {name: graph for _, name, graph in subgraphs(node)}
            never_taken = self._inference.never_taken(key, node) if inner.keys() == _BRANCHES else ""
            for number, name, graph in subgraphs(node):
                if name != never_taken:
                    has_replaced |= self.replace(graph, (*key, place, number), inner_path(path, node, place, name))
            if never_taken and self._counts(inner_path(path, node, place, never_taken)):
                (other,) = inner.keys() - {never_taken}
                inner[never_taken].CopyFrom(inner[other])
                has_replaced = True
        return has_replaced

    def _counts(self, path: str) -> bool:
        if self._refused is None:
            return True
        return any(f"{each}/".startswith(f"{path}/") or path.startswith(f"{each}.") for each in self._refused)
