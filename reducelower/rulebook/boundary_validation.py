"""Check the boundary rules of a folder; every failure is one sentence with its file and line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from onnx import NodeProto, defs

from reducelower.errors import RuleError
from reducelower.model.schemas import is_runtime_name, schema, versions
from reducelower.rulebook.bindings import BINDINGS
from reducelower.rulebook.boundaries import ITS_BODY, OPERATORS, Boundaries, BoundaryRule, Occasion, Row
from reducelower.rulebook.guards import asked_in, what_is_wrong
from reducelower.rulebook.named import TYPES
from reducelower.rulebook.own_operators import OWN_OPERATORS
from reducelower.rulebook.reading import Source
from reducelower.rulebook.validation import Body, declared

__all__ = ["check_boundaries"]

_COMPLETE = 18
"""Bodies for older opset versions may use operators of this one to compute constants, and CastLike in place of Cast."""

_RETYPED = 13
"""The opset version of bodies for lacking element types, the same as that of the casts around other nodes."""

_VALUES = frozenset({*BINDINGS, "of_nothing", "target"})
"""Values that a body has without computing them."""

_FORMS = {**OWN_OPERATORS, ITS_BODY: OWN_OPERATORS["Refuse"]}
del _FORMS["Self"]


def check_boundaries(book: Boundaries) -> None:
    """Check every rule and row of a folder.

    Raises:
        RuleError: one names an operator, version, attribute or value that does not exist, or lacks something.
    """
    for op_type in book.operators:
        for row in book.rows(op_type):
            _check_row(op_type, row, book.domain)
        for rule in book.rules(op_type):
            _check_rule(op_type, rule, book.domain)
    for of_domain in book.of_domains.values() if not book.domain else ():
        check_boundaries(of_domain)


def _check_occasion(op_type: str, occasion: Occasion, domain: str) -> None:
    if domain:
        if occasion.way == "lacking" or not (occasion.at or "2").isdigit() or int(occasion.at or 2) < 2:
            raise RuleError(
                f"operators of {domain} have rules 'below N' and 'from N', where N is 2 or more, and 'absent'"
            )
        return
    known_versions = versions(op_type)
    boundary = occasion.boundary(op_type)
    if not known_versions and not is_runtime_name(op_type):
        raise RuleError(f"{op_type} is no operator of ONNX")
    if occasion.way in ("below", "from") and boundary not in known_versions[1:]:
        changes = ", ".join(map(str, known_versions[1:])) or "none"
        raise RuleError(f"{op_type} has no boundary {occasion.at} (it changed at: {changes})")


def _check_row(op_type: str, row: Row, domain: str) -> None:
    try:
        _check_occasion(op_type, row.occasion, domain)
    except RuleError as error:
        raise RuleError(error.reason, *row.place) from None
    if domain:
        return  # no schema says which attributes its operators have
    stated = _attributes(op_type)
    formals = {formal.name for operator in _schemas(op_type) for formal in (*operator.inputs, *operator.outputs)}
    texts = [value for value in row.sets.values() if isinstance(value, str)]
    for text in filter(None, (row.occasion.guard, *texts, *asked_in(row.refuse), *asked_in(row.hint))):
        if problem := what_is_wrong(text, formals, stated):
            raise RuleError(problem, *row.place)
    for name in (*row.sets, *row.drops):
        if name not in stated:
            raise RuleError(f"{op_type} has no attribute {name!r}", *row.place)


def _attributes(op_type: str) -> set[str]:
    """The attributes that an operator has at any of its versions."""
    return {name for operator in _schemas(op_type) for name in operator.attributes}


def _schemas(op_type: str) -> list[defs.OpSchema]:
    return [operator for version in versions(op_type) if (operator := schema(op_type, version)) is not None]


def _check_rule(op_type: str, rule: BoundaryRule, domain: str) -> None:
    source, function = rule.source, rule.source.function
    header = set(declared(function))
    values = header | _VALUES
    try:
        _check_occasion(op_type, rule.occasion, domain)
    except RuleError as error:
        raise source.error(error.reason, "overload") from None
    names_operators = bool(source.lines) and source.lines[0].startswith(OPERATORS)
    if source.path is not None and not names_operators and function.name != op_type:
        raise source.error(f"the file is named after {op_type}, the function is for {function.name}", function.name)
    if rule.occasion.way == "lacking" and rule.opset != _RETYPED:
        raise source.error(
            f"a body for an element type that is lacking is written for opset {_RETYPED}", "opset_import"
        )
    if domain:
        if not rule.opset:
            raise source.error("a rule says for which opset version its body is written", "opset_import")
        absent = op_type if rule.occasion.way == "absent" else ""
        _Body(source, header, values, rule.helpers, absent, domain).check()
        return
    stated = _attributes(op_type)
    for name in function.attribute:
        if stated and name not in stated | _VALUES:
            raise source.error(f"{name!r} is no attribute of {op_type}, and the header gives it no value", name)
    if rule.book:
        _check_signature(source, op_type)
    is_for_all = rule.occasion == Occasion("absent", "", "")
    body = _Body(source, stated | header, values, rule.helpers, op_type if is_for_all else "")
    for text in filter(None, (rule.occasion.guard, *asked_in(function.doc_string))):
        body.check_question(text, {*function.input, *function.output}, "overload")
    body.check()


def _check_signature(source: Source, op_type: str) -> None:
    schemas = _schemas(op_type)
    for what, names, most in (
        ("inputs", source.function.input, max((each.max_input for each in schemas), default=1 << 30)),
        ("outputs", source.function.output, max((each.max_output for each in schemas), default=1 << 30)),
    ):
        if len(names) > most:
            raise source.error(f"{op_type} has {most} {what}, the rule has {len(names)}", op_type)


@dataclass(frozen=True)
class _Body(Body):
    """The body of a rule, or of a helper that it calls.

    Attributes:
        attributes: the names of attributes that it may refer to, of the operator and of all headers so far.
        absent: the operator, if the body may use neither ``Self`` nor anything of its domain.
        domain: the domain of the operator, if it is a vendor's.
        callers: the helpers that lead to this one.
    """

    helpers: Mapping[str, Source] = field(default_factory=dict)
    absent: str = ""
    domain: str = ""
    callers: tuple[str, ...] = ()

    def check(self) -> set[str]:
        defined = super().check()
        if (name := self.source.function.output[0]) not in defined:  # its guard excludes nodes with other outputs
            raise self.source.error(f"nothing gives the output {name!r}", name)
        return defined

    def check_question(self, text: str, operands: Collection[str], word: str) -> None:
        # No schema says which attributes an operator of a vendor has.
        if not self.domain and (problem := what_is_wrong(text, operands, self.attributes)):
            raise self.source.error(problem, word)

    def _refers_to_something(self, name: str, defined: Collection[str]) -> bool:
        return name in {*self.attributes, *defined, *TYPES}

    def _check_node(self, node: NodeProto, word: str, newest: int = 0) -> None:
        if node.domain not in ("", self.domain):
            raise self.source.error(f"a rule does not write operators of {node.domain}", word)
        if self.domain and self.absent and (node.domain or node.op_type == "Self"):
            raise self.source.error(f"a rule for 'absent' leaves nothing of {self.domain}", word)
        if self.domain and node.op_type == ITS_BODY:
            raise self.source.error(f"no schema says what an operator of {self.domain} is made of", word)
        if node.domain:
            return
        if node.op_type == "Self" and self.absent:
            raise self.source.error(f"the target lacks {self.absent}, so there is no Self", word)
        if node.op_type in self.helpers:
            self._check_call(node, word)
        elif node.op_type in _FORMS:
            _, fewest, most, needs, allows = _FORMS[node.op_type]
            self._check_form(node, word, fewest, most, needs, allows)
            for attribute in node.attribute:
                text = attribute.s.decode()
                for asked in [text] if node.op_type == "Answer" else asked_in(text):
                    self.check_question(asked, {*self.source.function.input, *self.source.function.output}, word)
        elif node.op_type != "Self":
            super()._check_node(node, word, _COMPLETE)

    def _check_call(self, node: NodeProto, word: str) -> None:
        called = self.helpers[node.op_type]
        if node.op_type in self.callers:
            raise self.source.error(f"the helper {node.op_type} calls itself", word)
        for what, names, formals in (
            ("inputs", node.input, called.function.input),
            ("outputs", node.output, called.function.output),
        ):
            if len(names) != len(formals):
                raise self.source.error(f"the helper {node.op_type} has {len(formals)} {what}, not {len(names)}", word)
        usable = {*self.attributes, *declared(called.function), *(attribute.name for attribute in node.attribute)}
        values = {*declared(called.function), *_VALUES}
        replace(self, source=called, attributes=usable, values=values, callers=(*self.callers, node.op_type)).check()
