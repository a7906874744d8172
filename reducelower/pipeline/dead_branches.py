"""A model without the branches that its constant conditions never take, for the checker, which looks at them too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS

__all__ = ["without_dead_branches"]

_BRANCHES = ("else_branch", "then_branch")


def without_dead_branches(model: ModelProto) -> ModelProto | None:
    """A copy in which the branch that is taken stands for the one that never is; None if there is none of these.

    A default that callers may override is no constant.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    inputs = {value.name for value in copy.graph.input}
    held = {tensor.name: tensor for tensor in copy.graph.initializer if tensor.name not in inputs}
    return copy if _replace(copy.graph.node, held) else None


def _replace(nodes: Iterable[NodeProto], around: Mapping[str, TensorProto]) -> bool:
    found, known = False, dict(around)
    for node in nodes:
        if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS:
            known.update((node.output[0], item.t) for item in node.attribute if item.name == "value")
        branches = {item.name: item.g for item in node.attribute if item.name in _BRANCHES}
        condition = known.get(node.input[0]) if node.input else None
        if node.op_type == "If" and len(branches) == len(_BRANCHES) and condition is not None and _is_bool(condition):
            is_true = bool(numpy_helper.to_array(condition).reshape(-1)[0])
            branches[_BRANCHES[not is_true]].CopyFrom(branches[_BRANCHES[is_true]])
            found = True
        for _, _, graph in subgraphs(node):
            found |= _replace(graph.node, _within(graph, known))
    return found


def _within(graph: GraphProto, known: Mapping[str, TensorProto]) -> dict[str, TensorProto]:
    """What a graph inside knows: its inputs may have names that are constants around it."""
    hidden = {value.name for value in graph.input}
    kept = {name: tensor for name, tensor in known.items() if name not in hidden}
    return kept | {tensor.name: tensor for tensor in graph.initializer}


def _is_bool(tensor: TensorProto) -> bool:
    return tensor.data_type == TensorProto.BOOL and list(tensor.dims) in ([], [1]) and not tensor.external_data
