"""Drop stated types that a model's nodes do not yield, or correct them where callers see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from reducelower.legalization.whole.stated_shapes import drop_shapes_in_loops
from reducelower.lines import enumerated
from reducelower.model.graph import graphs
from reducelower.model.protected import objection
from reducelower.model.skeleton import skeleton
from reducelower.model.value_info import may_be_of_one_shape, sizes, stated_type, tensor_type, without_made_up_symbols
from reducelower.types import infer

__all__ = ["correct_stated", "drop_stale", "listed", "state_outputs", "states_nothing"]

_MOST_NAMES = 5


def drop_stale(model: ModelProto) -> Iterator[str]:
    """Drop stated types of inner values that contradict inference without them, which runtimes do not read."""
    pairs = _inferred_afresh(model)
    yield from _drop(pairs)
    yield from _correct(pairs[1:])


def correct_stated(model: ModelProto) -> Iterator[str]:
    """Drop stated types of inner values that contradict inference without them; correct and state those of outputs."""
    pairs = _inferred_afresh(model)
    yield from _drop(pairs)
    yield from _correct(pairs)
    yield from state_outputs(model)
    remaining = objection(skeleton(model))
    if "op_type:Loop" in remaining or "op_type:Scan" in remaining:
        yield from drop_shapes_in_loops(model)


def state_outputs(model: ModelProto) -> Iterator[str]:
    """State the types of outputs that have none, which the checker requires and runtimes do not."""
    without = [value for value in model.graph.output if states_nothing(value)]
    types = _inferred_afresh(model)[0][1] if without else {}
    known = [value for value in without if value.name in types and stated_type(types[value.name]).is_known]
    for value in known:
        value.type.CopyFrom(without_made_up_symbols(types[value.name]))
    if known:
        yield f"stated the types of its outputs {listed([value.name for value in known])}, which it left out"


_Pairs: TypeAlias = "Sequence[tuple[GraphProto, Mapping[str, TypeProto]]]"
"""The graphs of a model, outer ones first, each with types by name."""


def _inferred_afresh(model: ModelProto) -> _Pairs:
    """The graphs with types that were inferred after all stated types of computed values were dropped."""
    bare = skeleton(model)
    for _, graph in graphs(bare):
        del graph.value_info[:]
        for value in graph.output:
            if value.type.HasField("tensor_type"):
                value.type.Clear()
    inferred = [(*graph.output, *graph.value_info) for _, graph in graphs(infer(bare))]
    return [
        (graph, {value.name: value.type for value in values})
        for (_, graph), values in zip(graphs(model), inferred, strict=True)
    ]


def _drop(pairs: _Pairs) -> Iterator[str]:
    """Drop the stated types of inner values that contradict inference."""
    dropped: list[str] = []
    of_initializers: list[str] = []
    for graph, inferred in pairs:
        stored = {tensor.name: tensor_type(tensor) for tensor in graph.initializer} if graph.value_info else {}
        types = {**inferred, **stored}
        for value in [value for value in graph.value_info if _contradict(value.type, types.get(value.name))]:
            (of_initializers if value.name in stored else dropped).append(value.name)
            graph.value_info.remove(value)
    if dropped:
        yield f"dropped the types it states of {listed(dropped)}, which are not what its nodes yield"
    if of_initializers:
        yield f"dropped the types it states of the initializers {listed(of_initializers)}, which hold something else"


def _correct(pairs: _Pairs) -> Iterator[str]:
    """Correct the stated output types that contradict inference."""
    wrong = []
    for graph, types in pairs:
        for value in graph.output:
            inferred = types.get(value.name)
            if inferred is not None and _contradict(value.type, inferred):
                value.type.CopyFrom(inferred)
                wrong.append(value.name)
    if wrong:
        yield f"corrected the types it states of its outputs {listed(wrong)}, which are not what its nodes yield"


def states_nothing(value: ValueInfoProto) -> bool:
    """Whether not even the element type of a value is stated."""
    return value.type.WhichOneof("value") in (None, "tensor_type") and not value.type.tensor_type.elem_type


def _contradict(stated: TypeProto, inferred: TypeProto | None) -> bool:
    kinds = set() if inferred is None else {stated.WhichOneof("value"), inferred.WhichOneof("value")}
    if inferred is None or None in kinds:
        return False
    if kinds != {"tensor_type"}:
        return len(kinds) > 1
    element_types = {stated.tensor_type.elem_type, inferred.tensor_type.elem_type} - {TensorProto.UNDEFINED}
    shapes = [each for each in map(sizes, (stated, inferred)) if each is not None]
    return len(element_types) > 1 or (len(shapes) > 1 and not may_be_of_one_shape(*shapes))


def listed(names: Sequence[str]) -> str:
    """Names in quotes, the first of many."""
    return enumerated([*map(repr, names)], _MOST_NAMES)
