"""Check the boundary rules of a folder; every failure is one sentence with its file and line."""

from __future__ import annotations

from onnx import defs

from reducelower.errors import RuleError
from reducelower.model.schemas import is_runtime_name, schema, versions
from reducelower.rulebook.bindings import BINDINGS
from reducelower.rulebook.boundaries import OPERATORS, Boundaries, BoundaryRule
from reducelower.rulebook.guards import asked_in, what_is_wrong
from reducelower.rulebook.reading import Source
from reducelower.rulebook.rows import Occasion, Row
from reducelower.rulebook.validation import Body, declared

__all__ = ["check_boundaries"]

_RETYPED = 13
"""The opset version of bodies for lacking element types, the same as that of the casts around other nodes."""


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
    source, function, header = rule.source, rule.function, declared(rule.function)
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
    if domain and not rule.opset:
        raise source.error("a rule says for which opset version its body is written", "opset_import")
    stated = _attributes(op_type)
    for name in function.attribute:
        if stated and name not in stated and name not in BINDINGS:
            raise source.error(f"{name!r} is no attribute of {op_type}, and the header gives it no value", name)
    if rule.book and not domain:
        _check_signature(source, op_type)
    is_absent = rule.occasion.way == "absent" if domain else rule.occasion == Occasion("absent", "", "")
    body = Body(source, rule.helpers, {*stated, *header}, op_type if is_absent else "", domain)
    for text in filter(None, (rule.occasion.guard, *asked_in(function.doc_string))):
        body.check_question(text, "overload")
    body.check(function.output[:1])  # the guard excludes nodes with other outputs


def _check_signature(source: Source, op_type: str) -> None:
    schemas = _schemas(op_type)
    for what, names, most in (
        ("inputs", source.function.input, max((each.max_input for each in schemas), default=1 << 30)),
        ("outputs", source.function.output, max((each.max_output for each in schemas), default=1 << 30)),
    ):
        if len(names) > most:
            raise source.error(f"{op_type} has {most} {what}, the rule has {len(names)}", op_type)
