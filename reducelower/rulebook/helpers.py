"""Inline helper functions into rule bodies, and add Constant nodes for attributes that a body uses as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

from onnx import AttributeProto, FunctionProto, NodeProto

from reducelower.model.attributes import HELD_AS, add_named
from reducelower.model.graph import read_by, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, attribute_type, element_type_name, opset_of, schema_in_force
from reducelower.rulebook.bindings import AXES, BINDINGS, SUPPORTED, claim_of
from reducelower.rulebook.reading import Source, complete_references
from reducelower.rulebook.validation import rule_types

__all__ = ["Helpers", "with_helpers_inlined"]

Helpers = Mapping[str, Sequence[Source]]
"""Helper functions by name. A rule has one definition of each per element type; a form may have several."""


def with_helpers_inlined(source: Source, helpers: Helpers) -> Iterator[Source]:
    """Yield a rule with all helpers inlined and all values defined.

    If a helper has further definitions for some element types of the rule, the rule is yielded for these as well.
    """
    types, _, without = source.function.overload.partition(" without ")
    for overload in (types, *_narrower(source, helpers)):
        yield _inlined(source.written_for(f"{overload} without {without}" if without else overload), helpers)


def _narrower(source: Source, helpers: Helpers) -> Iterable[str]:
    """Overloads for which a helper of the rule has its own definition."""
    function = source.function
    schema = schema_in_force(function.name, opset_of(function), "")
    rule_for = claim_of(function.overload).types or SUPPORTED
    if schema is not None and schema.inputs:
        rule_for = frozenset(rule_types(function, schema))
    overloads: dict[frozenset[int], str] = {}
    for overload in sorted(_overloads(source, helpers, set())):
        helper_for = claim_of(overload).types or SUPPORTED
        common = helper_for & rule_for
        if common and common < rule_for:
            overloads[common] = overload if common == helper_for else ", ".join(map(element_type_name, sorted(common)))
    return overloads.values()


def _overloads(source: Source, helpers: Helpers, seen: set[str]) -> set[str]:
    """The overloads of the helpers that a function uses, directly or indirectly."""
    overloads: set[str] = set()
    for name in {node.op_type for node in source.function.node if node.op_type in helpers} - seen:
        seen.add(name)
        for definition in helpers[name]:
            overloads |= {definition.function.overload} | _overloads(definition, helpers, seen)
    return overloads


def _inlined(source: Source, helpers: Helpers) -> Source:
    body = _Body(source, helpers)
    function = deepcopy(source.function)
    del function.node[:]
    function.node.extend(body.inlined(source, {}, {}, ()))
    function.attribute.extend(name for name in body.bindings if name not in function.attribute)
    # Constants come first, in the order of the attributes.
    constants = list(_constants_for_attributes(function))
    nodes = [*constants, *function.node]
    del function.node[:]
    function.node.extend(nodes)
    return replace(source, function=complete_references(function), helpers=tuple(body.used))


def _constants_for_attributes(function: FunctionProto) -> Iterator[NodeProto]:
    """Constant nodes for attributes that a function's body reads as values."""
    defined = {*function.input, *(name for node in function.node for name in node.output)}
    read = {name for node in function.node for name in read_by(node)}
    for name in function.attribute:
        if name in read and name not in defined:
            yield _constant(name, function)


def _constant(name: str, function: FunctionProto) -> NodeProto:
    """A Constant node for an attribute of a rule; it has no value if the attribute's type cannot be one."""
    node = NodeProto(op_type="Constant", output=[name])
    if name in BINDINGS:
        node.attribute.add(name="value", type=AttributeProto.TENSOR, ref_attr_name=name)
    elif name in AXES:
        node.attribute.add(name="value_ints", type=AttributeProto.INTS, ref_attr_name=name)
    elif (field := HELD_AS.get(attribute_type(function.name, opset_of(function), name))) is not None:
        node.attribute.add(name=field, ref_attr_name=name)
    return node


class _Body:
    """A body while helpers are inlined; `bindings` are attributes that helpers need from the engine."""

    def __init__(self, source: Source, helpers: Helpers) -> None:
        self.rule = source
        self.helpers = helpers
        self._types = claim_of(source.function.overload).types or SUPPORTED
        self.bindings: dict[str, None] = {}
        self.used: list[Source] = []
        function = source.function
        self._taken = {*function.input, *function.output, *BINDINGS, *AXES}
        self._taken.update(name for node in function.node for name in node.output)

    def inlined(
        self, source: Source, names: Mapping[str, str], attributes: Mapping[str, AttributeProto], stack: tuple[str, ...]
    ) -> Iterator[NodeProto]:
        """Yield the nodes of a function with helpers inlined.

        `names` and `attributes` map those of the function to those here, as far as they are decided. `stack` has the
        helpers that led here.
        """
        names_here = dict(names)
        for node in source.function.node:
            copy = self._copy(node, names_here, attributes, is_helper=bool(stack))
            helper = self._definition(node, source)
            if helper is None:
                yield copy
                continue
            if node.op_type in stack:
                raise source.error(f"the helper {node.op_type} uses itself", node.op_type)
            yield from self._called(copy, helper, source, attributes, (*stack, node.op_type))

    def _definition(self, node: NodeProto, source: Source) -> Source | None:
        definitions = self.helpers.get(node.op_type, ()) if node.domain in DEFAULT_DOMAINS else ()
        claims = {claim_of(each.function.overload): each for each in definitions}
        if len(claims) < len(definitions):
            raise source.error(f"the helper {node.op_type} is defined {len(definitions)} times", node.op_type)
        fitting = [claim for claim in claims if claim.types is None or claim.types >= self._types]
        if definitions and not fitting:
            raise source.error(f"the helper {node.op_type} is not written for every element type", node.op_type)
        return claims[min(fitting, key=lambda claim: claim.order)] if fitting else None

    def _called(
        self,
        call: NodeProto,
        helper: Source,
        caller: Source,
        around: Mapping[str, AttributeProto],
        stack: tuple[str, ...],
    ) -> Iterator[NodeProto]:
        """The nodes of a helper that replace a call; `around` has the caller's attributes."""
        function = helper.function
        if helper not in self.used:
            self.used.append(helper)
        if len(call.input) != len(function.input) or len(call.output) != len(function.output):
            raise caller.error(
                f"the helper {function.name} takes {len(function.input)} inputs and gives {len(function.output)} "
                f"outputs; here it takes {len(call.input)} and gives {len(call.output)}",
                function.name,
            )
        passed = {attribute.name: attribute for attribute in call.attribute}
        attributes = {attribute.name: attribute for attribute in function.attribute_proto} | passed
        for name in function.attribute:
            if name in BINDINGS or name in AXES:
                self.bindings[name] = None
            elif name in attributes:
                continue
            elif name in around:
                attributes[name] = around[name]
            elif name in caller.function.attribute or name in _named(caller.function.attribute_proto):
                attributes[name] = AttributeProto(name=name, ref_attr_name=name)
            else:
                raise caller.error(f"the helper {function.name} needs the attribute {name}", function.name)
        for name in passed:
            if name not in function.attribute and name not in _named(function.attribute_proto):
                raise caller.error(f"the helper {function.name} has no attribute {name!r}", function.name)
        names = dict(zip(function.input, call.input, strict=True)) | dict(
            zip(function.output, call.output, strict=True)
        )
        yield from self.inlined(helper, names, attributes, stack)

    def _copy(
        self, node: NodeProto, names: dict[str, str], attributes: Mapping[str, AttributeProto], *, is_helper: bool
    ) -> NodeProto:
        copy = deepcopy(node)
        if not is_helper:
            return copy
        copy.input[:] = [names.get(name, name) for name in node.input]
        copy.output[:] = [self._name(name, names) for name in node.output]
        del copy.attribute[:]
        for attribute in node.attribute:
            resolved = attributes.get(attribute.ref_attr_name, attribute) if attribute.ref_attr_name else attribute
            add_named(copy, resolved, attribute.name)
        for _, _, graph in subgraphs(copy):
            inside = dict(names)
            nodes = [self._copy(inner, inside, attributes, is_helper=True) for inner in graph.node]
            for value in graph.output:
                value.name = inside.get(value.name, value.name)
            del graph.node[:]
            graph.node.extend(nodes)
        return copy

    def _name(self, name: str, names: dict[str, str]) -> str:
        """The name in the body of a helper's value: unchanged, or numbered if that name is taken."""
        if name and name not in names:
            numbered = (name if number == 1 else f"{name}_{number}" for number in range(1, len(self._taken) + 2))
            names[name] = next(free for free in numbered if free not in self._taken)
            self._taken.add(names[name])
        return names.get(name, name)


def _named(attributes: Iterable[AttributeProto]) -> set[str]:
    return {attribute.name for attribute in attributes}
