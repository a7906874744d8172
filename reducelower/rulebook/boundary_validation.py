"""Check the boundary rules of a folder; every failure is one sentence with its file and line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from onnx import FunctionProto, NodeProto, defs

from reducelower.errors import RuleError
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import is_runtime_name, opset_of, schema, schema_in_force, versions
from reducelower.rulebook.bindings import BINDINGS
from reducelower.rulebook.boundaries import ITS_BODY, OPERATORS, Boundaries, BoundaryRule, Occasion, Row
from reducelower.rulebook.guards import asked_in, what_is_wrong
from reducelower.rulebook.reading import Source
from reducelower.rulebook.specializing import TYPES

__all__ = ["check_boundaries"]

_COMPLETE = 18
"""Operators of this opset version may compute constants in a body for an older one, and CastLike is written as Cast."""

_RETYPED = 13
"""The opset version that bodies for element types are written for, as the casts are that stand around other nodes."""

_VALUES = frozenset({*BINDINGS, "of_nothing", "target"})
"""Values that a body has without computing them."""


class _Form(NamedTuple):
    """How an operator of the engine's own is written: its inputs, and the attributes that it needs and may have."""

    least: int
    most: int
    needs: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()


_FORMS: Mapping[str, _Form] = {
    "Answer": _Form(0, 0, ("to",)),
    "Fold": _Form(1, 1 << 30, ("step",), ("over",)),
    "Given": _Form(1, 1),
    "IsEmpty": _Form(1, 1),
    ITS_BODY: _Form(0, 0, ("reason",), ("hint",)),
    "Known": _Form(1, 1),
    "Listed": _Form(1, 1),
    "Rank": _Form(1, 1, (), ("list",)),
    "Refuse": _Form(0, 0, ("reason",), ("hint",)),
    "ReshapeTo": _Form(2, 2),
    "SharedRank": _Form(0, 0),
    "SizeAlong": _Form(1, 1, ("axis",), ("scalar",)),
}
"""The operators of the engine's own, but for ``Self``, which has the inputs and attributes of what is replaced."""


def check_boundaries(book: Boundaries) -> None:
    """Check every rule and row of a folder.

    Raises:
        RuleError: one names an operator, version, attribute or value that does not exist, or has not what it needs.
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
    known = versions(op_type)
    boundary = occasion.boundary(op_type)
    if not known and not is_runtime_name(op_type):
        raise RuleError(f"{op_type} is no operator of ONNX")
    if occasion.way in ("below", "from") and boundary not in known[1:]:
        which = ", ".join(map(str, known[1:])) or "none"
        raise RuleError(f"{op_type} has no boundary {occasion.at} (it changed at: {which})")


def _check_row(op_type: str, row: Row, domain: str) -> None:
    try:
        _check_occasion(op_type, row.occasion, domain)
    except RuleError as error:
        raise RuleError(error.reason, *row.place) from None
    if domain:
        return  # no schema says which attributes its operators have
    stated = _attributes(op_type)
    formals = {formal.name for found in _schemas(op_type) for formal in (*found.inputs, *found.outputs)}
    written = [said for said in row.sets.values() if isinstance(said, str)]
    for text in filter(None, (row.occasion.guard, *written, *asked_in(row.refuse), *asked_in(row.hint))):
        if wrong := what_is_wrong(text, formals, stated):
            raise RuleError(wrong, *row.place)
    for name in (*row.sets, *row.drops):
        if name not in stated:
            raise RuleError(f"{op_type} has no attribute {name!r}", *row.place)


def _attributes(op_type: str) -> set[str]:
    """The attributes that an operator has at any of its versions."""
    return {name for found in _schemas(op_type) for name in found.attributes}


def _schemas(op_type: str) -> list[defs.OpSchema]:
    return [found for version in versions(op_type) if (found := schema(op_type, version)) is not None]


def _header(function: FunctionProto) -> set[str]:
    return {*function.attribute, *(attribute.name for attribute in function.attribute_proto)}


def _check_rule(op_type: str, rule: BoundaryRule, domain: str) -> None:
    source, function = rule.source, rule.source.function
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
        _Body(source, rule.helpers, _header(function), absent, domain).check()
        return
    stated = _attributes(op_type)
    for name in function.attribute:
        if stated and name not in stated | _VALUES:
            raise source.error(f"{name!r} is no attribute of {op_type}, and the header gives it no value", name)
    if rule.book:
        _check_signature(source, op_type)
    is_for_all = rule.occasion == Occasion("absent", "", "")
    body = _Body(source, rule.helpers, stated | _header(function), op_type if is_for_all else "")
    for text in filter(None, (rule.occasion.guard, *asked_in(function.doc_string))):
        body.check_question(text, {*function.input, *function.output}, "overload")
    body.check()


def _check_signature(source: Source, op_type: str) -> None:
    known = _schemas(op_type)
    for what, names, most in (
        ("inputs", source.function.input, max((each.max_input for each in known), default=1 << 30)),
        ("outputs", source.function.output, max((each.max_output for each in known), default=1 << 30)),
    ):
        if len(names) > most:
            raise source.error(f"{op_type} has {most} {what}, the rule has {len(names)}", op_type)


@dataclass(frozen=True)
class _Body:
    """The body of a rule, or of a helper that it calls.

    Attributes:
        attributes: those that stand in it for something, of the operator and of all headers so far.
        absent: the operator, where nothing of it may be left: no ``Self``, and none of its domain.
        domain: the domain of the operator, if that is a vendor's.
        callers: the helpers in which this one is called.
    """

    source: Source
    helpers: Mapping[str, Source]
    attributes: Collection[str]
    absent: str
    domain: str = ""
    callers: tuple[str, ...] = ()

    def check(self) -> None:
        function = self.source.function
        given = {*function.input, *_header(function), *_VALUES}
        self._check_nodes(function.node, given)
        if (name := function.output[0]) not in given:  # nodes that yield others are for the guard
            raise self.source.error(f"nothing gives the output {name!r}", name)

    def check_question(self, text: str, operands: Collection[str], word: str) -> None:
        # No schema says which attributes an operator of a vendor has.
        if not self.domain and (wrong := what_is_wrong(text, operands, self.attributes)):
            raise self.source.error(wrong, word)

    def _check_nodes(self, nodes: Iterable[NodeProto], defined: set[str]) -> None:
        given = set[str]()
        for node in nodes:
            word = node.output[0] if node.output else node.op_type
            for name in filter(None, node.input):
                if name not in defined:
                    raise self.source.error(f"{node.op_type} takes {name!r}, which nothing before it gives", word)
            for attribute in node.attribute:
                if any(tensor.external_data for tensor in (attribute.t, *attribute.tensors)):
                    raise self.source.error("a rule states its values itself and reads no other file", word)
                if attribute.ref_attr_name and attribute.ref_attr_name not in {*defined, *self.attributes, *TYPES}:
                    raise self.source.error(f"nothing gives @{attribute.ref_attr_name}", word)
            self._check_node(node, word)
            for _, _, graph in subgraphs(node):
                self._check_nodes(graph.node, inside := defined | {value.name for value in graph.input})
                for value in graph.output:
                    if value.name not in inside:
                        raise self.source.error(f"nothing gives {value.name!r}", value.name)
            for name in filter(None, node.output):
                if name in given:
                    raise self.source.error(f"{name!r} is given twice", name)
                given.add(name)
                defined.add(name)

    def _check_node(self, node: NodeProto, word: str) -> None:
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
            form = _FORMS[node.op_type]
            self._check_form(node, word, form, {*form.needs, *form.allows})
            for attribute in node.attribute:
                text = attribute.s.decode()
                for asked in [text] if node.op_type == "Answer" else asked_in(text):
                    self.check_question(asked, {*self.source.function.input, *self.source.function.output}, word)
        elif node.op_type != "Self":
            opset = opset_of(self.source.function)
            either = [schema_in_force(node.op_type, opset, node.domain), schema_in_force(node.op_type, _COMPLETE, "")]
            known = [found for found in either if found is not None]
            if not known:
                raise self.source.error(f"opset {opset} has no operator {node.op_type}, and it is no helper", word)
            least, most = min(found.min_input for found in known), max(found.max_input for found in known)
            self._check_form(node, word, _Form(least, most), known[0].attributes)

    def _check_form(self, node: NodeProto, word: str, form: _Form, known: Collection[str]) -> None:
        if not form.least <= len(node.input) <= form.most:
            raise self.source.error(f"{node.op_type} does not take {len(node.input)} inputs", word)
        named = {attribute.name for attribute in node.attribute}
        if missing := [name for name in form.needs if name not in named]:
            raise self.source.error(f"{node.op_type} needs the attribute {missing[0]!r}", word)
        if unknown := sorted(named.difference(known)):
            raise self.source.error(f"{node.op_type} has no attribute {unknown[0]!r}", word)

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
        known = {*self.attributes, *_header(called.function), *(attribute.name for attribute in node.attribute)}
        replace(self, source=called, attributes=known, callers=(*self.callers, node.op_type)).check()
