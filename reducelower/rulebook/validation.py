"""Check that a function is a valid rule; every failure is one sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from onnx import FunctionProto, NodeProto, TensorProto, defs

from reducelower.model.graph import subgraphs, walk
from reducelower.model.schemas import element_type_name, opset_of, schema
from reducelower.rulebook.bindings import AXES, BINDINGS, SUPPORTED, chosen, claim_of, is_stashed
from reducelower.rulebook.guards import asked_in, what_is_wrong
from reducelower.rulebook.named import TYPES
from reducelower.rulebook.reading import Helpers, Source, Written
from reducelower.rulebook.specializing import ITS_BODY, OWN_OPERATORS

__all__ = ["Body", "declared", "rule_types", "validate"]

_COMPLETE = 18
"""Bodies for older opset versions may use operators of this one to compute constants, and CastLike in place of Cast."""

_VALUES = frozenset({*BINDINGS, "of_nothing", "target"})
"""Values that a body has without computing them."""

_FORMS = {**OWN_OPERATORS, ITS_BODY: OWN_OPERATORS["Refuse"]}
del _FORMS["Self"]


@dataclass(frozen=True)
class Body:
    """The body of a rule, or of a helper that it calls.

    Attributes:
        helpers: functions that it may call.
        attributes: names that a reference may have: of attributes of the operator and of all headers so far.
        replaced: the operator, if the body may not leave it: it has no ``Self``.
        domain: the domain of the operator, if it is a vendor's.
        element_type: that of the data, which chooses among the definitions of a helper.
        callers: the helpers that lead to this one.
    """

    source: Source
    helpers: Helpers
    attributes: Collection[str]
    replaced: str = ""
    domain: str = ""
    element_type: int | None = None
    callers: tuple[str, ...] = ()

    def check(self, outputs: Iterable[str]) -> None:
        """Check all nodes, and that they give the outputs.

        Raises:
            RuleError: a node does not fit its operator's schema, or reads a value that no node before it computes.
        """
        defined = {*self.source.function.input, *self.attributes, *_VALUES}
        self._check_nodes(self.source.function.node, defined)
        for value in outputs:
            if value not in defined:
                raise self.source.error(f"nothing gives the output {value!r}", value)

    def check_question(self, text: str, word: str) -> None:
        """Check a question about the node, which stands in a guard or in a sentence."""
        function = self.source.function
        # No schema says which attributes an operator of a vendor has.
        if not self.domain and (problem := what_is_wrong(text, {*function.input, *function.output}, self.attributes)):
            raise self.source.error(problem, word)

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
                if attribute.ref_attr_name and attribute.ref_attr_name not in {*defined, *TYPES}:
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

    def _check_node(self, node: NodeProto, word: str) -> None:
        if node.domain not in ("", self.domain):
            raise self.source.error(f"a rule does not write operators of {node.domain}", word)
        if self.domain and self.replaced and (node.domain or node.op_type == "Self"):
            raise self.source.error(f"a rule for 'absent' leaves nothing of {self.domain}", word)
        if node.domain:
            return
        if self.replaced and node.op_type == "Self":
            raise self.source.error(f"the target lacks {self.replaced}, so there is no Self", word)
        if node.op_type == ITS_BODY and (self.domain or self.replaced):
            raise self.source.error("nothing says here what the operator is made of", word)
        if node.op_type in self.helpers:
            self._check_call(node, word)
        elif node.op_type in _FORMS:
            _, fewest, most, needs, allows = _FORMS[node.op_type]
            self._check_form(node, word, fewest, most, needs, allows)
            for attribute in node.attribute:
                text = attribute.s.decode()
                for asked in [text] if node.op_type == "Answer" else asked_in(text):
                    self.check_question(asked, word)
        elif node.op_type != "Self":
            self._check_operator(node, word)

    def _check_operator(self, node: NodeProto, word: str) -> None:
        opset = opset_of(self.source.function)
        operators = [
            each for each in (schema(node.op_type, opset), schema(node.op_type, _COMPLETE)) if each is not None
        ]
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

    def _check_call(self, node: NodeProto, word: str) -> None:
        name, helpers = node.op_type, self.helpers[node.op_type]
        if len(set(map(claim_of, helpers))) < len(helpers):
            raise self.source.error(f"the helper {name} is defined {len(helpers)} times", word)
        called = chosen(helpers, self.element_type)
        if called is None:
            raise self.source.error(f"the helper {name} is not written for every element type", word)
        if name in self.callers:
            raise self.source.error(f"the helper {name} calls itself", word)
        function = called.function
        for what, names, formals in (("inputs", node.input, function.input), ("outputs", node.output, function.output)):
            if len(names) != len(formals):
                raise self.source.error(f"the helper {name} has {len(formals)} {what}, not {len(names)}", word)
        passed, header = {attribute.name for attribute in node.attribute}, declared(function)
        if unknown := sorted(passed.difference(header)):
            raise self.source.error(f"the helper {name} has no attribute {unknown[0]!r}", word)
        for needed in function.attribute:
            if needed not in {*passed, *self.attributes, *BINDINGS, *AXES}:
                raise self.source.error(f"the helper {name} needs the attribute {needed}", word)
        attributes, callers = {*self.attributes, *header}, (*self.callers, name)
        replace(self, source=called, attributes=attributes, callers=callers).check(function.output)


def validate(source: Source, op_type: str, helpers: Helpers) -> None:
    """Check a function against the operator it replaces.

    Raises:
        RuleError: the function is invalid or does not fit the operator; with file and line if known.
    """
    operator = _check_header(source, op_type)
    if not operator.inputs:
        raise source.error(f"{op_type} has no inputs, and rules are chosen by the element type of the first", op_type)
    _check_signature(source, operator)
    function = source.function
    for node in walk(function.node):
        if node.op_type == op_type and not node.domain:
            raise source.error(f"the rule for {op_type} uses {op_type} itself", _first(node))
    types = rule_types(source, operator)
    if not types:
        raise source.error(f"{op_type} takes no element type of the class {function.overload!r}", "overload")
    for element_type in types:
        Body(source, helpers, declared(function), op_type, element_type=element_type).check(function.output)
        bound = TensorProto.FLOAT if is_stashed(function) else element_type
        headers = (name for each in Written(source, helpers).functions for name in each.function.attribute)
        for name in headers:
            if bound not in BINDINGS.get(name, SUPPORTED):
                reason = f"{element_type_name(element_type)} has no {name!r}; narrow the overload"
                raise source.error(reason, name)
            if name in AXES and not AXES[name].fits(operator):
                raise source.error(f"{op_type} has no {name}", name)


def rule_types(source: Source, schema: defs.OpSchema) -> list[int]:
    """Element types that the operator's first input takes and the rule is for."""
    allowed = schema.inputs[0].types
    types = claim_of(source).types
    return sorted(t for t in SUPPORTED & (types or SUPPORTED) if f"tensor({element_type_name(t)})" in allowed)


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


def declared(function: FunctionProto) -> list[str]:
    """The names of the attributes in a function's header."""
    return [*function.attribute, *(attribute.name for attribute in function.attribute_proto)]


def _first(node: NodeProto) -> str:
    return node.output[0] if node.output else ""
