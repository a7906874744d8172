"""Prove that all node outputs have one element type, which makes inference unnecessary.

Many models compute in float32 throughout. Other types occur only in constants such as axes, which do not affect output
types. The operators' schemas tell which types can flow where.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, defs

from reducelower.model.census import Census
from reducelower.model.constants import element_type_of_constant
from reducelower.model.graph import HOLDING_GRAPHS
from reducelower.model.schemas import parse_element_type, schema, taken_types

__all__ = ["reads_and_yields_one_type", "sole_element_type"]


def sole_element_type(graph: GraphProto, census: Census, opset: int) -> int | None:
    """The element type of every node output of a graph; None if there may be several."""
    operators = set(census.operators)
    if not census.is_plain or not operators.isdisjoint(HOLDING_GRAPHS):
        return None
    flowing: set[int | None] = set()
    for name in operators - {"Constant"}:
        made = _made_by(name, opset)
        if made is None:
            return None
        flowing.update(map(parse_element_type, made))
    kinds = _sources(graph, census)
    if len(flowing) > 1 or not kinds or None in kinds.values():
        return None
    main = next(iter(flowing or kinds.values()))
    others = {name for name, kind in kinds.items() if kind != main}
    if not others:
        return main
    # A value that is read only by inputs with their own type does not affect any output type.
    outputs = {value.name.encode() for value in graph.output}
    names = _flowing_on(census, opset) if others.isdisjoint(outputs) else None
    return main if names is not None and others.isdisjoint(names) else None


@cache
def _made_by(op_type: str, opset: int) -> frozenset[str] | None:
    """The types an operator yields whatever its inputs are; None if unknown or not tensors."""
    found = schema(op_type, opset)
    if found is None:
        return None
    always_read = {
        given.type_str for given in found.inputs if given.option != defs.OpSchema.FormalParameterOption.Optional
    }
    fixed: set[str] = set()
    for output in found.outputs:
        if output.type_str not in always_read:
            taken = taken_types(found, output)
            if len(taken) != 1:
                return None
            fixed |= taken
    return frozenset(fixed) if all(kind.startswith("tensor(") for kind in fixed) else None


@cache
def _separate_inputs(op_type: str, opset: int) -> tuple[bool, ...]:
    """Which inputs of an operator have a type variable that no output has."""
    found = schema(op_type, opset)
    if found is None:
        return ()
    yielded = {output.type_str for output in found.outputs}
    return tuple(given.type_str not in yielded for given in found.inputs)


@cache
def reads_and_yields_one_type(op_type: str, opset: int) -> bool:
    """Whether all inputs and outputs of an operator share one type variable."""
    return not any(_separate_inputs(op_type, opset)) and _made_by(op_type, opset) == frozenset()


def _flowing_on(census: Census, opset: int) -> Iterator[bytes] | None:
    """The names read by inputs that may determine an output's type; None if nodes have too few inputs to tell."""
    names = list(census.inputs)
    counts = _counts_of_inputs(census, len(names), opset)
    if counts.sum() != len(names):
        return None
    starts = np.cumsum(counts) - counts
    flows = np.ones(len(names), dtype=bool)
    for name in census.operators:
        apart = _separate_inputs(name, opset)
        if any(apart):
            at = census.positions(name.__eq__)
            for place in range(counts[at].max()):
                if apart[min(place, len(apart) - 1)]:
                    flows[(starts[at] + place)[counts[at] > place]] = False
    return itertools.compress(names, flows.tobytes())


def _counts_of_inputs(census: Census, total: int, opset: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many inputs each node has, given the total of all nodes."""
    operators, codes = census.operator_of_each
    most, fewest = (
        np.array([bound(name, opset) for name in operators])[codes] for bound in (_most_inputs, _fewest_inputs)
    )
    for counts in (most, fewest):
        if counts.sum() == total:
            return counts
    for index in np.flatnonzero(most != fewest).tolist():
        fewest[index] = len(NodeProto.FromString(census.nodes[index]).input)
    return fewest


@cache
def _most_inputs(op_type: str, opset: int) -> int:
    found = schema(op_type, opset)
    return 0 if found is None else found.max_input


@cache
def _fewest_inputs(op_type: str, opset: int) -> int:
    found = schema(op_type, opset)
    return 0 if found is None else found.min_input


def _sources(graph: GraphProto, census: Census) -> dict[bytes, int | None]:
    """The element types of graph inputs and initializers by name; None for one that is unknown or no tensor."""
    found: dict[bytes, int | None] = {}
    for value in graph.input:
        is_tensor = value.type.WhichOneof("value") == "tensor_type"
        found[value.name.encode()] = value.type.tensor_type.elem_type or None if is_tensor else None
    found.update({tensor.name.encode(): tensor.data_type for tensor in graph.initializer})
    found.update({sparse.values.name.encode(): sparse.values.data_type for sparse in graph.sparse_initializer})
    for node in _nodes(census, "Constant".__eq__):
        found[node.output[0].encode()] = element_type_of_constant(node) or None
    return found


def _nodes(census: Census, is_wanted: Callable[[str], bool]) -> Iterator[NodeProto]:
    return (NodeProto.FromString(census.nodes[index]) for index in census.positions(is_wanted))
