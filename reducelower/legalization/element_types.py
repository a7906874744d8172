"""Which element types can occur in a model, and which ones an operator does not take at another opset version.

Most operator boundaries only change element types that a given model does not use. One look at where types come from
(inputs, initializers, constants, operators with fixed output types) decides for all nodes, without inferring any type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

from onnx import AttributeProto, NodeProto, defs

from reducelower.model.attributes import NAMING_TYPES
from reducelower.model.constants import HELD_IN
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, walk
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name, schema

__all__ = ["dropped_types", "occurring"]


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
def _produced(op_type: str, opset: int) -> tuple[frozenset[str], bool]:
    """Types that an operator yields for any input, and whether attributes can choose others."""
    operator = schema(op_type, opset)
    inputs = operator.inputs if operator else ()
    # QuantizeLinear without a zero point has its type in an attribute.
    of_inputs = {each.type_str for each in inputs if each.option != defs.OpSchema.FormalParameterOption.Optional}
    fixed: set[str] = set()
    chosen = False
    for output in operator.outputs if operator else ():
        if output.type_str in of_inputs:
            continue
        if len(output.types) == 1:
            fixed |= output.types
        elif op_type not in _HANDLED:
            chosen = True
            # The element type of a sequence occurs by itself; the sequence type has to be added.
            fixed.update(name for name in output.types if name.startswith(("seq(", "optional(")))
    return frozenset(fixed), chosen


_HOLDING_TYPES = {("Type", 4), ("Type", 9)}
"""The fields of a type for sequences and optional values."""

_CONTAINERS = ("seq(tensor({}))", "optional(tensor({}))", "optional(seq(tensor({})))")
"""The types of the default domain that contain tensors."""


def occurring(source: Document, opset: int) -> frozenset[str] | None:
    """The types that can occur in a model; None if any type can.

    The result may include types that do not occur, but it never misses one that does.
    """
    columns = source.columns
    if not columns.domains <= DEFAULT_DOMAINS:
        return None
    held = (element_type for name, (_, element_type) in HELD_IN.items() if name in columns.attributes)
    names = [element_type_name(number) for number in {*columns.element_types, *held} if number]
    types = {f"tensor({name})" for name in names}
    if not _HOLDING_TYPES.isdisjoint(columns.fields):
        types.update(container.format(name) for container in _CONTAINERS for name in names)
    choosing = {op_type for op_type in columns.operators if _produced(op_type, opset)[1]}
    types.update(*(_produced(op_type, opset)[0] for op_type in columns.operators))
    types.update(*(_chosen(node) for node in _nodes_of(source, choosing) if node.op_type in choosing))
    return frozenset(types)


def _nodes_of(source: Document, operators: Collection[str]) -> Iterable[NodeProto]:
    """At least the nodes of some operators, without a look at all others of a large graph."""
    kinds, nodes = source.columns.main_nodes.operators, source.message.graph.node
    wanted = {op_type.encode() for op_type in HOLDING_GRAPHS.union(operators) & source.columns.operators}
    are_all = len(kinds) == len(nodes)  # else a node has no operator
    return walk([nodes[at] for at, op_type in enumerate(kinds) if op_type in wanted] if are_all else nodes)


def _chosen(node: NodeProto) -> set[str]:
    """The element types that attributes other than tensors choose for the node's output."""
    types = {_WITHOUT_CHOICE.get(node.op_type, "tensor(float)")}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.INT and attribute.name in NAMING_TYPES:
            types.add(f"tensor({element_type_name(attribute.i)})")
        elif attribute.type == AttributeProto.STRING and attribute.name == "to":
            types.add(f"tensor({attribute.s.decode().lower()})")
    return types
