"""Constant axes of Reduce nodes that no checker looks at, because it does not know what is constant around a subgraph.

A node that no boundary changes is carried over unseen; whoever hands over a file is still told that it makes no sense.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    numpy_helper,
)

from reducelower.adapters.reductions import REDUCTIONS
from reducelower.model.inference import infer, skeleton, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.scope.values import tensor_of

__all__ = ["what_is_wrong_with_an_axis", "what_is_wrong_with_axes"]

_OPERATORS = frozenset(REDUCTIONS)
_MOST_AXES = 1024
_ONE_BEYOND = frozenset({"Flatten", "OneHot"})
"""Their axis may be one beyond the last: it stands between dimensions, or for the one that is added."""
_OF_DIMENSIONS = _ONE_BEYOND | {
    *("ArgMax", "ArgMin", "Compress", "Concat", "Gather", "GatherElements", "Hardmax", "LayerNormalization"),
    *("LogSoftmax", "LpNormalization", "RMSNormalization", "Scatter", "ScatterElements", "Softmax", "Split"),
    *("SplitToSequence", "TopK", "Unique"),
}
"""Operators whose attribute axis counts dimensions of the first input, of whatever element type, at every opset."""


@dataclass(frozen=True)
class _Known:
    """What is known in a graph: constants that may be axes, and ranks, by name."""

    constants: Mapping[str, tuple[int, ...]]
    ranks: Mapping[str, int]


def what_is_wrong_with_axes(model: ModelProto) -> str:
    """Look for axes that name a dimension twice or that the data does not have.

    Returns:
        One sentence; empty when there are none.
    """
    nothing = _Known({}, {})
    pending: list[tuple[GraphProto | FunctionProto, _Known]] = [(model.graph, nothing)]
    pending += [(function, nothing) for function in model.functions]
    while pending:
        holder, around = pending.pop()
        known: _Known | None = None
        for index, node in enumerate(holder.node):
            is_reduction = node.op_type in _OPERATORS and node.domain in DEFAULT_DOMAINS
            inner = () if is_reduction else [graph for _, _, graph in subgraphs(node)]
            if not is_reduction and not inner:
                continue
            known = known or _known(holder, around)
            pending.extend((graph, known) for graph in inner)
            if is_reduction and (wrong := _wrong(node, known)):
                return f"{node.op_type} {node.name or f'#{index}'!r} {wrong}"
    return ""


def what_is_wrong_with_an_axis(model: ModelProto) -> str:
    """Look for an attribute ``axis``, or axes of a reduction, that data of an inferred rank does not have.

    Versions of an operator differ in how closely the checker looks at it, and no conversion makes one up.

    Returns:
        One sentence; empty when there is none.
    """
    inferred = infer(skeleton(model))
    if wrong := what_is_wrong_with_axes(inferred):
        return wrong
    pending = [inferred.graph]
    while pending:
        graph = pending.pop()
        ranks = _ranks((*graph.input, *graph.value_info, *graph.output))
        ranks |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
        for index, node in enumerate(graph.node):
            pending += [inner for _, _, inner in subgraphs(node)]
            if node.op_type not in _OF_DIMENSIONS or node.domain not in DEFAULT_DOMAINS or not node.input:
                continue
            rank = ranks.get(node.input[0])
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), None)
            if rank is None or axis is None:
                continue
            most = rank if node.op_type in _ONE_BEYOND else rank - 1
            if not -most - 1 <= axis <= most:
                name = node.name or f"#{index}"
                return f"{node.op_type} {name!r} has axis {axis}, and its data has {rank} dimensions"
    return ""


def _ranks(values: Iterable[ValueInfoProto]) -> dict[str, int]:
    return {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def _known(holder: GraphProto | FunctionProto, around: _Known) -> _Known:
    constants, ranks = dict(around.constants), dict(around.ranks)
    for node in holder.node:
        if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
            _note(constants, node.output[0], tensor_of(node))
    if isinstance(holder, FunctionProto):
        return _Known(constants, ranks)
    for tensor in holder.initializer:
        _note(constants, tensor.name, tensor)
    for value in (*holder.input, *holder.value_info):
        # A caller may hand in other axes than the default.
        constants.pop(value.name, None)
    ranks |= _ranks((*holder.input, *holder.value_info))
    return _Known(constants, ranks)


def _note(constants: dict[str, tuple[int, ...]], name: str, tensor: TensorProto | None) -> None:
    constants.pop(name, None)
    if tensor is None or tensor.data_type != TensorProto.INT64 or tensor.data_location == TensorProto.EXTERNAL:
        return
    if len(tensor.dims) == 1 and 0 <= tensor.dims[0] <= _MOST_AXES:
        try:
            constants[name] = tuple(numpy_helper.to_array(tensor).tolist())
        except ValueError:  # the engine refuses it where it is needed
            return


def _wrong(node: NodeProto, known: _Known) -> str:
    axes: tuple[int, ...] | None = None
    for attribute in node.attribute:
        if attribute.name == "axes" and attribute.type == AttributeProto.INTS and not attribute.ref_attr_name:
            axes = tuple(attribute.ints)
    if len(node.input) > 1 and node.input[1]:
        axes = known.constants.get(node.input[1])
    if not axes or not node.input:
        return ""
    rank = known.ranks.get(node.input[0])
    if rank is not None and not all(-rank <= axis < rank for axis in axes):
        return f"has axes {list(axes[:9])}, and its data has {rank} dimensions"
    if len({axis % rank if rank else axis for axis in axes}) < len(axes):
        return f"has axes {list(axes[:9])}, which name a dimension twice"
    return ""
