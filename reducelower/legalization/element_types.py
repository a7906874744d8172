"""Which element types can occur in a model, and which of a node an operator does not take at another opset version.

Most operator boundaries only change element types that a given model does not use. One look at where types come from
(inputs, initializers, constants, operators with fixed output types) decides for all nodes, without inferring any type.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import attrgetter

from onnx import AttributeProto, GraphProto, NodeProto, defs

from reducelower.errors import UnknownValueError
from reducelower.model.attributes import NAMING_TYPES
from reducelower.model.constants import element_type_of_constant
from reducelower.model.nodelist import NodeList
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name, schema, type_string
from reducelower.scope.body import AnyScope
from reducelower.scope.graph import GraphScope

__all__ = ["OccurringTypes", "dropped_types", "first_type_not_taken", "may_not_be_taken"]


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


def _elements(type_name: str) -> set[str]:
    """A type and the tensor types inside it, since sequence and optional values can be unpacked."""
    types = {type_name}
    inner = type_name
    while inner.startswith(("seq(", "optional(", "map(")):
        inner = inner[inner.index("(") + 1 : -1]
        if type_name.startswith("map("):
            inner = inner.split(",", 1)[1]
        types.add(inner)
    return types


_ELEMENT_TYPE = attrgetter("type.tensor_type.elem_type")


class OccurringTypes:
    """Collects the types of a whole model."""

    def __init__(self, scopes: Iterable[GraphScope]) -> None:
        """Take the types of inputs, initializers, Constant nodes and value_info."""
        self._types: set[str] = set()
        self._nodes: list[NodeList] = []
        for scope in scopes:
            holder, nodes = scope.edited, scope.node_list
            self._nodes.append(nodes)
            element_types = set(map(_ELEMENT_TYPE, holder.value_info))
            constants = nodes.positions("Constant".__eq__)
            of_tensors = element_types.union(element_type_of_constant(holder.node[index]) for index in constants)
            self._types.update(f"tensor({element_type_name(number)})" for number in of_tensors if number)
            for value in holder.value_info if 0 in element_types else ():
                self._note(type_string(value.type))
            if isinstance(holder, GraphProto):
                for values in (holder.input, holder.output):
                    for value in values:
                        self._note(type_string(value.type))
                for tensor in holder.initializer:
                    self._types.add(f"tensor({element_type_name(tensor.data_type)})")
                for sparse in holder.sparse_initializer:
                    self._types.add(f"tensor({element_type_name(sparse.values.data_type)})")

    def _note(self, type_name: str | None) -> None:
        if type_name is not None:
            self._types |= _elements(type_name)

    def types(self, operators: Iterable[tuple[str, int]]) -> frozenset[str] | None:
        """The types that can occur, given all operators with their opset versions; None if any type can.

        The result may include types that do not occur, but it never misses one that does.
        """
        choosing: set[str] = set()
        for op_type, opset in operators:
            produced = _produced(op_type, opset, "")
            if produced is None:
                continue
            self._types |= produced[0]
            if produced[1]:
                choosing.add(op_type)
        foreign = {kind for nodes in self._nodes for kind in nodes.foreign if kind[0] not in DEFAULT_DOMAINS}
        for domain, op_type in sorted(foreign):
            produced = _produced(op_type, 0, domain)
            if produced is None:
                return None
            for type_name in produced[0]:
                self._types |= _elements(type_name)
        if choosing:
            for nodes in self._nodes:
                for _, node in nodes.of(choosing.__contains__):
                    self._note_choice(node)
        return frozenset(self._types)

    def _note_choice(self, node: NodeProto) -> None:
        """Add the element type that an attribute chooses for the node's output."""
        self._types.add(_WITHOUT_CHOICE.get(node.op_type, "tensor(float)"))
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                self._types.add(f"tensor({element_type_name(attribute.t.data_type)})")
            elif attribute.type == AttributeProto.INT and attribute.name in NAMING_TYPES:
                self._types.add(f"tensor({element_type_name(attribute.i)})")
            elif attribute.type == AttributeProto.STRING and attribute.name == "to":
                self._types.add(f"tensor({attribute.s.decode().lower()})")


# Of a node


_TAKEN_EVERYWHERE = frozenset(f"tensor({name})" for name in ("float", "double", "float16", "int64"))
"""An operator that takes these types, or similar ones, at one version takes them at every version."""


def may_not_be_taken(node: NodeProto, scope: AnyScope) -> bool:
    """Whether some version of an operator may not take the type of an input of a node."""
    return any(scope.type_string(name) not in _TAKEN_EVERYWHERE for name in node.input if name)


def first_type_not_taken(node: NodeProto, scope: AnyScope, goal: defs.OpSchema, *, strict: bool) -> str | None:
    """The first type among inputs and outputs that a schema does not take, as schemas spell it."""
    # An output that shares a type variable with an input has that input's type.
    input_variables = {formal.type_str for formal in goal.inputs}
    for names, formals, are_inputs in ((node.input, goal.inputs, True), (node.output, goal.outputs, False)):
        for index, name in enumerate(names):
            if not name or not formals:
                continue
            formal = formals[min(index, len(formals) - 1)]
            type_name = scope.type_string(name)
            if type_name is None:
                if not strict or (not are_inputs and formal.type_str in input_variables):
                    continue
                raise UnknownValueError(
                    f"the element type of {name!r} is not known, and opset {scope.target_opset} takes fewer types",
                    scope.how_to_declare(name, "type"),
                )
            if type_name not in formal.types:
                return type_name
    return None
