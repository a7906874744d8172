"""Rule books: find the function that replaces an operator for a given element type."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from onnx import AttributeProto, FunctionProto, TensorProto, defs

from reducelower.errors import RuleError
from reducelower.model.schemas import element_type_name, opset_of
from reducelower.model.text import did_you_mean
from reducelower.rulebook.bindings import ANY, AXES, BINDINGS, Claim, binding, binding_type, claim_of
from reducelower.rulebook.helpers import Helpers, with_helpers_inlined
from reducelower.rulebook.reading import HELPERS, NOWHERE, SUFFIX, VERSIONS, Place, Source, home, read_rules
from reducelower.rulebook.validation import check_helper, check_overload, validate

__all__ = [
    "Rule",
    "RuleBook",
    "bind",
    "load_book",
    "load_composites",
    "load_forms",
    "shipped_books",
    "shipped_helpers",
]

_EXTENDS = {"core": "stable"}
"""Shipped book, and the book it falls back to for operators without a rule of its own."""


@dataclass(frozen=True)
class Rule:
    """A function that replaces an operator, for some element types.

    Attributes:
        name: book and operator, such as ``stable/ReduceL2``.
        function: the function with helpers inlined; inputs and outputs are those of the operator, in the schema's
            order, and attributes have the operator's names.
        opset: default-domain opset version of the body.
        element_types: what the rule is for, as in the function's `overload`; empty for every type.
        bindings: names of the attributes that the engine provides with `bind`.
        axes: names of the attributes for axes of a node, which depend on its rank.
        needs_element_type: whether the element type of the data is needed to choose this rule or to bind its
            attributes.
        place: where the rule is written.
    """

    name: str
    function: FunctionProto = field(repr=False)
    opset: int
    element_types: str = ANY
    bindings: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    needs_element_type: bool = False
    place: Place = NOWHERE

    @property
    def claim(self) -> Claim:
        """What the rule is for."""
        return claim_of(self.element_types)

    @property
    def identity(self) -> str:
        """The first line of its doc string, which states the rule in one line."""
        return (self.function.doc_string.strip().splitlines() or [""])[0]


def bind(rule: Rule, element_type: int | None, stash_type: int = TensorProto.FLOAT) -> dict[str, AttributeProto]:
    """The attributes that a rule's body needs for a node: scalar tensors of the type in which it computes.

    Raises:
        RuleError: the element type is unknown or has no such value (an integer has no smallest power of two).
    """
    if not rule.bindings:
        return {}
    if element_type is None:
        raise RuleError(f"{rule.name} needs the element type of its data for {', '.join(rule.bindings)}")
    bound = binding_type(rule.function, element_type, stash_type)
    for name in rule.bindings:
        if bound not in BINDINGS[name]:
            raise RuleError(f"{rule.name} needs {name!r}, which {element_type_name(bound)} does not have")
    return {name: binding(name, bound) for name in rule.bindings}


class RuleBook:
    """The rules of a folder or of a set of functions; files are parsed when their operator is first asked for."""

    def __init__(
        self,
        name: str,
        directory: Path | None = None,
        functions: Iterable[FunctionProto] = (),
        extends: RuleBook | None = None,
        *,
        trusted: bool = False,
        helpers: Helpers | None = None,
    ) -> None:
        """Find the rules.

        Args:
            name: prefix of the rules' names.
            directory: folder of ``<operator>.onnxtxt`` files.
            functions: rules given as objects.
            extends: book to fall back to for operators without a rule.
            trusted: skip validation, for shipped books, which are validated by tests.
            helpers: helper functions for its rules, instead of the shipped ones.

        Raises:
            RuleError: the folder does not exist or has no rule.
        """
        self.name = name
        self.directory = directory
        self._extends = extends
        self._trusted = trusted
        self._given_helpers = helpers
        self._files: dict[str, Path] = {}
        if directory is not None:
            if not directory.is_dir():
                raise RuleError("no such folder of rules", directory)
            self._files = {path.stem: path for path in sorted(directory.glob(f"*{SUFFIX}")) if path.stem != HELPERS}
            if not self._files and not (directory / VERSIONS).is_dir():
                raise RuleError(f"the folder holds no rule (a file such as ReduceL2{SUFFIX})", directory)
        self._given: dict[str, list[Source]] = {}
        for function in functions:
            self._given.setdefault(function.name, []).append(Source(function))
        self._rules: dict[str, tuple[Rule, ...]] = {}

    @classmethod
    def from_functions(cls, functions: Iterable[Any], name: str = "functions") -> RuleBook:
        """A book of FunctionProtos or onnxscript functions (anything with ``to_function_proto``)."""
        return cls(name, functions=[_function_proto(function) for function in functions])

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The operators with rules, sorted."""
        inherited = self._extends.operators if self._extends else ()
        return tuple(sorted({*self._files, *self._given, *inherited}))

    @property
    def own(self) -> tuple[str, ...]:
        """The operators for which the book itself has rules."""
        return tuple(sorted({*self._files, *self._given}))

    @property
    def reductions(self) -> tuple[str, ...]:
        """What `expand` replaces by default: the Reduce operators of a shipped book, all operators of another.

        A normalization is a reduction as well, but most runtimes have it and users want to keep it.
        """
        if self._extends is not None and not self.own:
            return self._extends.reductions
        return tuple(name for name in self.operators if name.startswith("Reduce") or not self._trusted)

    def rules(self, op_type: str) -> tuple[Rule, ...]:
        """Every rule for an operator, the most specific first.

        Raises:
            RuleError: a rule for this operator is invalid.
        """
        if op_type not in self._rules:
            self._rules[op_type] = self._load(op_type)
        return self._rules[op_type]

    def find(self, op_type: str, element_type: int | None, forbidden: frozenset[int] = frozenset()) -> Rule | None:
        """The most specific rule for an operator and element type (None: unknown).

        Without an element type this is the most general rule, and its `needs_element_type` says whether the choice
        could depend on the type. Nothing may be computed in `forbidden` types.

        Raises:
            RuleError: a rule for this operator is invalid.
        """
        rules = self.rules(op_type)
        if element_type is None:
            return rules[-1] if rules else None
        return next((rule for rule in rules if rule.claim.holds(element_type, forbidden)), None)

    def check(self) -> None:
        """Load every rule, to find errors now.

        Raises:
            RuleError: a rule is invalid.
        """
        for op_type in self.operators:
            self.rules(op_type)

    def _load(self, op_type: str) -> tuple[Rule, ...]:
        sources, helpers = self.written(op_type)
        if not sources:
            return self._extends.rules(op_type) if self._extends else ()
        sources = [source.written_for(each) for source in sources for each in source.function.overload.split(";")]
        for source in sources:
            check_overload(source)
        sources = [each for source in sources for each in with_helpers_inlined(source, helpers)]
        for at, source in enumerate(sources):
            if not self._trusted:
                validate(source, op_type)
            claim = claim_of(source.function.overload)
            if any(claim.clashes(claim_of(other.function.overload)) for other in sources[:at]):
                raise source.error(f"a second rule for the element types {source.function.overload!r}", "overload")
        rules = [self._rule(source, alone=len(sources) == 1) for source in sources]
        return tuple(sorted(rules, key=lambda rule: rule.claim.order))

    def written(self, op_type: str) -> tuple[list[Source], Helpers]:
        """The rules for an operator as written, and the helper functions available to them."""
        sources = list(self._given.get(op_type, ()))
        if op_type in self._files:
            sources += read_rules(self._files[op_type])
        helpers = dict(self._helpers)
        own = _by_name(source for source in sources if _is_helper(source, op_type, sources))
        helpers.update(own)
        for source in (source for definitions in own.values() for source in definitions):
            check_helper(source, helpers)
        rules = [source for source in sources if source.function.name not in own]
        return rules, helpers

    @cached_property
    def _helpers(self) -> Helpers:
        """The helper functions for the book's rules: those of the package and of the folder."""
        helpers = dict(shipped_helpers() if self._given_helpers is None else self._given_helpers)
        path = None if self.directory is None else self.directory / f"{HELPERS}{SUFFIX}"
        if path is not None and path.is_file():
            helpers.update(_read_helpers(path, helpers))
        return helpers

    def _rule(self, source: Source, alone: bool) -> Rule:
        function = source.function
        bindings = tuple(name for name in function.attribute if name in BINDINGS)
        axes = tuple(name for name in function.attribute if name in AXES)
        return Rule(
            name=f"{self.name}/{function.name}",
            function=function,
            opset=opset_of(function),
            element_types=function.overload,
            bindings=bindings,
            axes=axes,
            needs_element_type=bool(bindings) or not alone or function.overload != ANY,
            place=source.place,
        )


def load_book(name: str | os.PathLike[str]) -> RuleBook:
    """A shipped book by its name (``spec``, ``stable``, ``core``), or a folder of rules by its path.

    A shipped book wins over a folder of the same name in the working directory; write ``./spec`` for the folder.

    Raises:
        RuleError: there is no such book, or the folder has no rule.
    """
    return _load_shipped(name) if isinstance(name, str) and name in shipped_books() else _load_folder(Path(name))


@cache
def load_forms() -> tuple[RuleBook, ...]:
    """The folders of `rules/forms`: forms written by people, which are recomposed but never expanded to."""
    folders = sorted(path for path in (home() / "forms").iterdir() if path.is_dir() and path.name not in _COMPOSITES)
    return tuple(RuleBook(f"forms/{path.name}", path, trusted=True) for path in folders)


_COMPOSITES = ("composites", "lookalikes")
"""Folders of `rules/forms` for normalizations and activations, and for look-alikes."""


@cache
def load_composites() -> tuple[RuleBook, ...]:
    """The forms of normalizations and activations, and of look-alikes; they share helpers."""
    folder = home() / "forms"
    helpers = _read_helpers(folder / _COMPOSITES[0] / f"{HELPERS}{SUFFIX}")
    return tuple(RuleBook(f"forms/{name}", folder / name, trusted=True, helpers=helpers) for name in _COMPOSITES)


@cache
def shipped_helpers() -> Helpers:
    """The helper functions for every rule."""
    return _read_helpers(home() / f"{HELPERS}{SUFFIX}")


def _read_helpers(path: Path, others: Iterable[str] = ()) -> Helpers:
    """The functions of a file of helpers, which may use each other and the `others`."""
    sources = read_rules(path)
    helpers = _by_name(sources)
    for source in sources:
        check_helper(source, {*helpers, *others})
    return helpers


def _by_name(sources: Iterable[Source]) -> dict[str, list[Source]]:
    by_name: dict[str, list[Source]] = {}
    for source in sources:
        by_name.setdefault(source.function.name, []).append(source)
    return by_name


def _is_helper(source: Source, op_type: str, sources: Iterable[Source]) -> bool:
    """Whether a function in an operator's file is a helper: not an operator, and used by another function.

    Any other name is an error, which validation reports.
    """
    name = source.function.name
    if name == op_type or defs.has(name, domain=""):
        return False
    return any(node.op_type == name for other in sources for node in other.function.node)


@cache
def shipped_books() -> frozenset[str]:
    """The names of the books that come with the package."""
    return frozenset(path.name for path in home().iterdir() if path.name != VERSIONS and any(path.glob(f"*{SUFFIX}")))


@cache
def _load_shipped(name: str) -> RuleBook:
    extends = _EXTENDS.get(name)
    return RuleBook(name, home() / name, extends=_load_shipped(extends) if extends else None, trusted=True)


def _load_folder(path: Path) -> RuleBook:
    if not path.is_dir():
        books = sorted(shipped_books())
        suggestion = did_you_mean(str(path), books)
        raise RuleError(f"neither a folder of rules nor a shipped book ({', '.join(books)}){suggestion}", path)
    is_of_boundaries = not any(path.glob(f"*{SUFFIX}")) and (path / VERSIONS).is_dir()
    extends = _load_shipped("stable") if is_of_boundaries else None
    return RuleBook(path.resolve().name, path, extends=extends)


def _function_proto(function: Any) -> FunctionProto:
    if isinstance(function, FunctionProto):
        return function
    if not hasattr(function, "to_function_proto"):
        raise RuleError(f"{function!r} is neither a FunctionProto nor an onnxscript function")
    proto = function.to_function_proto()
    if not isinstance(proto, FunctionProto):
        raise RuleError(f"{function!r} did not give a FunctionProto")
    return proto
