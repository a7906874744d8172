"""Check that a function is a valid rule; every failure is one sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from onnx import FunctionProto, NodeProto, TensorProto, checker, defs, helper

from reducelower.model.graph import subgraphs, walk
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name, opset_of, schema_in_force
from reducelower.model.text import one_line
from reducelower.rulebook.bindings import AXES, BINDINGS, CLASSES, SUPPORTED, binding_type, claim_of
from reducelower.rulebook.reading import Source

__all__ = ["Body", "check_helper", "check_overload", "declared", "rule_types", "validate"]


@dataclass(frozen=True)
class Body:
    """The body of a rule.

    Attributes:
        attributes: the names of attributes that it may refer to.
        values: the names of values that it has besides its inputs.
    """

    source: Source
    attributes: Collection[str]
    values: Collection[str] = ()

    def check(self) -> set[str]:
        """Check all nodes, and return the names of all values.

        Raises:
            RuleError: a node does not fit its operator's schema, or reads a value that no node before it computes.
        """
        defined = {*self.source.function.input, *self.values}
        self._check_nodes(self.source.function.node, defined)
        return defined

    def _check_nodes(self, nodes: Iterable[NodeProto], defined: set[str]) -> None:
        assigned = set(self.source.function.input)
        for node in nodes:
            word = _first(node) or node.op_type
            for name in filter(None, node.input):
                if name not in defined:
                    raise self.source.error(f"{node.op_type} takes {name!r}, which nothing before it gives", word)
            for attribute in node.attribute:
                tensors = [attribute.t, *attribute.tensors, *attribute.g.initializer]
                if any(tensor.data_location == TensorProto.EXTERNAL or tensor.external_data for tensor in tensors):
                    # Rules are text that anyone may write.
                    raise self.source.error("a rule states its values itself and reads no other file", word)
                if attribute.ref_attr_name and not self._refers_to_something(attribute.ref_attr_name, defined):
                    raise self.source.error(f"nothing gives @{attribute.ref_attr_name}", word)
            self._check_node(node, word)
            for _, _, graph in subgraphs(node):
                self._check_nodes(graph.node, inside := defined | {value.name for value in graph.input})
                for value in graph.output:
                    if value.name not in inside:
                        raise self.source.error(f"nothing gives {value.name!r}", value.name)
            for name in filter(None, node.output):
                if name in assigned:
                    raise self.source.error(f"{name!r} is given twice", name)
                assigned.add(name)
                defined.add(name)

    def _refers_to_something(self, name: str, defined: Collection[str]) -> bool:
        return name in self.attributes

    def _check_node(self, node: NodeProto, word: str, newest: int = 0) -> None:
        """Check a node by the schema of its operator at the rule's opset version or at `newest`."""
        opset = opset_of(self.source.function)
        schemas = (schema_in_force(node.op_type, version, node.domain) for version in (opset, newest))
        operators = [each for each in schemas if each is not None]
        if not operators:
            raise self.source.error(f"opset {opset} has no operator {node.op_type}, and it is no helper", word)
        fewest, most = min(each.min_output for each in operators), max(each.max_output for each in operators)
        if not fewest <= len(node.output) <= most:
            raise self.source.error(f"{node.op_type} does not give {len(node.output)} outputs", word)
        inputs = min(each.min_input for each in operators), max(each.max_input for each in operators)
        self._check_form(node, word, *inputs, (), operators[0].attributes)

    def _check_form(
        self, node: NodeProto, word: str, fewest: int, most: int, needs: Collection[str], allows: Collection[str]
    ) -> None:
        if not fewest <= len(node.input) <= most:
            raise self.source.error(f"{node.op_type} does not take {len(node.input)} inputs", word)
        named = {attribute.name for attribute in node.attribute}
        if missing := [name for name in needs if name not in named]:
            raise self.source.error(f"{node.op_type} needs the attribute {missing[0]!r}", word)
        if unknown := sorted(named.difference(needs, allows)):
            raise self.source.error(f"{node.op_type} has no attribute {unknown[0]!r}", word)


def validate(source: Source, op_type: str) -> None:
    """Check a function against the operator it replaces.

    Raises:
        RuleError: the function is invalid or does not fit the operator; with file and line if known.
    """
    schema = _check_header(source, op_type)
    if not schema.inputs:
        raise source.error(f"{op_type} has no inputs, and rules are chosen by the element type of the first", op_type)
    _check_signature(source, schema)
    for node in walk(source.function.node):
        if node.op_type == op_type and node.domain in DEFAULT_DOMAINS:
            raise source.error(f"the rule for {op_type} uses {op_type} itself", _first(node))
    Body(source, declared(source.function)).check()
    _check_outputs(source)
    _check_as_model(source, schema)


def rule_types(function: FunctionProto, schema: defs.OpSchema) -> list[int]:
    """Element types that the operator's first input takes and the rule is for."""
    allowed = schema.inputs[0].types
    types = claim_of(function.overload).types
    return sorted(t for t in SUPPORTED & (types or SUPPORTED) if f"tensor({element_type_name(t)})" in allowed)


def check_overload(source: Source) -> None:
    """Raise RuleError if the overload names an unknown class of element types."""
    try:
        claim_of(source.function.overload)
    except ValueError as error:
        allowed = ", ".join(CLASSES)
        raise source.error(f"unknown class of element types {str(error)!r} (known: {allowed})", "overload") from None


def check_helper(source: Source, helpers: Iterable[str]) -> None:
    """Raise RuleError if a helper could be taken for an operator, uses an unknown one, or lacks an output."""
    function = source.function
    check_overload(source)
    if defs.has(function.name, domain=""):
        raise source.error(f"a helper may not be called {function.name}, the name of an ONNX operator", function.name)
    for node in function.node:
        if not defs.has(node.op_type, domain=node.domain) and node.op_type not in helpers:
            raise source.error(f"{node.op_type} is neither an operator nor a helper", _first(node))
    _check_outputs(source)


def _check_header(source: Source, op_type: str) -> defs.OpSchema:
    function = source.function
    if function.name != op_type:
        raise source.error(f"the file is named after {op_type}, the function is for {function.name}", function.name)
    if not function.domain:
        raise source.error("the function needs a domain of its own; the empty one is ONNX's", "domain")
    opset = opset_of(function)
    if not 1 <= opset <= defs.onnx_opset_version():
        raise source.error(
            f'opset_import must name ["" : N] with N from 1 to {defs.onnx_opset_version()}', "opset_import"
        )
    foreign = [entry.domain for entry in function.opset_import if entry.domain]
    if foreign:
        raise source.error(f"a rule may use the default domain only, not {foreign[0]!r}", "opset_import")
    try:
        return defs.get_schema(op_type, opset, "")
    except defs.SchemaError:
        raise source.error(f"opset {opset} has no operator {op_type} to replace", op_type) from None


def _check_signature(source: Source, schema: defs.OpSchema) -> None:
    function = source.function
    if len(function.input) != len(schema.inputs):
        names = ", ".join(formal.name for formal in schema.inputs)
        raise source.error(
            f"{schema.name} has {len(schema.inputs)} inputs ({names}), the rule has {len(function.input)}", schema.name
        )
    if not schema.min_output <= len(function.output) <= len(schema.outputs):
        names = ", ".join(formal.name for formal in schema.outputs)
        raise source.error(
            f"{schema.name} has {len(schema.outputs)} outputs ({names}), the rule has {len(function.output)}",
            schema.name,
        )
    for name in declared(function):
        if name not in schema.attributes and name not in BINDINGS and name not in AXES:
            allowed = ", ".join([*schema.attributes, *BINDINGS, *AXES])
            raise source.error(
                f"{name!r} is neither an attribute of {schema.name} nor a binding (known: {allowed})", name
            )


def _check_outputs(source: Source) -> None:
    defined = {value for node in source.function.node for value in node.output}
    for value in source.function.output:
        if value not in defined:
            raise source.error(f"nothing gives the output {value!r}", value)


def _check_as_model(source: Source, schema: defs.OpSchema) -> None:
    """Run ONNX's checker on a model of one node that calls the rule, for every element type."""
    function = source.function
    types = rule_types(function, schema)
    if not types and len(schema.inputs):
        raise source.error(f"{function.name} takes no element type of the class {function.overload!r}", "overload")
    for name in AXES:
        if name in function.attribute and not AXES[name].fits(schema):
            raise source.error(f"{function.name} has no {name}", name)
    for element_type in types:
        bound = binding_type(function, element_type)
        missing = [name for name in function.attribute if name in BINDINGS and bound not in BINDINGS[name]]
        if missing:
            type_name = element_type_name(element_type)
            raise source.error(f"{type_name} has no {missing[0]!r}; narrow the overload", missing[0])
    graph = helper.make_graph([], "rule", [], [])
    model = helper.make_model(graph, functions=[function], opset_imports=[*function.opset_import])
    model.opset_import.append(helper.make_opsetid(function.domain, 1))
    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        raise source.error(f"is not a valid function: {one_line(error)}") from None


def declared(function: FunctionProto) -> list[str]:
    """The names of the attributes in a function's header."""
    return [*function.attribute, *(attribute.name for attribute in function.attribute_proto)]


def _first(node: NodeProto) -> str:
    return node.output[0] if node.output else ""
