"""Rule books: find the function that replaces an operator, for the element type at hand."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from onnx import FunctionProto

from reducelower.rulebook.bindings import BINDINGS
from reducelower.rulebook.element_types import ANY, CLASSES, class_of_name
from reducelower.rulebook.errors import RuleError
from reducelower.rulebook.reading import SUFFIX, Source, complete_references, opset_of, read_rules
from reducelower.rulebook.validation import validate

__all__ = ["Rule", "RuleBook", "load_book", "load_forms", "shipped_books"]

_EXTENDS = {"core": "stable"}
"""Shipped book -> the book that answers for what it has no rule of its own for."""


@dataclass(frozen=True)
class Rule:
    """One function that replaces one operator, for one class of element types.

    Attributes:
        name: book and operator, such as ``stable/ReduceL2``.
        function: the function; the operator's inputs and outputs in the schema's order, its attributes by their names.
        opset: opset version of the default domain the body is written for.
        element_types: class of element types the rule is for, from the function's `overload`; empty for every type.
        bindings: names of the attributes that the engine binds with `bind`.
        needs_element_type: whether choosing this rule or binding its attributes takes the element type of the data.
        path: file the rule stands in; None for one given as an object.
    """

    name: str
    function: FunctionProto = field(repr=False)
    opset: int
    element_types: str = ANY
    bindings: tuple[str, ...] = ()
    needs_element_type: bool = False
    path: Path | None = None

    def answers_for(self, element_type: int) -> bool:
        """Whether the rule's class holds this element type."""
        types = class_of_name(self.element_types)
        return types is None or element_type in types

    @property
    def identity(self) -> str:
        """What the rule says in one line: the first line of its doc string."""
        return (self.function.doc_string.strip().splitlines() or [""])[0]


class RuleBook:
    """The rules of one folder or of a set of functions; a file is parsed when its operator is first asked for."""

    def __init__(
        self,
        name: str,
        directory: Path | None = None,
        functions: Iterable[FunctionProto] = (),
        extends: RuleBook | None = None,
        *,
        trusted: bool = False,
    ) -> None:
        """Gather where the rules are.

        Args:
            name: what the rules' names start with.
            directory: folder of ``<operator>.onnxtxt`` files.
            functions: rules given as objects.
            extends: book that answers for operators this one has no rule for.
            trusted: skip validation, for the shipped books, which the tests hold valid.

        Raises:
            RuleError: the folder is not there or holds no rule.
        """
        self.name = name
        self.directory = directory
        self._extends = extends
        self._trusted = trusted
        self._files: dict[str, Path] = {}
        if directory is not None:
            if not directory.is_dir():
                raise RuleError("no such folder of rules", directory)
            self._files = {path.stem: path for path in sorted(directory.glob(f"*{SUFFIX}"))}
            if not self._files:
                raise RuleError(f"the folder holds no rule (a file such as ReduceL2{SUFFIX})", directory)
        self._given: dict[str, list[Source]] = {}
        for function in functions:
            self._given.setdefault(function.name, []).append(Source(complete_references(function)))
        self._rules: dict[str, tuple[Rule, ...]] = {}

    @classmethod
    def from_functions(cls, functions: Iterable[Any], name: str = "functions") -> RuleBook:
        """A book of FunctionProtos, or of onnxscript functions (anything with a ``to_function_proto``)."""
        return cls(name, functions=[_function_proto(function) for function in functions])

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The operators that the book has rules for, sorted."""
        inherited = self._extends.operators if self._extends else ()
        return tuple(sorted({*self._files, *self._given, *inherited}))

    def rules(self, op_type: str) -> tuple[Rule, ...]:
        """Every rule for an operator, the most specific class of element types first.

        Raises:
            RuleError: a rule for this operator is not valid.
        """
        if op_type not in self._rules:
            self._rules[op_type] = self._load(op_type)
        return self._rules[op_type]

    def find(self, op_type: str, element_type: int | None) -> Rule | None:
        """The most specific rule for an operator on data of this element type.

        Without an element type the answer is the most general rule; whether that can be relied on says its
        `needs_element_type`.

        Raises:
            RuleError: a rule for this operator is not valid.
        """
        rules = self.rules(op_type)
        if element_type is None:
            return rules[-1] if rules else None
        return next((rule for rule in rules if rule.answers_for(element_type)), None)

    def check(self) -> None:
        """Load every rule, so that what is wrong with any of them comes out now.

        Raises:
            RuleError: a rule is not valid.
        """
        for op_type in self.operators:
            self.rules(op_type)

    def _load(self, op_type: str) -> tuple[Rule, ...]:
        sources = list(self._given.get(op_type, ()))
        if op_type in self._files:
            sources += read_rules(self._files[op_type])
        if not sources:
            return self._extends.rules(op_type) if self._extends else ()
        classes: set[str] = set()
        for source in sources:
            if not self._trusted:
                validate(source, op_type)
            if source.function.overload in classes:
                raise source.error(f"a second rule for the element types {source.function.overload!r}", "overload")
            classes.add(source.function.overload)
        rules = [self._rule(source, alone=len(sources) == 1) for source in sources]
        return tuple(sorted(rules, key=_generality))

    def _rule(self, source: Source, alone: bool) -> Rule:
        function = source.function
        bindings = tuple(name for name in function.attribute if name in BINDINGS)
        return Rule(
            name=f"{self.name}/{function.name}",
            function=function,
            opset=opset_of(function),
            element_types=function.overload,
            bindings=bindings,
            needs_element_type=bool(bindings) or not alone or function.overload != ANY,
            path=source.path,
        )


def load_book(name: str | os.PathLike[str]) -> RuleBook:
    """A shipped book by its name (``spec``, ``stable``, ``core``), or a folder of rules by its path.

    A shipped book wins over a folder of the same name in the working directory; write ``./spec`` for that one.

    Raises:
        RuleError: there is no such book, or the folder holds no rule.
    """
    return _load_shipped(name) if isinstance(name, str) and name in shipped_books() else _load_folder(Path(name))


@cache
def load_forms() -> tuple[RuleBook, ...]:
    """The folders of `rules/forms`: forms that people write by hand, which raising looks for and nothing expands to."""
    folders = sorted(path for path in (_home() / "forms").iterdir() if path.is_dir())
    return tuple(RuleBook(f"forms/{path.name}", path, trusted=True) for path in folders)


@cache
def _home() -> Path:
    """The folder of shipped books: beside the package's modules in a wheel, beside the package in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "rules"
    return installed if installed.is_dir() else package.parent / "rules"


@cache
def shipped_books() -> frozenset[str]:
    """The names of the books that come with the package."""
    return frozenset(path.name for path in _home().iterdir() if any(path.glob(f"*{SUFFIX}")))


@cache
def _load_shipped(name: str) -> RuleBook:
    extends = _EXTENDS.get(name)
    return RuleBook(name, _home() / name, extends=_load_shipped(extends) if extends else None, trusted=True)


def _load_folder(path: Path) -> RuleBook:
    if not path.is_dir():
        from reducelower.model.suggestions import did_you_mean

        known = sorted(shipped_books())
        near = did_you_mean(str(path), known)
        raise RuleError(f"neither a folder of rules nor a shipped book ({', '.join(known)}){near}", path)
    return RuleBook(path.resolve().name, path)


def _generality(rule: Rule) -> int:
    """How many element types a rule is for; `ANY` comes after every class."""
    types = class_of_name(rule.element_types)
    return len(types) if types is not None else 1 + max(map(len, CLASSES.values()))


def _function_proto(function: Any) -> FunctionProto:
    if isinstance(function, FunctionProto):
        return function
    if not hasattr(function, "to_function_proto"):
        raise RuleError(f"{function!r} is neither a FunctionProto nor an onnxscript function")
    proto = function.to_function_proto()
    if not isinstance(proto, FunctionProto):
        raise RuleError(f"{function!r} did not give a FunctionProto")
    return proto
