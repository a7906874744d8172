"""Drop stated types that a model's nodes do not yield, or correct them where callers see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from reducelower.model.graph import all_nodes, subgraphs
from reducelower.model.inference.protected import objection
from reducelower.model.skeleton import skeleton
from reducelower.model.value_info import may_be_of_one_shape, sizes, stated_type, tensor_type, without_made_up_symbols
from reducelower.types import infer

__all__ = [
    "Repaired",
    "correct_stated",
    "drop_shapes_in_loops",
    "drop_stale",
    "listed",
]

_MOST_NAMES = 5


@dataclass(frozen=True)
class Repaired:
    """A repaired model.

    Attributes:
        model: the model, in the form of the one given.
        done: one sentence per repair; empty if nothing had to be done.
    """

    model: Any
    done: tuple[str, ...]


def drop_stale(model: ModelProto) -> Repaired:
    """A model without stated types of inner values that contradict inference, and sentences that say what was done.

    Runtimes do not read these types. If there are none, the model itself is returned, not a copy.
    """
    inferred = _inferred_afresh(model)
    pairs = [*_graphs_of(model.graph, inferred)]
    if not any(_stale(graph, types) for graph, types in pairs) and not any(_wrong_outputs(*pair) for pair in pairs[1:]):
        return Repaired(model, ())
    mended = ModelProto()
    mended.CopyFrom(model)
    return Repaired(mended, (*_drop(mended, inferred), *_correct([*_graphs_of(mended.graph, inferred)][1:])))


def drop_shapes_in_loops(model: ModelProto) -> Iterator[str]:
    """Drop the shapes that bodies of Loop and Scan state for their inputs and outputs; the model is changed.

    Exporters may state scalars there, whatever the values are, and inference of old opset versions does not notice.
    """
    dropped = False
    for node in all_nodes(model):
        inside = [graph for _, _, graph in subgraphs(node)] if node.op_type in ("Loop", "Scan") else []
        own = 2 if node.op_type == "Loop" else 0  # onnxruntime needs the shapes of iteration count and condition
        for value in (value for body in inside for value in (*body.input[own:], *body.output[own // 2 :])):
            dropped |= value.type.tensor_type.HasField("shape")
            value.type.tensor_type.ClearField("shape")
    if dropped:
        yield "dropped the shapes it states inside of loops, which are not what their nodes yield"


def correct_stated(model: ModelProto) -> Iterator[str]:
    """Drop stated types of inner values that contradict inference without them; correct those of outputs."""
    afresh = _inferred_afresh(model)
    yield from _drop(model, afresh)
    yield from _correct([*_graphs_of(model.graph, afresh)])
    left_out = [*_untyped_outputs(model.graph, _types(afresh))]
    for value, inferred in left_out:
        value.type.CopyFrom(without_made_up_symbols(inferred))
    if left_out:
        yield f"stated the types of its outputs {listed([value.name for value, _ in left_out])}, which it left out"
    remaining = objection(skeleton(model))
    if "op_type:Loop" in remaining or "op_type:Scan" in remaining:
        yield from drop_shapes_in_loops(model)


def _correct(pairs: Iterable[tuple[GraphProto, GraphProto]]) -> Iterator[str]:
    """Correct the stated output types that contradict inference."""
    wrong = [item for graph, inferred_graph in pairs for item in _wrong_outputs(graph, inferred_graph)]
    for value, inferred in wrong:
        value.type.CopyFrom(inferred)
    if wrong:
        names = listed([value.name for value, _ in wrong])
        yield f"corrected the types it states of its outputs {names}, which are not what its nodes yield"


def _wrong_outputs(graph: GraphProto, inferred_graph: GraphProto) -> list[tuple[ValueInfoProto, TypeProto]]:
    """Outputs whose stated types contradict inference, each with the inferred type."""
    types = _types(inferred_graph)
    values = ((value, types.get(value.name)) for value in graph.output)
    return [
        (value, inferred) for value, inferred in values if inferred is not None and _contradict(value.type, inferred)
    ]


def _untyped_outputs(graph: GraphProto, types: Mapping[str, TypeProto]) -> Iterator[tuple[ValueInfoProto, TypeProto]]:
    """Outputs without a stated type, which the checker refuses, each with the inferred type."""
    for value in graph.output:
        inferred = types.get(value.name)
        if not value.HasField("type") and inferred is not None and stated_type(inferred).is_known:
            yield value, inferred


def _drop(model: ModelProto, afresh: GraphProto) -> Iterator[str]:
    dropped: list[str] = []
    of_initializers: list[str] = []
    for graph, inferred in _graphs_of(model.graph, afresh):
        stale = _stale(graph, inferred)
        stored = {tensor.name for tensor in graph.initializer} if stale else set()
        for index in stale:
            name = graph.value_info[index].name
            (of_initializers if name in stored else dropped).append(name)
        for index in reversed(stale):
            del graph.value_info[index]
    if dropped:
        yield f"dropped the types it states of {listed(dropped)}, which are not what its nodes yield"
    if of_initializers:
        yield f"dropped the types it states of the initializers {listed(of_initializers)}, which hold something else"


def _inferred_afresh(model: ModelProto) -> GraphProto:
    """The main graph with types inferred after all stated types of computed values were dropped."""
    bare = skeleton(model)
    _drop_types(bare.graph)
    return infer(bare).graph


def _types(graph: GraphProto) -> dict[str, TypeProto]:
    return {value.name: value.type for value in (*graph.output, *graph.value_info)}


def _stale(graph: GraphProto, inferred_graph: GraphProto) -> list[int]:
    """Positions of value_info entries that contradict inference."""
    if not graph.value_info:
        return []
    types = {**_types(inferred_graph), **{tensor.name: tensor_type(tensor) for tensor in graph.initializer}}
    return [index for index, value in enumerate(graph.value_info) if _contradict(value.type, types.get(value.name))]


def _drop_types(graph: GraphProto) -> None:
    """Remove the stated types of node outputs."""
    del graph.value_info[:]
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.Clear()
    for node in graph.node:
        for _, _, inner in subgraphs(node):
            _drop_types(inner)


def _graphs_of(one: GraphProto, other: GraphProto) -> Iterator[tuple[GraphProto, GraphProto]]:
    yield one, other
    for left, right in zip(one.node, other.node, strict=True):
        for (_, _, inner), (_, _, beside) in zip(subgraphs(left), subgraphs(right), strict=False):
            yield from _graphs_of(inner, beside)


def _contradict(stated: TypeProto, inferred: TypeProto | None) -> bool:
    kinds = None if inferred is None else {stated.WhichOneof("value"), inferred.WhichOneof("value")}
    if inferred is None or kinds is None or None in kinds:
        return False
    if kinds != {"tensor_type"}:
        return len(kinds) > 1
    element_types = {stated.tensor_type.elem_type, inferred.tensor_type.elem_type} - {TensorProto.UNDEFINED}
    stated_sizes, inferred_sizes = sizes(stated), sizes(inferred)
    return len(element_types) > 1 or not (
        stated_sizes is None or inferred_sizes is None or may_be_of_one_shape(stated_sizes, inferred_sizes)
    )


def listed(names: Sequence[str]) -> str:
    """Names in quotes, the first of many."""
    shown = ", ".join(map(repr, names[:_MOST_NAMES]))
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} others"
