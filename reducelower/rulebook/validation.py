"""Check that rules can be used; every mistake is one sentence with its file and line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from onnx import FunctionProto, NodeProto, TensorProto, defs

from reducelower.errors import RuleError
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import is_runtime_name, opset_of, schema, versions
from reducelower.rulebook.bindings import claim_of
from reducelower.rulebook.boundaries import Boundaries, BoundaryRule
from reducelower.rulebook.guards import asked_in, what_is_wrong
from reducelower.rulebook.occasions import Occasion
from reducelower.rulebook.reading import OPERATORS, Helpers, Source
from reducelower.rulebook.rows import ROWS
from reducelower.rulebook.specializing import OWN_OPERATORS
from reducelower.rulebook.values import KNOWN_NAMES

__all__ = ["check_boundaries", "validate"]

_COMPLETE = 18
"""Bodies for older opset versions may use operators of this one to compute constants, and CastLike in place of Cast."""


def validate(source: Source, op_type: str, helpers: Helpers) -> None:
    """Check a function against the operator that it replaces.

    Raises:
        RuleError: the function is invalid or does not fit the operator; with file and line if known.
    """
    function, opset = source.function, opset_of(source.function)
    _check_name(source, op_type)
    claim_of(source)
    if not 1 <= opset <= defs.onnx_opset_version():
        reason = f'opset_import must name ["" : N] with N from 1 to {defs.onnx_opset_version()}'
        raise source.error(reason, "opset_import")
    operator = schema(op_type, opset)
    if operator is None:
        raise source.error(f"opset {opset} has no operator {op_type} to replace", op_type)
    if not operator.inputs:
        raise source.error(f"{op_type} has no inputs, and rules are chosen by the element type of the first", op_type)
    _check_signature(source, op_type, [operator], least=len(operator.inputs))
    _Body(source, helpers, declared(function), op_type).check(function.output)


def check_boundaries(book: Boundaries) -> None:
    """Check every rule of a folder.

    Raises:
        RuleError: one names an operator, version, attribute or value that does not exist, or lacks something.
    """
    rows = book.path / ROWS
    if book.name and rows.exists():
        raise RuleError("only the package edits attributes by rows; write a rule with Self", rows)
    for op_type in book.operators:
        for rule in book.rules(op_type):
            _check_rule(op_type, rule, book.domain)
    for of_domain in book.of_domains.values() if not book.domain else ():
        check_boundaries(of_domain)


def declared(function: FunctionProto) -> list[str]:
    """The names of the attributes in a function's header."""
    return [*function.attribute, *(attribute.name for attribute in function.attribute_proto)]


def _check_name(source: Source, op_type: str) -> None:
    names_operators = bool(source.lines) and source.lines[0].startswith(OPERATORS)
    if source.path is not None and not names_operators and source.function.name != op_type:
        name = source.function.name
        raise source.error(f"the file is named after {op_type}, the function is for {name}", name)


def _check_signature(source: Source, op_type: str, operators: Sequence[defs.OpSchema], least: int = 0) -> None:
    """Check inputs, outputs and attributes against the versions of the operator, of which a vendor's has none."""
    function = source.function
    for what, names, places in (
        ("inputs", function.input, [(each.max_input, each.inputs) for each in operators]),
        ("outputs", function.output, [(each.max_output, each.outputs) for each in operators]),
    ):
        most, formals = max(places, key=lambda place: place[0], default=(len(names), ()))
        if not (least if what == "inputs" else 0) <= len(names) <= most:
            stated = ", ".join(formal.name for formal in formals)
            raise source.error(f"{op_type} has {len(formals)} {what} ({stated}), the rule has {len(names)}", op_type)
    known = {*KNOWN_NAMES, *(name for each in operators for name in each.attributes)}
    for name in function.attribute if operators else ():
        if name not in known:
            raise source.error(
                f"{name!r} is neither an attribute of {op_type} nor a binding (known: {', '.join(sorted(known))}), "
                "and the header gives it no value",
                name,
            )


def _problem_of(occasion: Occasion, op_type: str, domain: str) -> str:
    """What is wrong with the boundary at which a rule is tried; empty if nothing is."""
    if domain:
        return "" if (occasion.way, occasion.at) == ("absent", "") else f"operators of {domain} have rules for 'absent'"
    known_versions = versions(op_type)
    if not known_versions and not is_runtime_name(op_type):
        return f"{op_type} is no operator of ONNX"
    if occasion.way in ("below", "from") and occasion.boundary(op_type) not in known_versions[1:]:
        changes = ", ".join(map(str, known_versions[1:])) or "none"
        return f"{op_type} has no boundary {occasion.at} (it changed at: {changes})"
    return ""


def _schemas(op_type: str) -> list[defs.OpSchema]:
    return [operator for version in versions(op_type) if (operator := schema(op_type, version)) is not None]


def _check_rule(op_type: str, rule: BoundaryRule, domain: str) -> None:
    source, function = rule.source, rule.function
    if problem := _problem_of(rule.occasion, op_type, domain):
        raise source.error(problem, "overload")
    _check_name(source, op_type)
    if domain and not rule.opset:
        raise source.error("a rule says for which opset version its body is written", "opset_import")
    operators = [] if domain else _schemas(op_type)
    # A shipped rule may name an input that no version has (see DequantizeLinear), or not all of its operators (GRU).
    _check_signature(source, op_type, operators if rule.book else ())
    attributes = {*declared(function), *(name for operator in operators for name in operator.attributes)}
    is_left = not domain and rule.occasion != Occasion("absent", "")
    body = _Body(source, rule.helpers, attributes, "" if is_left else op_type, domain)
    for text in filter(None, (rule.occasion.guard, *asked_in(function.doc_string))):
        body.check_question(text, "overload")
    body.check(function.output[:1])  # the guard excludes nodes with other outputs


@dataclass(frozen=True)
class _Body:
    """The body of a rule, or of a helper that it calls.

    Attributes:
        helpers: functions that it may call.
        attributes: names that a reference may have: of attributes of the operator and of all headers so far.
        replaced: the operator, if the body may not leave it: it has no ``Self``.
        domain: the domain of the operator, if it is a vendor's, of whose attributes nothing is known.
        callers: the helpers that lead to this one.
    """

    source: Source
    helpers: Helpers
    attributes: Collection[str]
    replaced: str = ""
    domain: str = ""
    callers: tuple[str, ...] = ()

    def check(self, outputs: Iterable[str]) -> None:
        """Check all nodes, and that they give the outputs.

        Raises:
            RuleError: a node does not fit its operator's schema, or reads a value that no node before it computes.
        """
        defined = {*self.source.function.input, *self.attributes, *KNOWN_NAMES}
        self._check_nodes(self.source.function.node, defined)
        for value in outputs:
            if value not in defined:
                raise self.source.error(f"nothing gives the output {value!r}", value)

    def check_question(self, text: str, word: str) -> None:
        """Check a question about the node, which stands in a guard or in a sentence."""
        function = self.source.function
        attributes = None if self.domain else self.attributes
        if problem := what_is_wrong(text, {*function.input, *function.output}, attributes):
            raise self.source.error(problem, word)

    def _check_nodes(self, nodes: Iterable[NodeProto], defined: set[str]) -> None:
        assigned = set(self.source.function.input)
        for node in nodes:
            word = next(iter(node.output), "") or node.op_type
            for name in filter(None, node.input):
                if name not in defined:
                    raise self.source.error(f"{node.op_type} takes {name!r}, which nothing before it gives", word)
            for attribute in node.attribute:
                tensors = [attribute.t, *attribute.tensors, *attribute.g.initializer]
                if any(tensor.data_location == TensorProto.EXTERNAL or tensor.external_data for tensor in tensors):
                    # Rules are text that anyone may write.
                    raise self.source.error("a rule states its values itself and reads no other file", word)
                if attribute.ref_attr_name and attribute.ref_attr_name not in defined:
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
        opset = opset_of(self.source.function)
        if node.domain:
            raise self.source.error(f"a rule does not write operators of {node.domain}", word)
        if node.op_type == "Self":
            if self.replaced:
                raise self.source.error(f"the target lacks {self.replaced}, so there is no Self", word)
            return
        if node.op_type == "ItsBody" and self.replaced:
            raise self.source.error("nothing says here what the operator is made of", word)
        if node.op_type in self.helpers:
            self._check_call(node, word)
        elif node.op_type in OWN_OPERATORS:
            self._check_own(node, word)
        elif not (schema(node.op_type, opset) or schema(node.op_type, _COMPLETE)):
            raise self.source.error(f"opset {opset} has no operator {node.op_type}, and it is no helper", word)

    def _check_own(self, node: NodeProto, word: str) -> None:
        """Check an operator of the engine's own; onnx's checker looks at the others where the rule is applied."""
        _, fewest, most, needs, allows = OWN_OPERATORS[node.op_type]
        if not fewest <= len(node.input) <= most:
            raise self.source.error(f"{node.op_type} does not take {len(node.input)} inputs", word)
        named = {attribute.name for attribute in node.attribute}
        if missing := [name for name in needs if name not in named]:
            raise self.source.error(f"{node.op_type} needs the attribute {missing[0]!r}", word)
        if unknown := sorted(named.difference(needs, allows)):
            raise self.source.error(f"{node.op_type} has no attribute {unknown[0]!r}", word)
        for attribute in node.attribute:
            text = attribute.s.decode()
            for asked in [text] if node.op_type == "Answer" else asked_in(text):
                self.check_question(asked, word)

    def _check_call(self, node: NodeProto, word: str) -> None:
        name, helpers = node.op_type, self.helpers[node.op_type]
        if len(set(map(claim_of, helpers))) < len(helpers):
            raise self.source.error(f"the helper {name} is defined {len(helpers)} times", word)
        if name in self.callers:
            raise self.source.error(f"the helper {name} calls itself", word)
        for source in helpers:
            function = source.function
            for what, names, formals in (
                ("inputs", node.input, function.input),
                ("outputs", node.output, function.output),
            ):
                if len(names) != len(formals):
                    raise self.source.error(f"the helper {name} has {len(formals)} {what}, not {len(names)}", word)
            passed, header = {attribute.name for attribute in node.attribute}, declared(function)
            if unknown := sorted(passed.difference(header)):
                raise self.source.error(f"the helper {name} has no attribute {unknown[0]!r}", word)
            for needed in function.attribute:
                if needed not in {*passed, *self.attributes, *KNOWN_NAMES}:
                    raise self.source.error(f"the helper {name} needs the attribute {needed}", word)
            attributes, callers = {*self.attributes, *header}, (*self.callers, name)
            replace(self, source=source, attributes=attributes, callers=callers).check(function.output)
