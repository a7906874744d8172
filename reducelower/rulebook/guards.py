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
from reducelower.model.text import expression
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import CLASSES
from reducelower.rulebook.questions import NUMBERS, QUESTIONS

__all__ = [
    "asked_in", "check_guard", "evaluated", "filled", "read_as_constants", "terms", "value_of", "what_is_wrong",
]  # fmt: skip

Expression: TypeAlias = ast.expr

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda one, other: one in other, ast.NotIn: lambda one, other: one not in other,
}  # fmt: skip
_COMBINED: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip

_OPERATIONS = frozenset[type[ast.AST]]({*_COMPARED, *_COMBINED, ast.Not, ast.USub, ast.And, ast.Or})

_TYPES: Mapping[str, int] = {
    element_type_name(number): number for number in TensorProto.DataType.values() if number != TensorProto.UNDEFINED
}


@cache
def _parsed(text: str) -> Expression:
    return expression(text)


def check_guard(text: str) -> str:
    """What is wrong with a guard; empty if nothing is."""
    try:
        tree = _parsed(text)
    except SyntaxError:
        return f"{text!r} cannot be read as a guard"
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Call) and not (isinstance(inner.func, ast.Name) and inner.func.id in QUESTIONS):
            return f"{ast.unparse(inner.func)!r} is nothing that a guard asks (known: {', '.join(QUESTIONS)})"
        if not isinstance(
            inner,
            ast.BoolOp | ast.UnaryOp | ast.BinOp | ast.Compare | ast.Call | ast.Name | ast.Constant | ast.Tuple
            | ast.List | ast.Subscript | ast.expr_context | ast.boolop | ast.unaryop | ast.cmpop | ast.operator,
        ) or not _OPERATIONS.issuperset(map(type, _operations(inner))):  # fmt: skip
            return f"{ast.unparse(inner)!r} is not allowed in a guard"
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and not _takes(inner.func.id, inner.args):
            return f"{ast.unparse(inner)!r} has too few or too many arguments"
    return ""


def _operations(tree: ast.AST) -> Sequence[ast.AST]:
    match tree:
        case ast.BoolOp(op=op) | ast.UnaryOp(op=op) | ast.BinOp(op=op):
            return [op]
        case ast.Compare(ops=ops):
            return ops
    return ()


def _takes(question: str, arguments: Sequence[Expression]) -> bool:
    try:
        signature(QUESTIONS[question][0]).bind(None, *arguments)
    except TypeError:
        return False
    return True


def what_is_wrong(text: str, operands: Collection[str], attributes: Collection[str]) -> str:
    """What is wrong with a guard that may ask about these operands and attributes; empty if nothing is."""
    if problem := check_guard(text):
        return problem
    unknown = _unknown_name(text, operands, attributes)
    return f"it asks about {unknown!r}, which is no input, output or attribute" if unknown else ""


def _unknown_name(text: str, operands: Collection[str], attributes: Collection[str]) -> str:
    tree = _parsed(text)
    asked = {id(each): each.id for call in ast.walk(tree) if isinstance(call, ast.Call) for each in call.args
             if isinstance(each, ast.Name)}  # fmt: skip
    called = {id(call.func) for call in ast.walk(tree) if isinstance(call, ast.Call)}
    values = {*attributes, *NUMBERS, *CLASSES, *_TYPES}
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Name) and id(inner) not in called:
            allowed = values | {*operands, "first", "second"} if id(inner) in asked else values
            if inner.id not in allowed:
                return inner.id
    return ""


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
            is_and = isinstance(tree.op, ast.And)
            return (all if is_and else any)(bool(value_of(each, asked)) for each in tree.values)
        case ast.UnaryOp():
            value = value_of(tree.operand, asked)
            return not value if isinstance(tree.op, ast.Not) else None if value is None else -value
        case ast.BinOp():
            one, other = value_of(tree.left, asked), value_of(tree.right, asked)
            return None if one is None or other is None else _COMBINED[type(tree.op)](one, other)
        case ast.Compare():
            values = [value_of(each, asked) for each in (tree.left, *tree.comparators)]
            pairs = zip(values, values[1:], tree.ops, strict=False)
            return all(
                one is not None and other is not None and _COMPARED[type(how)](one, other) for one, other, how in pairs
            )
        case ast.Subscript():
            whole, place = value_of(tree.value, asked), value_of(tree.slice, asked)
            return None if whole is None or not -len(whole) <= place < len(whole) else whole[place]
        case ast.Call(func=ast.Name(id=name)):
            arguments = [
                each.id if isinstance(each, ast.Name) and each.id not in NUMBERS else value_of(each, asked)
                for each in tree.args
            ]
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
