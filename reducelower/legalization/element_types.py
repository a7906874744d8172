"""Which element types can occur in a model, and which of a node an operator does not take at another opset version.

Most operator boundaries only change element types that a given model does not use. One look at where types come from
(inputs, initializers, constants, operators with fixed output types) decides for all nodes, without inferring any type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache

from onnx import AttributeProto, NodeProto, defs

from reducelower.model.attributes import NAMING_TYPES
from reducelower.model.constants import HELD_IN
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, walk
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name, schema
from reducelower.scope.body import AnyScope

__all__ = ["dropped_types", "may_not_be_taken", "occurring"]


@cache
def _dropped(op_type: str, source_version: int, goal_version: int) -> frozenset[str]:
    source, goal = schema(op_type, source_version), schema(op_type, goal_version)
    assert source is not None
    assert goal is not None
    dropped: set[str] = set()
    for old, new in ((source.inputs, goal.inputs), (source.outputs, goal.outputs)):
        by_name = {parameter.name: parameter for parameter in new}
        for index, parameter in enumerate(old):
            match = by_name.get(parameter.name) or (new[index] if index < len(new) else None)
            if match is not None:
                dropped |= parameter.types - match.types
    return frozenset(dropped)


def dropped_types(source: defs.OpSchema, goal: defs.OpSchema) -> frozenset[str]:
    """Types that `source` takes or yields and `goal` does not."""
    return _dropped(source.name, source.since_version, goal.since_version)


# Default output types; other generators default to float. Source: the operators' pages.
_WITHOUT_CHOICE = {"Multinomial": "tensor(int32)", "QuantizeLinear": "tensor(uint8)"}

# Their outputs come from subgraphs and constants, which are examined themselves.
_HANDLED = frozenset({"If", "Loop", "Scan", "SequenceMap", "Constant"})


@cache
def _produced(op_type: str, opset: int, domain: str) -> tuple[frozenset[str], bool] | None:
    """Types that an operator yields for any input, and whether attributes can choose others; None if unknown."""
    operator = schema(op_type, opset, domain) if not domain else _any_schema(op_type, domain)
    if operator is None:
        return None
    of_inputs = {parameter.type_str for parameter in operator.inputs}
    fixed: set[str] = set()
    chosen = False
    for output in operator.outputs:
        if output.type_str in of_inputs:
            continue
        types = output.types
        if len(types) == 1 or domain:
            fixed |= types
        elif op_type not in _HANDLED:
            chosen = True
            # The element type of a sequence occurs by itself; the sequence type has to be added.
            fixed.update(name for name in types if name.startswith(("seq(", "optional(")))
    return frozenset(fixed), chosen


@cache
def _any_schema(op_type: str, domain: str) -> defs.OpSchema | None:
    history = [entry for entry in defs.get_all_schemas_with_history() if entry.domain == domain]
    matches = [entry for entry in history if entry.name == op_type]
    return max(matches, key=lambda entry: entry.since_version, default=None)


_DEFAULT = frozenset(map(str.encode, DEFAULT_DOMAINS))

_TENSOR = re.compile(r"tensor\(\w+\)")

_HOLDING_TYPES = {("Type", 4), ("Type", 9)}
"""The fields of a type for sequences and optional values."""

_CONTAINERS = ("seq(tensor({}))", "optional(tensor({}))", "optional(seq(tensor({})))")
"""The types of the default domain that contain tensors."""


def occurring(source: Document, opset: int) -> frozenset[str] | None:
    """The types that can occur in a model; None if any type can.

    The result may include types that do not occur, but it never misses one that does.
    """
    columns = source.columns
    held = (element_type for name, (_, element_type) in HELD_IN.items() if name in columns.attributes)
    names = [element_type_name(number) for number in {*columns.element_types, *held} if number]
    types = {f"tensor({name})" for name in names}
    if not _HOLDING_TYPES.isdisjoint(columns.fields):
        types.update(container.format(name) for container in _CONTAINERS for name in names)
    choosing: set[str] = set()
    for op_type in columns.operators:
        produced = _produced(op_type, opset, "")
        if produced is not None:
            types |= produced[0]
            choosing |= {op_type} if produced[1] else set()
    for node in _nodes_of(source, choosing):
        if node.domain in DEFAULT_DOMAINS:
            types |= _chosen(node) if node.op_type in choosing else set()
            continue
        produced = _produced(node.op_type, 0, node.domain)
        if produced is None:
            return None
        types.update(produced[0], _TENSOR.findall(" ".join(produced[0])))
    return frozenset(types)


def _nodes_of(source: Document, operators: Collection[str]) -> Iterable[NodeProto]:
    """At least the nodes of some operators, and those of other domains."""
    main = source.columns.main_nodes
    nodes: Sequence[NodeProto] = source.message.graph.node
    wanted = {op_type.encode() for op_type in HOLDING_GRAPHS.union(operators) & source.columns.operators}
    if set(main.domains) <= _DEFAULT and len(main.operators) == len(nodes):
        nodes = [nodes[at] for at, op_type in enumerate(main.operators) if op_type in wanted] if wanted else []
    return walk(nodes)


def _chosen(node: NodeProto) -> set[str]:
    """The element types that attributes other than tensors choose for the node's output."""
    types = {_WITHOUT_CHOICE.get(node.op_type, "tensor(float)")}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.INT and attribute.name in NAMING_TYPES:
            types.add(f"tensor({element_type_name(attribute.i)})")
        elif attribute.type == AttributeProto.STRING and attribute.name == "to":
            types.add(f"tensor({attribute.s.decode().lower()})")
    return types


# Of a node


_TAKEN_EVERYWHERE = frozenset(f"tensor({name})" for name in ("float", "double", "float16", "int64"))
"""An operator that takes these types, or similar ones, at one version takes them at every version."""


def may_not_be_taken(node: NodeProto, scope: AnyScope) -> bool:
    """Whether some version of an operator may not take the type of an input of a node."""
    return any(scope.type_string(name) not in _TAKEN_EVERYWHERE for name in node.input if name)
