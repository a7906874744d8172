"""Rules of version boundaries: what an operator needs there beyond what its schemas say, as text in `rules/versions`.

The overload of such a rule says in which direction, at which boundary and under which guard it is tried: ``below 15 if
given(end)``, ``from 13``, or ``absent`` if the target lacks the operator. The attribute that came with a boundary may
name it, as in ``below noop_with_empty_axes``. The first rule whose guard holds is applied; if there is none, all rows
of `attributes.toml` whose guard holds are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from onnx import FunctionProto, NodeProto

from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bodies import write_out
from reducelower.rulebook.guards import filled, read_as_constants, terms, value_of
from reducelower.rulebook.reading import VERSIONS, Folder, Helpers, Source, Written, by_name, home
from reducelower.rulebook.rows import Occasion, Way
from reducelower.rulebook.specializing import ITS_BODY, reason_and_hint, specialized
from reducelower.scope.body import AnyScope

__all__ = ["Boundaries", "BoundaryRule", "ItsBody", "first_that_holds", "shipped"]


class ItsBody(NamedTuple):
    """The answer that a node has to be expanded, since the simpler operators in its body can cross the boundary.

    In text it is a rule whose only node is ``ItsBody <reason, hint>``. They say why the node is refused if nothing can
    expand it, and what a user can do about that.
    """

    reason: str
    hint: str = ""


@dataclass(frozen=True)
class BoundaryRule(Written):
    """A rule for a boundary, and when it is tried."""

    occasion: Occasion = field(kw_only=True)

    @cached_property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names that the rule gives to inputs and outputs."""
        return tuple(self.function.input), tuple(self.function.output)

    def read_version(self, op_type: str) -> int:
        """The version of the operator that a rule for 'absent' expects; 0 for any."""
        return self.occasion.boundary(op_type)

    def label(self, node: NodeProto, scope: AnyScope) -> str:
        """What reports say of the rule beyond the boundary: its doc string, if that has something to fill in."""
        function = self.source.function
        if "{" in function.doc_string:
            return filled(function.doc_string, Asked(function, node, scope, self.opset))
        return self.name if self.book else ""

    def apply(self, node: NodeProto, scope: AnyScope, opset: int) -> list[NodeProto] | ItsBody | None:
        """The nodes that replace a node written for `opset`, or `ItsBody`; None if the guard does not hold.

        Raises:
            RefusedError: the rule refuses it.
        """
        result = first_that_holds((self,), node, scope, opset)
        return None if result is None else result[1]

    def _instantiated(self, asked: Asked, scope: AnyScope) -> list[NodeProto] | ItsBody:
        function, node = _with_all(self.source.function, asked.node), asked.node
        if (first := function.node[0]).op_type == ITS_BODY:
            return ItsBody(*reason_and_hint(first, asked))
        known_inputs = {name for name in read_as_constants(self.occasion.guard) if asked.is_input(name)}
        body = specialized(function, self.helpers, asked, known_inputs)
        nodes = write_out(function, body, node, scope)
        if self.book:
            scope.node_scope.applied.append(self.place)
        return nodes


def _with_all(function: FunctionProto, node: NodeProto) -> FunctionProto:
    """A rule with as many inputs and outputs as the node: more follow the last one and are named after it."""
    more_in, more_out = len(node.input) - len(function.input), len(node.output) - len(function.output)
    if max(more_in, more_out) <= 0 or not (function.input or more_in <= 0):
        return function
    extended = FunctionProto()
    extended.CopyFrom(function)
    extended.input.extend(f"{function.input[-1]}_and_{place}" for place in range(more_in))
    extended.output.extend(f"{function.output[-1]}_and_{place}" for place in range(more_out))
    return extended


def first_that_holds(
    rules: Iterable[BoundaryRule], node: NodeProto, scope: AnyScope, opset: int
) -> tuple[BoundaryRule, list[NodeProto] | ItsBody] | None:
    """The first rule whose guard holds for a node, and its result; None if no guard holds.

    Terms that several guards share are evaluated once.

    Raises:
        RefusedError: the rule refuses the node.
    """
    asked_by: dict[tuple[tuple[str, ...], tuple[str, ...]], Asked] = {}
    for rule in rules:
        # Each rule's header has its own defaults for a vendor's operator.
        asked = None if node.domain else asked_by.get(rule.names)
        if asked is None:
            asked = asked_by[rule.names] = Asked(_with_all(rule.source.function, node), node, scope, opset)
        for text, term in terms(rule.occasion.guard):
            if text not in asked.terms:
                asked.terms[text] = bool(value_of(term, asked))
            if not asked.terms[text]:
                break
        else:
            return rule, rule._instantiated(asked, scope)
    return None


class Boundaries:
    """The boundary rules of a folder; the file of an operator is parsed when it is first asked for."""

    def __init__(self, folder: Path, helpers: Helpers, *, name: str = "", domain: str = "") -> None:
        """Find the files, by their names or by the operators that their first lines name.

        Args:
            folder: where the files are.
            helpers: helper functions for all rules.
            name: what reports call a book of the user's; empty for that of the package.
            domain: the domain of the operators; empty for the default one.
        """
        self.path = folder
        self._folder = Folder(folder, helpers)
        self.name = name
        self.domain = domain
        self._rules: dict[str, tuple[BoundaryRule, ...]] = {}

    @cached_property
    def of_domains(self) -> Mapping[str, Boundaries]:
        """The rules for operators of other domains; each domain has a folder inside, named after it."""
        boundaries: dict[str, Boundaries] = {}
        for path in sorted(self.path.iterdir()):
            if path.is_dir() and not path.name.startswith((".", "_")):
                boundaries[path.name] = Boundaries(path, self._folder.helpers, name=self.name, domain=path.name)
        return boundaries

    @property
    def helpers(self) -> Helpers:
        """The helper functions for all rules of the folder."""
        return self._folder.helpers

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators with rules, sorted."""
        return tuple(sorted(self._folder.files))

    def tried(self, op_type: str, way: Way) -> tuple[BoundaryRule, ...]:
        """The rules for an operator that is absent from the target or lacks a type there, or that an adapter calls."""
        return tuple(rule for rule in self.rules(op_type) if rule.occasion.way == way)

    def rules(self, op_type: str) -> tuple[BoundaryRule, ...]:
        """Every rule for an operator, in the order in which they are tried."""
        if op_type not in self._rules:
            files = self._folder.read(op_type)
            self._rules[op_type] = tuple(rule for sources in files for rule in self._of_a_file(sources))
        return self._rules[op_type]

    def at(self, op_type: str, boundary: int, *, down: bool) -> tuple[BoundaryRule, ...]:
        """The rules for a version boundary."""
        return tuple(rule for rule in self.rules(op_type) if rule.occasion.is_at(op_type, boundary, down=down))

    def _of_a_file(self, sources: Sequence[Source]) -> Iterable[BoundaryRule]:
        helpers = {**self.helpers, **by_name(source for source in sources if not source.function.overload)}
        for source in (source for source in sources if source.function.overload):
            try:
                occasion = Occasion.of(source.function.overload)
                yield BoundaryRule(source, helpers, self.name, occasion=occasion)
            except ValueError as error:
                raise source.error(str(error), "overload") from None


@cache
def shipped() -> Boundaries:
    """The boundary rules that come with the package."""
    return Boundaries(home() / VERSIONS, {})
