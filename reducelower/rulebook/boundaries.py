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

from reducelower.rulebook.asked import Asked, Tried, with_all
from reducelower.rulebook.bodies import write_out
from reducelower.rulebook.guards import filled, read_as_constants, terms, value_of
from reducelower.rulebook.occasions import Occasion, Written
from reducelower.rulebook.reading import VERSIONS, Folder, Helpers, RuleText, Source, by_name, home

__all__ = ["Alternatives", "Boundaries", "BoundaryRule", "shipped"]


@dataclass(frozen=True)
class BoundaryRule(RuleText):
    """A rule for a boundary, and when it is tried."""

    occasion: Occasion = field(kw_only=True)

    @cached_property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names that the rule gives to inputs and outputs."""
        return tuple(self.function.input), tuple(self.function.output)

    def body(self, asked: Asked, tried: Tried) -> Written:
        """What replaces a node for which the guard holds.

        Raises:
            RefusedError: the rule refuses the node.
        """
        function = with_all(self.function, tried.node)
        known_inputs = {name for name in read_as_constants(self.occasion.guard) if asked.is_input(name)}
        nodes = write_out(function, self.helpers, asked, known_inputs)
        if self.book:
            tried.scope.node_scope.applied.append(self.place)
        doc_string = self.function.doc_string
        label = filled(doc_string, asked) if "{" in doc_string else self.name if self.book else ""
        return Written(nodes, self.opset, label)


@dataclass(frozen=True)
class Alternatives:
    """Rules for the same boundary, of which the first whose guard holds is applied."""

    rules: Sequence[BoundaryRule]

    @property
    def occasion(self) -> Occasion:
        """The boundary, with the guard of one of them."""
        return self.rules[0].occasion

    def written(self, tried: Tried) -> Written | None:
        """What replaces the node; None if no guard holds.

        Raises:
            RefusedError: a rule refuses the node.
        """
        for rule in self.rules:
            # Each rule's header has its own defaults for a vendor's operator.
            asked = None if tried.node.domain else tried.asked.get(rule.names)
            if asked is None:
                function = with_all(rule.function, tried.node)
                asked = tried.asked[rule.names] = Asked(function, tried.node, tried.scope, tried.opset)
            for text, term in terms(rule.occasion.guard):
                if text not in asked.terms:
                    asked.terms[text] = bool(value_of(term, asked))
                if not asked.terms[text]:
                    break
            else:
                return rule.body(asked, tried)
        return None


class Boundaries(Folder):
    """The boundary rules of a folder; the file of an operator is parsed when it is first asked for."""

    path: Path

    def __init__(self, folder: Path, helpers: Helpers, *, name: str = "", domain: str = "") -> None:
        """Find the files, by their names or by the operators that their first lines name.

        Args:
            folder: where the files are.
            helpers: helper functions for all rules.
            name: what reports call a book of the user's; empty for that of the package.
            domain: the domain of the operators; empty for the default one.
        """
        super().__init__(folder, helpers)
        self.name = name
        self.domain = domain
        self._rules: dict[str, tuple[BoundaryRule, ...]] = {}

    @cached_property
    def of_domains(self) -> Mapping[str, Boundaries]:
        """The rules for operators of other domains; each domain has a folder inside, named after it."""
        paths = [path for path in sorted(self.path.iterdir()) if path.is_dir() and not path.name.startswith((".", "_"))]
        return {path.name: Boundaries(path, self.helpers, name=self.name, domain=path.name) for path in paths}

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators with rules, sorted."""
        return tuple(sorted(self.files))

    def rules(self, op_type: str) -> tuple[BoundaryRule, ...]:
        """Every rule for an operator, in the order in which they are tried."""
        if op_type not in self._rules:
            files = self.read(op_type)
            self._rules[op_type] = tuple(rule for sources in files for rule in self._of_a_file(sources))
        return self._rules[op_type]

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
