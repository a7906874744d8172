"""Extract the nodes that a value is computed from as a small model, so that its type can be inferred cheaply."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from reducelower.model.graph import may_hold_graphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import without_values

__all__ = ["Ancestors"]


class Ancestors:
    """Finds the ancestors of values of a model's main graph."""

    def __init__(self, model: ModelProto) -> None:
        """Take the model, which is not changed."""
        self._model = model

    @cached_property
    def _producers(self) -> dict[str, int]:
        nodes = enumerate(self._model.graph.node)
        return {output: index for index, node in nodes for output in node.output if output}

    @cached_property
    def _stated(self) -> dict[str, ValueInfoProto]:
        graph = self._model.graph
        return {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}

    @cached_property
    def _initializers(self) -> dict[str, TensorProto]:
        return {tensor.name: tensor for tensor in self._model.graph.initializer}

    def model_of(self, name: str, limit: int) -> ModelProto | None:
        """Return a model without weights that computes a value, or None if that needs more than `limit` nodes.

        It is also None if an ancestor has subgraphs, which may read any value, or is outside the default domain.
        """
        indices: set[int] = set()
        read: dict[str, None] = {}
        waiting = [name]
        while waiting:
            place = self._producers.get(waiting[-1])
            read[waiting.pop()] = None
            if place is None or place in indices:
                continue
            node = self._model.graph.node[place]
            if len(indices) == limit or may_hold_graphs(node) or node.domain not in DEFAULT_DOMAINS:
                return None
            indices.add(place)
            waiting += [given for given in node.input if given and given not in read]
        nodes = [self._model.graph.node[index] for index in sorted(indices)]
        return self._model_of_nodes(nodes, read) if nodes else None

    def _model_of_nodes(self, nodes: Iterable[NodeProto], values: Collection[str]) -> ModelProto | None:
        graph = GraphProto(name="ancestors", node=nodes)
        for name in values:
            stated, tensor = self._stated.get(name), self._initializers.get(name)
            if tensor is not None:
                graph.initializer.append(without_values(tensor))
            if name in self._producers:
                graph.value_info.extend([stated] if stated is not None else [])
            elif stated is not None:
                graph.input.append(stated)
            elif tensor is None:
                return None  # such as a sparse initializer
        model = ModelProto(ir_version=self._model.ir_version, graph=graph)
        model.opset_import.extend(self._model.opset_import)
        return model
