"""Rule books: find the function that replaces an operator for a given element type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from onnx import FunctionProto, NodeProto, TensorProto, defs

from reducelower.errors import RefusedError, RuleError
from reducelower.model.attributes import value_of
from reducelower.model.schemas import element_type_name, parse_element_type
from reducelower.rulebook.asked import Asked, Tried
from reducelower.rulebook.bindings import SUPPORTED, Claim, claim_of
from reducelower.rulebook.bodies import write_out
from reducelower.rulebook.boundaries import Boundaries, shipped
from reducelower.rulebook.occasions import Occasion, Written
from reducelower.rulebook.reading import (
    SUFFIX,
    VERSIONS,
    Folder,
    Helpers,
    RuleText,
    Source,
    by_name,
    called,
    home,
)
from reducelower.rulebook.validation import check_boundaries, validate
from reducelower.scope.scope import Scope

__all__ = ["Rule", "RuleBook", "load_forms"]


@dataclass(frozen=True)
class Rule(RuleText):
    """A function that replaces an operator, for some element types.

    Attributes:
        is_own: whether it is of a book of the user's.
    """

    is_own: bool = False

    @property
    def occasion(self) -> Occasion:
        """It replaces nodes of the opset version that it is written for."""
        return Occasion("body", str(self.opset))

    def written(self, tried: Tried) -> Written:
        """The nodes of the body."""
        if self.is_own:
            tried.scope.node_scope.applied.append(self.place)
        asked = Asked(self.function, tried.node, tried.scope, self.opset)
        return Written(write_out(self.function, self.helpers, asked, is_general=True), self.opset, self.name)

    @property
    def element_types(self) -> str:
        """What the rule is for, as in the function's `overload`; empty for every type."""
        return self.function.overload

    @property
    def claim(self) -> Claim:
        """What the rule is for."""
        return claim_of(self.source)

    @property
    def types(self) -> list[int]:
        """The element types that it is for and that the data of its operator may have."""
        allowed = defs.get_schema(self.function.name, self.opset).inputs[0].types
        types = SUPPORTED if self.claim.types is None else SUPPORTED & self.claim.types
        return sorted(each for each in types if f"tensor({element_type_name(each)})" in allowed)

    @property
    def identity(self) -> str:
        """The first line of its doc string, which states the rule in one line."""
        return (self.function.doc_string.strip().splitlines() or [""])[0]


class RuleBook(Folder):
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
        self.trusted = trusted
        self._extends = extends
        super().__init__(directory, _shipped_helpers() if helpers is None else helpers)
        if directory is not None:
            if not directory.is_dir():
                raise RuleError("no such folder of rules", directory)
            if not self.files and not (directory / VERSIONS).is_dir():
                raise RuleError(f"the folder holds no rule (a file such as ReduceL2{SUFFIX})", directory)
        self._given: dict[str, list[Source]] = {}
        for function in functions:
            self._given.setdefault(function.name, []).append(Source(function))
        self._rules: dict[str, tuple[Rule, ...]] = {}

    @classmethod
    def from_functions(cls, functions: Iterable[Any], name: str = "functions") -> RuleBook:
        """A book of FunctionProtos or onnxscript functions (anything with ``to_function_proto``)."""
        return cls(name, functions=[_function_proto(function) for function in functions])

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators with rules, sorted."""
        inherited = self._extends.operators if self._extends else ()
        return tuple(sorted({*self.own, *inherited}))

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The operators for which the book itself has rules."""
        return tuple(sorted({*self.files, *self._given}))

    @property
    def reductions(self) -> tuple[str, ...]:
        """What `expand` replaces by default: the Reduce operators of a shipped book, all operators of another.

        A normalization is a reduction as well, but most runtimes have it and users want to keep it.
        """
        if self._extends is not None and not self.own:
            return self._extends.reductions
        return tuple(name for name in self.operators if name.startswith("Reduce") or not self.trusted)

    def rules(self, op_type: str) -> tuple[Rule, ...]:
        """Every rule for an operator, the most specific first.

        Raises:
            RuleError: a rule for this operator is invalid.
        """
        if op_type not in self._rules:
            self._rules[op_type] = self._load(op_type)
        return self._rules[op_type]

    def find(self, op_type: str, element_type: int, forbidden: frozenset[int] = frozenset()) -> Rule | None:
        """The most specific rule for an operator and element type, if nothing may be computed in `forbidden` types.

        Raises:
            RuleError: a rule for this operator is invalid.
        """
        return next((rule for rule in self.rules(op_type) if rule.claim.holds(element_type, forbidden)), None)

    def rule_for(self, node: NodeProto, scope: Scope, without_types: Iterable[str] = ()) -> Rule | None:
        """The rule for a node, if nothing may be computed in some element types.

        Raises:
            RefusedError: the element type of the data, which decides, is not known, or a rule is invalid.
        """
        try:
            rules = self.rules(node.op_type)
            if len(rules) < 2 and not any(rule.element_types for rule in rules):
                return rules[0] if rules else None
            element_type = scope.needed_element_type(node.input[0])
            forbidden = set(map(parse_element_type, without_types))
            if element_type == value_of(node, "stash_type", TensorProto.FLOAT):
                # A node that asks for sums in the type of its data is computed as if there was no wider type.
                forbidden.add(TensorProto.FLOAT)
            return self.find(node.op_type, element_type, frozenset(forbidden))
        except RuleError as error:
            raise RefusedError(f"its rule is wrong: {error}", "mend the rule") from error

    @cached_property
    def boundaries(self) -> Boundaries | None:
        """The rules of version boundaries in its folder, checked; None if it has none.

        Raises:
            RuleError: one of them is wrong.
        """
        folder = None if self.path is None else self.path / VERSIONS
        if folder is None or not folder.is_dir():
            return None
        boundaries = Boundaries(folder, shipped().helpers, name=self.name)
        check_boundaries(boundaries)
        return boundaries

    def check(self) -> None:
        """Load every rule, those of version boundaries as well, to find errors now.

        Raises:
            RuleError: a rule is invalid.
        """
        for op_type in self.operators:
            self.rules(op_type)
        _ = self.boundaries

    def _load(self, op_type: str) -> tuple[Rule, ...]:
        sources, helpers = self.written(op_type)
        if not sources:
            return self._extends.rules(op_type) if self._extends else ()
        sources = [source.written_for(each) for source in sources for each in source.function.overload.split(";")]
        for at, source in enumerate(sources):
            claim = claim_of(source)
            if not self.trusted:
                validate(source, op_type, helpers)
            if any(claim.clashes(claim_of(other)) for other in sources[:at]):
                raise source.error(f"a second rule for the element types {source.function.overload!r}", "overload")
        rules = [Rule(source, helpers, self.name, is_own=not self.trusted) for source in sources]
        return tuple(sorted(rules, key=lambda rule: rule.claim.order))

    def written(self, op_type: str) -> tuple[list[Source], Helpers]:
        """The rules for an operator as written, and the helper functions available to them.

        A helper in the same file is called by a function there. Any other name is an error, which validation reports.
        """
        sources = [*self._given.get(op_type, ()), *(each for file in self.read(op_type) for each in file)]
        used = {name for source in sources for name in called(source.function.node) if not defs.has(name, domain="")}
        own = by_name(source for source in sources if source.function.name in used - {op_type})
        return [source for source in sources if source.function.name not in own], {**self.helpers, **own}


@cache
def load_forms() -> RuleBook:
    """The forms that people write by hand, which are recomposed but never expanded to."""
    folder = home() / "forms" / "composites"
    return RuleBook("forms/composites", folder, trusted=True, helpers=Folder(folder, {}).helpers)


@cache
def _shipped_helpers() -> Helpers:
    """The helper functions for every rule."""
    return Folder(home(), {}).helpers


def _function_proto(function: Any) -> FunctionProto:
    proto = function.to_function_proto() if hasattr(function, "to_function_proto") else function
    if not isinstance(proto, FunctionProto):
        raise RuleError(f"{function!r} is neither a FunctionProto nor an onnxscript function")
    return proto
