"""Helper functions of rule files, written into the bodies that use them, and values that a body takes by name alone."""

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

__all__ = ["Helpers", "given_by_name", "read_out"]

Helpers = Mapping[str, Sequence[Source]]
"""Helper functions by name. For an element type, a rule has one definition of each; a form may have several."""


def read_out(source: Source, helpers: Helpers) -> Iterator[Source]:
    """A rule whose body uses no helper any more, and gives every value it uses.

    Where its helpers are written once more for some of its element types, so is the rule.
    """
    types, _, without = source.function.overload.partition(" without ")
    for overload in (types, *_narrower(source, helpers)):
        yield _read_out(source.written_for(f"{overload} without {without}" if without else overload), helpers)


def _narrower(source: Source, helpers: Helpers) -> Iterable[str]:
    """Overloads for some of the element types of a rule, for which helpers that it uses are written once more."""
    function = source.function
    schema = schema_in_force(function.name, opset_of(function), "")
    taken = claim_of(function.overload).types or SUPPORTED
    if schema is not None and schema.inputs:
        taken = frozenset(rule_types(function, schema))
    found: dict[frozenset[int], str] = {}
    for overload in sorted(_overloads(source, helpers, set())):
        claimed = claim_of(overload).types or SUPPORTED
        common = claimed & taken
        if common and common < taken:
            found[common] = overload if common == claimed else ", ".join(map(element_type_name, sorted(common)))
    return found.values()


def _overloads(source: Source, helpers: Helpers, seen: set[str]) -> set[str]:
    """The overloads of the helpers that a function uses, and of those that they use."""
    found: set[str] = set()
    for name in {node.op_type for node in source.function.node if node.op_type in helpers} - seen:
        seen.add(name)
        for definition in helpers[name]:
            found |= {definition.function.overload} | _overloads(definition, helpers, seen)
    return found


def _read_out(source: Source, helpers: Helpers) -> Source:
    body = _Body(source, helpers)
    function = deepcopy(source.function)
    del function.node[:]
    function.node.extend(body.inlined(source, {}, {}, ()))
    function.attribute.extend(name for name in body.bindings if name not in function.attribute)
    # Constants come first, in the order of the attributes.
    constants = list(given_by_name(function))
    nodes = [*constants, *function.node]
    del function.node[:]
    function.node.extend(nodes)
    return replace(source, function=complete_references(function), helpers=tuple(body.used))


def given_by_name(function: FunctionProto) -> Iterator[NodeProto]:
    """Constant nodes for the attributes of a function which its body uses as values without giving them."""
    given = {*function.input, *(name for node in function.node for name in node.output)}
    read = {name for node in function.node for name in read_by(node)}
    for name in function.attribute:
        if name in read and name not in given:
            yield _constant(name, function)


def _constant(name: str, function: FunctionProto) -> NodeProto:
    """A Constant node that yields an attribute of a rule; without an attribute where it cannot be a value."""
    node = NodeProto(op_type="Constant", output=[name])
    if name in BINDINGS:
        node.attribute.add(name="value", type=AttributeProto.TENSOR, ref_attr_name=name)
    elif name in AXES:
        node.attribute.add(name="value_ints", type=AttributeProto.INTS, ref_attr_name=name)
    elif (held := HELD_AS.get(attribute_type(function.name, opset_of(function), name))) is not None:
        node.attribute.add(name=held, ref_attr_name=name)
    return node


class _Body:
    """One body while helpers are written into it; `bindings` are the attributes that helpers ask the engine for."""

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
        """The nodes of a function, helpers written out.

        The names and attributes are what its values and attributes are called and are here, as far as that is settled;
        the stack holds the helpers that lead here.
        """
        known = dict(names)
        for node in source.function.node:
            copy = self._copy(node, known, attributes, is_helper=bool(stack))
            found = self._definition(node, source)
            if found is None:
                yield copy
                continue
            if node.op_type in stack:
                raise source.error(f"the helper {node.op_type} uses itself", node.op_type)
            yield from self._called(copy, found, source, attributes, (*stack, node.op_type))

    def _definition(self, node: NodeProto, source: Source) -> Source | None:
        written = self.helpers.get(node.op_type, ()) if node.domain in DEFAULT_DOMAINS else ()
        claims = {claim_of(each.function.overload): each for each in written}
        if len(claims) < len(written):
            raise source.error(f"the helper {node.op_type} is defined {len(written)} times", node.op_type)
        found = [claim for claim in claims if claim.types is None or claim.types >= self._types]
        if written and not found:
            raise source.error(f"the helper {node.op_type} is not written for every element type", node.op_type)
        return claims[min(found, key=lambda claim: claim.order)] if found else None

    def _called(
        self,
        call: NodeProto,
        helper: Source,
        caller: Source,
        around: Mapping[str, AttributeProto],
        stack: tuple[str, ...],
    ) -> Iterator[NodeProto]:
        """The nodes of a helper in place of a node that calls it; `around` are the caller's attributes."""
        function = helper.function
        if helper not in self.used:
            self.used.append(helper)
        if len(call.input) != len(function.input) or len(call.output) != len(function.output):
            raise caller.error(
                f"the helper {function.name} takes {len(function.input)} inputs and gives {len(function.output)} "
                f"outputs; here it takes {len(call.input)} and gives {len(call.output)}",
                function.name,
            )
        given = {attribute.name: attribute for attribute in call.attribute}
        attributes = {attribute.name: attribute for attribute in function.attribute_proto} | given
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
        for name in given:
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
            said = attributes.get(attribute.ref_attr_name, attribute) if attribute.ref_attr_name else attribute
            add_named(copy, said, attribute.name)
        for _, _, graph in subgraphs(copy):
            inside = dict(names)
            nodes = [self._copy(inner, inside, attributes, is_helper=True) for inner in graph.node]
            for value in graph.output:
                value.name = inside.get(value.name, value.name)
            del graph.node[:]
            graph.node.extend(nodes)
        return copy

    def _name(self, name: str, names: dict[str, str]) -> str:
        """What a value of a helper is called in the body: as in the helper, or numbered where that is taken."""
        if name and name not in names:
            numbered = (name if number == 1 else f"{name}_{number}" for number in range(1, len(self._taken) + 2))
            names[name] = next(free for free in numbered if free not in self._taken)
            self._taken.add(names[name])
        return names.get(name, name)


def _named(attributes: Iterable[AttributeProto]) -> set[str]:
    return {attribute.name for attribute in attributes}
