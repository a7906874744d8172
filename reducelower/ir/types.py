"""The types of values that an onnx_ir model does not state, from shape inference over the model without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import onnx_ir as ir
from onnx import FunctionProto, GraphProto, TypeProto

from reducelower.ir.light import lighten
from reducelower.model.graph import subgraphs
from reducelower.model.inference import GraphKey, Inference, function_key

__all__ = ["InferredTypes"]


class InferredTypes:
    """The types of the values of one model as it is when they are first asked for."""

    def __init__(self, model: ir.Model) -> None:
        """Prepare to answer about a model."""
        self._model = model

    def of(self, name: str) -> TypeProto | None:
        """The type of a value; None where inference does not find it, or finds two in graphs that share a name."""
        return self._types.get(name)

    @cached_property
    def _types(self) -> Mapping[str, TypeProto]:
        proto = lighten(self._model).proto
        inference = Inference(lambda: proto)
        found: dict[str, TypeProto] = {}
        contradicting: set[str] = set()

        def collect(holder: GraphProto | FunctionProto, key: GraphKey) -> None:
            for name, known in inference.types(key).items():
                if found.setdefault(name, known) != known:
                    contradicting.add(name)
            for index, node in enumerate(holder.node):
                for number, _, inner in subgraphs(node):
                    collect(inner, (*key, index, number))

        collect(proto.graph, ())
        for number, function in enumerate(proto.functions):
            collect(function, function_key(number))
        return {name: known for name, known in found.items() if name not in contradicting}
