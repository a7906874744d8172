"""Find invalid constant axes in subgraphs, which the checker does not examine, since it does not see outer constants.

Nodes that cross no boundary are kept without being examined; invalid ones still have to be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from reducelower.adapters.reductions import REDUCTIONS
from reducelower.model.constants import tensor_of
from reducelower.model.graph import may_hold_graphs, subgraphs
from reducelower.model.numbers import value_of_tensor
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.value_info import rank_of

__all__ = ["what_is_wrong_with_axes"]

_OPERATORS = frozenset(REDUCTIONS)
_MOST_AXES = 1024


@dataclass
class _Place:
    """A graph or function body, the place that encloses it, and its nodes with axes, by position."""

    holder: GraphProto | FunctionProto
    around: _Place | None
    nodes: dict[int, NodeProto] = field(default_factory=dict)

    def known(self, names: set[str]) -> _Known:
        """What is known about some values, here and in the enclosing places."""
        constants, ranks = ({}, {}) if self.around is None else self.around.known(names)
        holder = self.holder
        for node in holder.node:
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and names.intersection(node.output):
                _note(constants, node.output[0], tensor_of(node))
        if isinstance(holder, FunctionProto):
            return constants, ranks
        for tensor in holder.initializer:
            if tensor.name in names:
                _note(constants, tensor.name, tensor)
                ranks[tensor.name] = len(tensor.dims)
        for value in holder.input:
            constants.pop(value.name, None)  # a caller may override the default
        stated = [value for value in (*holder.input, *holder.value_info) if value.name in names]
        ranks |= {value.name: rank for value in stated if (rank := rank_of(value.type)) is not None}
        return constants, ranks


_Known: TypeAlias = tuple[dict[str, tuple[int, ...]], dict[str, int]]
"""Constants that may be axes, and ranks, by name."""


def what_is_wrong_with_axes(model: ModelProto) -> str:
    """Describe axes of reductions that name a dimension twice or one that the data lacks; empty if there are none."""
    pending = [_Place(model.graph, None), *(_Place(function, None) for function in model.functions)]
    places = []
    while pending:
        place = pending.pop()
        for index, node in enumerate(place.holder.node):
            if node.op_type in _OPERATORS and node.domain in DEFAULT_DOMAINS:
                place.nodes[index] = node
            elif may_hold_graphs(node):
                pending += [_Place(graph, place) for _, _, graph in subgraphs(node)]
        if place.nodes:
            places.append(place)
    names = {name for place in places for node in place.nodes.values() for name in node.input if name}
    for place in places:
        known = place.known(names)
        for index, node in place.nodes.items():
            if wrong := _wrong(node, *known):
                return f"{node.op_type} {node.name or f'#{index}'!r} {wrong}"
    return ""


def _note(constants: dict[str, tuple[int, ...]], name: str, tensor: TensorProto | None) -> None:
    constants.pop(name, None)
    if tensor is None or tensor.data_type != TensorProto.INT64:
        return
    if len(tensor.dims) == 1 and 0 <= tensor.dims[0] <= _MOST_AXES:
        value = value_of_tensor(tensor)
        if value is not None:  # else the engine refuses it where it is needed
            constants[name] = tuple(value.tolist())


def _wrong(node: NodeProto, constants: Mapping[str, tuple[int, ...]], ranks: Mapping[str, int]) -> str:
    axes: tuple[int, ...] | None = None
    for attribute in node.attribute:
        if attribute.name == "axes" and attribute.type == AttributeProto.INTS and not attribute.ref_attr_name:
            axes = tuple(attribute.ints)
    if len(node.input) > 1 and node.input[1]:
        axes = constants.get(node.input[1])
    if not axes or not node.input:
        return ""
    rank = ranks.get(node.input[0])
    if rank is not None and not all(-rank <= axis < rank for axis in axes):
        return f"has axes {list(axes[:9])}, and its data has {rank} dimensions"
    if len({axis % rank if rank else axis for axis in axes}) < len(axes):
        return f"has axes {list(axes[:9])}, which name a dimension twice"
    return ""
