"""Check the boundary rules of a folder; every failure is one sentence with its file and line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import NodeProto

from reducelower.errors import RuleError
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import is_runtime_name, opset_of, schema, schema_in_force, versions
from reducelower.rulebook.bindings import BINDINGS
from reducelower.rulebook.boundaries import ITS_BODY, ROWS, Boundaries, BoundaryRule, Occasion
from reducelower.rulebook.guards import unknown_name
from reducelower.rulebook.reading import Source
from reducelower.rulebook.specializing import OWN

__all__ = ["check_boundaries"]

_COMPLETE = 18
"""Operators of this opset version may compute constants in a body for an older one, and CastLike is written as Cast."""

_RETYPED = 13
"""The opset version that bodies for element types are written for, as the casts are that stand around other nodes."""

_VALUES = frozenset({*BINDINGS, "of_nothing", "target"})
"""Values that a body has without computing them."""


def check_boundaries(book: Boundaries) -> None:
    """Check every rule and row of a folder.

    Raises:
        RuleError: one names an operator, version, attribute or value that does not exist.
    """
    for op_type in book.operators:
        for row in book.rows(op_type):
            try:
                _check_occasion(op_type, row.occasion)
            except RuleError as error:
                raise RuleError(error.reason, book.folder / ROWS) from None
        for rule in book.rules(op_type):
            _check_rule(op_type, rule)


def _check_occasion(op_type: str, occasion: Occasion) -> None:
    known = versions(op_type)
    boundary = occasion.boundary(op_type)
    if not known and not is_runtime_name(op_type):
        raise RuleError(f"{op_type} is no operator of ONNX")
    if occasion.way in ("below", "from") and boundary not in known[1:]:
        which = ", ".join(map(str, known[1:])) or "none"
        raise RuleError(f"{op_type} has no boundary {occasion.at} (it changed at: {which})")


def _check_rule(op_type: str, rule: BoundaryRule) -> None:
    source = rule.source
    try:
        _check_occasion(op_type, rule.occasion)
    except RuleError as error:
        raise source.error(error.reason, "overload") from None
    if rule.occasion.way == "lacking" and rule.opset != _RETYPED:
        raise source.error(
            f"a body for an element type that is lacking is written for opset {_RETYPED}", "opset_import"
        )
    function, stated = source.function, set[str]()
    for version in versions(op_type):
        found = schema(op_type, version)
        stated |= set() if found is None else set(found.attributes)
    header = {*function.attribute, *(attribute.name for attribute in function.attribute_proto)}
    if unknown := unknown_name(rule.occasion.guard or "True", {*function.input, *function.output}, stated | header):
        raise source.error(f"the guard asks about {unknown!r}, which is no input, output or attribute", "overload")
    _check_body(source, rule.helpers, set())


def _check_body(source: Source, helpers: Mapping[str, Source], seen: set[str]) -> None:
    function = source.function
    header = {*function.attribute, *(attribute.name for attribute in function.attribute_proto)}
    _check_nodes(source, function.node, {*function.input, *header, *_VALUES}, helpers)
    for name in {node.op_type for node in function.node if node.op_type in helpers} - seen:
        seen.add(name)
        _check_body(helpers[name], helpers, seen)


def _check_nodes(source: Source, nodes: Iterable[NodeProto], defined: set[str], helpers: Mapping[str, Source]) -> None:
    opset = opset_of(source.function)
    for node in nodes:
        word = node.output[0] if node.output else node.op_type
        found = schema_in_force(node.op_type, opset, node.domain) or schema_in_force(node.op_type, _COMPLETE, "")
        if found is None and node.op_type not in (*OWN, ITS_BODY) and node.op_type not in helpers:
            raise source.error(f"opset {opset} has no operator {node.op_type}, and it is no helper", word)
        for name in filter(None, node.input):
            if name not in defined:
                raise source.error(f"{node.op_type} takes {name!r}, which nothing before it gives", word)
        for attribute in node.attribute:
            if any(tensor.external_data for tensor in (attribute.t, *attribute.tensors)):
                raise source.error("a rule states its values itself and reads no other file", word)
            if found is not None and attribute.name not in found.attributes:
                raise source.error(f"{node.op_type} has no attribute {attribute.name!r}", word)
        for _, _, graph in subgraphs(node):
            _check_nodes(source, graph.node, defined | {value.name for value in graph.input}, helpers)
        defined.update(filter(None, node.output))
