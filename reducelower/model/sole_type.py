"""The one element type that computed values can have, where the model knows only one; then nothing need be inferred.

Many models compute in float32 throughout; beside it stand only constants such as axes, which operators read without
yielding anything of their type. Where types come from and where they may flow is in the operators' schemas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

from onnx import GraphProto, NodeProto, defs

from reducelower.model.census import Census, second_of_two
from reducelower.model.schemas import element_type_name, parse_element_type, schema, taken_types, type_string

__all__ = ["reads_and_yields_one_type", "sole_element_type"]

_HOLDING_GRAPHS = frozenset({"If", "Loop", "Scan", "SequenceMap"})


def sole_element_type(graph: GraphProto, census: Census, opset: int) -> int | None:
    """The element type of every value that the nodes of a graph yield; None where there may be several.

    Args:
        graph: the main graph of a model; its nodes are not looked at.
        census: the census of the model.
        opset: opset version its nodes are written for.
    """
    names = set(census.operators)
    if not census.is_plain or not names.isdisjoint(_HOLDING_GRAPHS):
        return None
    flowing: set[str] = set()
    for name in names - {"Constant"}:
        made = _made_by(name, opset)
        if made is None:
            return None
        flowing |= made
    sources: dict[str, list[str]] = {}
    for value, kind in _sources(graph, census):
        if not kind.startswith("tensor("):
            return None
        sources.setdefault(kind, []).append(value)
    if len(flowing | sources.keys()) > 1:
        wanted = {value.encode() for values in sources.values() for value in values}
        uses = Counter(filter(wanted.__contains__, census.inputs))
        uses.update(value.name.encode() for value in graph.output)
        uses.subtract(_read_apart(census, opset))
        sources = {kind: values for kind, values in sources.items() if any(uses[value.encode()] for value in values)}
    flowing |= sources.keys()
    return parse_element_type(flowing.pop()) if len(flowing) == 1 else None


@cache
def _made_by(op_type: str, opset: int) -> frozenset[str] | None:
    """Types that an operator yields whatever it reads; None if attributes or absent inputs choose."""
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
    return frozenset(fixed)


@cache
def _apart(op_type: str, opset: int) -> tuple[bool, ...]:
    """Which inputs of an operator are of a type that none of its outputs has because of them."""
    found = schema(op_type, opset)
    if found is None:
        return ()
    yielded = {output.type_str for output in found.outputs}
    return tuple(given.type_str not in yielded for given in found.inputs)


@cache
def reads_and_yields_one_type(op_type: str, opset: int) -> bool:
    """Whether all that nodes of an operator read goes into what they yield, and nothing else does."""
    return not any(_apart(op_type, opset)) and _made_by(op_type, opset) == frozenset()


def _read_apart(census: Census, opset: int) -> Counter[bytes]:
    """The names that nodes read where the type of what they read goes no further, and how often they do."""
    found: list[bytes] = []
    apart = {name: _apart(name, opset) for name in census.operators}
    second_only = {name for name, inputs in apart.items() if inputs == (False, True)}
    nodes = census.nodes
    positions = census.positions(lambda name: any(apart[name]))
    for index, operator in zip(positions, census.operators_at(positions), strict=True):
        data = nodes[index]
        if operator in second_only and (second := second_of_two(data)) is not None:
            found.append(second)
            continue
        inputs = apart[operator]
        for position, name in enumerate(NodeProto.FromString(data).input):
            if name and inputs[min(position, len(inputs) - 1)]:
                found.append(name.encode())
    return Counter(found)


def _sources(graph: GraphProto, census: Census) -> Iterator[tuple[str, str]]:
    """What is in a graph without being computed: names and types, the empty string standing for unknown ones."""
    for value in graph.input:
        yield value.name, type_string(value.type) or ""
    for tensor in graph.initializer:
        yield tensor.name, f"tensor({element_type_name(tensor.data_type)})"
    for sparse in graph.sparse_initializer:
        yield sparse.values.name, f"tensor({element_type_name(sparse.values.data_type)})"
    for node in _nodes(census, "Constant".__eq__):
        yield node.output[0], _type_of_constant(node)


def _type_of_constant(node: NodeProto) -> str:
    for attribute in node.attribute:
        if attribute.name == "value":
            return f"tensor({element_type_name(attribute.t.data_type)})"
        if attribute.name in ("value_int", "value_ints"):
            return "tensor(int64)"
        if attribute.name in ("value_float", "value_floats"):
            return "tensor(float)"
    return ""


def _nodes(census: Census, is_wanted: Callable[[str], bool]) -> Iterator[NodeProto]:
    return (NodeProto.FromString(census.nodes[index]) for index in census.positions(is_wanted))
