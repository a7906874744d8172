"""Guards: when a rule of a version boundary applies, and the numbers it states, as one sentence each.

A guard is what follows ``if`` in the overload of such a rule, such as ``computed(axes) and rank(data) >= 1``. It is
read with Python's grammar and evaluated here, never executed. Every question goes through the scope of the node, so
that the memo knows what was asked. A comparison with an unknown value does not hold.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from inspect import signature
from typing import Any, TypeAlias

from onnx import TensorProto

from reducelower.model.schemas import element_type_name
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import CLASSES
from reducelower.rulebook.numbers import NUMBERS
from reducelower.rulebook.questions import QUESTIONS
from reducelower.text import OPERATIONS, expression

__all__ = [
    "asked_in", "evaluated", "filled", "read_as_constants", "terms", "value_of", "what_is_wrong",
]  # fmt: skip

Expression: TypeAlias = ast.expr

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda one, other: one in other, ast.NotIn: lambda one, other: one not in other,
}  # fmt: skip

_ALLOWED = (
    ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Tuple, ast.List,
    ast.Subscript, ast.expr_context, ast.boolop, ast.Not, ast.USub, *_COMPARED, *OPERATIONS,
)  # fmt: skip
"""What of Python's grammar a guard may use."""

_TYPES: Mapping[str, int] = {
    element_type_name(number): number for number in TensorProto.DataType.values() if number != TensorProto.UNDEFINED
}


@cache
def _parsed(text: str) -> Expression:
    return expression(text)


def what_is_wrong(text: str, operands: Collection[str], attributes: Collection[str] | None) -> str:
    """What is wrong with a guard that may ask about these operands and attributes (None: any); empty if nothing is."""
    try:
        tree = _parsed(text)
    except SyntaxError:
        return f"{text!r} cannot be read as a guard"
    names = {*(attributes or ()), *NUMBERS, *CLASSES, *_TYPES}
    calls = [inner for inner in ast.walk(tree) if isinstance(inner, ast.Call)]
    allowed = {id(each): {*names, *operands, "first", "second"} for call in calls for each in call.args}
    allowed |= {id(call.func): set(QUESTIONS) for call in calls}
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Call):
            if not (isinstance(inner.func, ast.Name) and inner.func.id in QUESTIONS):
                return f"{ast.unparse(inner.func)!r} is nothing that a guard asks (known: {', '.join(QUESTIONS)})"
            if not _takes(inner.func.id, inner.args):
                return f"{ast.unparse(inner)!r} has too few or too many arguments"
        elif isinstance(inner, ast.Name):
            if attributes is not None and inner.id not in allowed.get(id(inner), names):
                return f"it asks about {inner.id!r}, which is no input, output or attribute"
        elif not isinstance(inner, _ALLOWED):
            return f"{text!r} uses {type(inner).__name__}, which no guard does"
    return ""


def _takes(question: str, arguments: Sequence[Expression]) -> bool:
    try:
        signature(QUESTIONS[question][0]).bind(None, *arguments)
    except TypeError:
        return False
    return True


_AS_CONSTANT = re.compile(r"\b(?:constant|value|none)\((\w+)\)")


def read_as_constants(text: str) -> Sequence[str]:
    """The names whose constant values a guard asks for, so that the rule's body may compute with them."""
    return _AS_CONSTANT.findall(text)


@cache
def terms(guard: str) -> tuple[tuple[str, Expression], ...]:
    """The conditions that a guard connects by ``and``, in order, each with its text."""
    tree = _parsed(guard) if guard else ast.BoolOp(ast.And(), [])
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    return tuple((ast.unparse(part), part) for part in parts)


def evaluated(text: str, asked: Asked) -> Any:
    """The value of an expression for a node."""
    return value_of(_parsed(text), asked)


def value_of(tree: Expression, asked: Asked) -> Any:
    """The value of an expression, or of a term, for a node."""
    match tree:
        case ast.Constant():
            return tree.value
        case ast.Tuple() | ast.List():
            return [value_of(each, asked) for each in tree.elts]
        case ast.Name():
            return _named(tree.id, asked)
        case ast.BoolOp():
            is_or = isinstance(tree.op, ast.Or)
            for each in tree.values:
                if bool(value_of(each, asked)) == is_or:
                    return is_or
            return not is_or
        case ast.UnaryOp():
            value = value_of(tree.operand, asked)
            return not value if isinstance(tree.op, ast.Not) else None if value is None else -value
        case ast.BinOp():
            one, other = value_of(tree.left, asked), value_of(tree.right, asked)
            return None if one is None or other is None else OPERATIONS[type(tree.op)](one, other)
        case ast.Compare():
            one = value_of(tree.left, asked)
            for how, compared in zip(tree.ops, tree.comparators, strict=True):
                other = value_of(compared, asked)
                if one is None or other is None or not _COMPARED[type(how)](one, other):
                    return False
                one = other
            return True
        case ast.Subscript():
            whole, place = value_of(tree.value, asked), value_of(tree.slice, asked)
            return None if whole is None or not -len(whole) <= place < len(whole) else whole[place]
        case ast.Call(func=ast.Name(id=name)):
            arguments = []
            for each in tree.args:
                name_of = each.id if isinstance(each, ast.Name) and each.id not in NUMBERS else None
                arguments.append(value_of(each, asked) if name_of is None else name_of)
            return QUESTIONS[name][0](asked, *arguments)
    raise AssertionError(ast.dump(tree))


def _named(name: str, asked: Asked) -> Any:
    if name in NUMBERS:
        return NUMBERS[name](asked)
    if name in CLASSES and name not in _TYPES:
        return CLASSES[name]
    return _TYPES[name] if name in _TYPES else asked.attribute(name)


_IN_BRACES = re.compile(r"\{([^{}!]+)(!r)?\}")


def asked_in(sentence: str) -> Sequence[str]:
    """The expressions in braces in a sentence."""
    return [match[1] for match in _IN_BRACES.finditer(sentence)]


def filled(sentence: str, asked: Asked) -> str:
    """A sentence with each expression in braces replaced by its value for a node."""

    def shown(match: re.Match[str]) -> str:
        value = evaluated(match[1], asked)
        return repr(value) if match[2] else str(value)

    return _IN_BRACES.sub(shown, sentence)
