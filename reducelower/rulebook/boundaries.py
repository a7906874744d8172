"""Rules of version boundaries: what an operator needs there beyond what its schemas say, as text in `rules/versions`.

The overload of such a rule says in which direction, at which boundary and under which guard it is tried: ``below 15 if
given(end)``, ``from 13``, or ``absent`` if the target lacks the operator. The attribute that came with a boundary may
name it, as in ``below noop_with_empty_axes``. The first rule whose guard holds is applied. Rows of `attributes.toml`
only edit attributes; if no rule was applied, all rows whose guard holds are.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from onnx import FunctionProto, NodeProto

from reducelower.errors import RefusedError, RuleError
from reducelower.model.attributes import drop_attribute, set_attribute
from reducelower.model.schemas import schema, schema_in_force, versions
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bodies import write_out
from reducelower.rulebook.guards import check_guard, evaluated, filled, read_as_constants, terms, value_of
from reducelower.rulebook.own_operators import ITS_BODY, reason_and_hint
from reducelower.rulebook.reading import (
    HELPERS,
    SUFFIX,
    VERSIONS,
    Helpers,
    Place,
    Written,
    by_name,
    home,
    read_helpers,
    read_rules,
)  # fmt: skip
from reducelower.rulebook.specializing import specialized, with_all
from reducelower.scope.body import AnyScope

__all__ = [
    "NO_CANDIDATES", "OPERATORS", "Boundaries", "BoundaryRule", "Candidates", "ItsBody", "Occasion", "Row",
    "boundaries_of", "first_that_holds", "shipped",
]  # fmt: skip

Way: TypeAlias = Literal["below", "from", "absent", "lacking"]

ROWS = "attributes.toml"

_OCCASION = re.compile(r"(below|from|absent|lacking)(?: (?:as of )?(\w+))?(?: if (.+))?", re.DOTALL)
OPERATORS = "# operators: "
"""The beginning of the first line of a file that lists its operators, if its name is not that of an operator."""


@dataclass(frozen=True)
class Occasion:
    """When something is tried: in which direction, at which boundary, and under which guard."""

    way: Way
    at: str
    guard: str

    @classmethod
    def of(cls, text: str) -> Occasion:
        """Read an occasion.

        Raises:
            ValueError: the text is no occasion; the message says why.
        """
        match = _OCCASION.fullmatch(text.strip())
        if match is None or (match[1] in ("below", "from") and not match[2]):
            ways = "'below N', 'from N', 'absent' nor 'lacking'"
            raise ValueError(f"{text!r} says neither {ways}, with 'if' and a guard behind it")
        guard = " ".join((match[3] or "").split())
        problem = check_guard(guard) if guard else ""
        if problem:
            raise ValueError(problem)
        way: Any = match[1]
        return cls(way, match[2] or "", guard)

    def boundary(self, op_type: str) -> int:
        """The opset version of the boundary; 0 if the operator is absent, since then it serves nodes of any version."""
        return int(self.at or 0) if not self.at or self.at.isdigit() else _version_with_attribute(op_type, self.at)


@cache
def _version_with_attribute(op_type: str, name: str) -> int:
    """The first opset version at which an operator has an attribute; 0 if there is none."""
    for version in versions(op_type):
        operator = schema(op_type, version)
        if operator is not None and name in operator.attributes:
            return version
    return 0


@cache
def _signature(op_type: str, opset: int, domain: str) -> FunctionProto:
    """An operator's inputs and outputs by their names in its schema; empty if there is no schema."""
    operator = schema_in_force(op_type, opset, domain)
    if operator is None:
        return FunctionProto()
    return FunctionProto(
        input=[formal.name for formal in operator.inputs], output=[formal.name for formal in operator.outputs]
    )


@dataclass(frozen=True)
class Row:
    """Edits of attributes, or a refusal."""

    place: Place
    occasion: Occasion
    why: str
    sets: Mapping[str, Any] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    refuse: str = ""
    hint: str = ""
    applied: list[Place] | None = field(default=None, repr=False, compare=False)

    def apply(self, node: NodeProto, scope: AnyScope, opset: int) -> None:
        """Edit a node, if the guard holds.

        Raises:
            RefusedError: the row refuses it.
        """
        asked = Asked(_signature(node.op_type, opset, node.domain), node, scope, opset)
        if self.occasion.guard and not evaluated(self.occasion.guard, asked):
            return
        if self.refuse:
            raise RefusedError(filled(self.refuse, asked), filled(self.hint, asked))
        values = {name: evaluated(item, asked) if isinstance(item, str) else item for name, item in self.sets.items()}
        for name in self.drops:
            drop_attribute(node, name)
        for name, value in values.items():
            set_attribute(node, name, int(value) if isinstance(value, bool) else value)
        if self.applied is not None:
            self.applied.append(self.place)


class ItsBody(NamedTuple):
    """The answer that a node has to be expanded, since the simpler operators in its body can cross the boundary.

    In text it is a rule whose only node is ``ItsBody <reason, hint>``. They say why the node is refused if nothing can
    expand it, and what a user can do about that.
    """

    reason: str
    hint: str = ""


@dataclass(frozen=True)
class BoundaryRule(Written):
    """A rule for a boundary: when it is tried, and the list of the places of applied rules, if one is kept."""

    occasion: Occasion = field(kw_only=True)
    applied: list[Place] | None = field(default=None, repr=False, compare=False)

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
        return f"{self.book}/{function.name}" if self.book else ""

    def apply(self, node: NodeProto, scope: AnyScope, opset: int) -> list[NodeProto] | ItsBody | None:
        """The nodes that replace a node written for `opset`, or `ItsBody`; None if the guard does not hold.

        Raises:
            RefusedError: the rule refuses it.
        """
        result = first_that_holds((self,), node, scope, opset)
        return None if result is None else result[1]

    def _instantiated(self, asked: Asked, scope: AnyScope) -> list[NodeProto] | ItsBody:
        function, node = with_all(self.source.function, asked.node), asked.node
        if (first := function.node[0]).op_type == ITS_BODY:
            return ItsBody(*reason_and_hint(first, asked))
        known_inputs = {name for name in read_as_constants(self.occasion.guard) if asked.is_input(name)}
        body = specialized(function, self.helpers, asked, known_inputs)
        nodes = write_out(function, body, node, scope)
        if self.applied is not None:
            self.applied.append(self.source.place)
        return nodes


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
            asked = asked_by[rule.names] = Asked(with_all(rule.source.function, node), node, scope, opset)
        for text, term in terms(rule.occasion.guard):
            if text not in asked.terms:
                asked.terms[text] = bool(value_of(term, asked))
            if not asked.terms[text]:
                break
        else:
            return rule, rule._instantiated(asked, scope)
    return None


class Candidates(NamedTuple):
    """What to try at a boundary: the first rule whose guard holds, or else all rows whose guard holds."""

    rules: tuple[BoundaryRule, ...] = ()
    rows: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules or self.rows)


NO_CANDIDATES = Candidates()


class Boundaries:
    """The boundary rules of a folder; the file of an operator is parsed when it is first asked for.

    Attributes:
        applied: the places of the rules that were applied; None for the package's rules, which outlast runs.
    """

    def __init__(self, folder: Path, helpers: Helpers, *, name: str = "", domain: str = "") -> None:
        """Find the files, by their names or by the operators that their first lines name.

        Args:
            folder: where the files are.
            helpers: helper functions for all rules.
            name: what reports call a book of the user's; empty for that of the package.
            domain: the domain of the operators; empty for the default one.
        """
        self.folder = folder
        self.name = name
        self.applied: list[Place] | None = [] if name else None
        self.domain = domain
        self._given_helpers = helpers
        self._rules: dict[str, tuple[BoundaryRule, ...]] = {}

    @cached_property
    def of_domains(self) -> Mapping[str, Boundaries]:
        """The rules for operators of other domains; each domain has a folder inside, named after it."""
        boundaries: dict[str, Boundaries] = {}
        for path in sorted(self.folder.iterdir()):
            if path.is_dir() and not path.name.startswith((".", "_")):
                boundaries[path.name] = Boundaries(path, self.helpers, name=self.name, domain=path.name)
                boundaries[path.name].applied = self.applied
        return boundaries

    @cached_property
    def _files(self) -> Mapping[str, list[Path]]:
        files: dict[str, list[Path]] = {}
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            if path.stem == HELPERS:
                continue
            with path.open(encoding="utf-8") as file:
                first_line = file.readline()
            names = first_line.removeprefix(OPERATORS).split() if first_line.startswith(OPERATORS) else [path.stem]
            for op_type in names:
                files.setdefault(op_type, []).append(path)
        return files

    @cached_property
    def _rows(self) -> Mapping[str, list[Row]]:
        path = self.folder / ROWS
        rows_of: dict[str, list[Row]] = {}
        try:
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            tables = tomllib.loads(text)
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise RuleError(f"is not TOML: {error}", path) from None
        lines = text.splitlines()
        for op_types, rows in tables.items():
            line = next((at for at, each in enumerate(lines, 1) if each.strip('"').startswith(op_types)), None)
            written = rows if isinstance(rows, list) else [rows]
            parsed = [_row(row, Place(path, line), self.applied) for row in written]
            for op_type in op_types.split():
                rows_of.setdefault(op_type, []).extend(parsed)
        return rows_of

    @cached_property
    def helpers(self) -> Helpers:
        """The helper functions for all rules of the folder."""
        return {**self._given_helpers, **read_helpers(self.folder)}

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators with rules, or with a list of rows, which may be empty; sorted."""
        return tuple(sorted({*self._files, *self._rows}))

    def rules(self, op_type: str) -> tuple[BoundaryRule, ...]:
        """Every rule for an operator, in the order in which they are tried."""
        if op_type not in self._rules:
            self._rules[op_type] = tuple(
                rule for path in self._files.get(op_type, ()) for rule in self._read(path, op_type)
            )
        return self._rules[op_type]

    def rows(self, op_type: str) -> Iterable[Row]:
        """Every row for an operator."""
        return self._rows.get(op_type, ())

    def occasions(self, op_type: str) -> list[Occasion]:
        """When the rules and rows for an operator are tried."""
        return [rule.occasion for rule in self.rules(op_type)] + [row.occasion for row in self.rows(op_type)]

    def at(self, op_type: str, boundary: int, *, down: bool) -> Candidates:
        """What to try at a boundary."""

        def is_tried(occasion: Occasion) -> bool:
            return occasion.way == ("below" if down else "from") and occasion.boundary(op_type) == boundary

        return Candidates(
            tuple(rule for rule in self.rules(op_type) if is_tried(rule.occasion)),
            tuple(row for row in self.rows(op_type) if is_tried(row.occasion)),
        )

    def expressions(self, op_type: str) -> tuple[BoundaryRule, ...]:
        """The rules for an operator that the target lacks."""
        return tuple(rule for rule in self.rules(op_type) if rule.occasion.way == "absent")

    def retypings(self, op_type: str) -> tuple[BoundaryRule, ...]:
        """The rules for an operator whose version at the target lacks the element type of a node."""
        return tuple(rule for rule in self.rules(op_type) if rule.occasion.way == "lacking")

    def _read(self, path: Path, op_type: str) -> Iterable[BoundaryRule]:
        sources = read_rules(path)
        helpers = {**self.helpers, **by_name(source for source in sources if not source.function.overload)}
        for source in (source for source in sources if source.function.overload):
            try:
                occasion = Occasion.of(source.function.overload)
                yield BoundaryRule(source, helpers, self.name, occasion=occasion, applied=self.applied)
            except ValueError as error:
                raise source.error(str(error), "overload") from None


_IN_A_ROW: Mapping[str, tuple[type, str]] = {
    "at": (str, "as text"), "why": (str, "as text"), "set": (dict, "as a table"), "drop": (list, "as a list"),
    "refuse": (str, "as text"), "hint": (str, "as text"),
}  # fmt: skip


def _row(written: Any, place: Place, applied: list[Place] | None) -> Row:
    if not isinstance(written, Mapping):
        raise RuleError(f"{written!r} is no row: a row is a table with 'at' and 'why'", *place)
    row = {"set": {}, "drop": [], "refuse": "", "hint": "", **written}
    for name, (kind, how) in _IN_A_ROW.items():
        if not isinstance(row.get(name), kind):
            raise RuleError(f"a row does not say {name!r} {how}", *place)
    if unknown := row.keys() - _IN_A_ROW.keys():
        raise RuleError(f"a row has no {min(unknown)!r} (known: {', '.join(_IN_A_ROW)})", *place)
    try:
        occasion = Occasion.of(row["at"])
    except ValueError as error:
        raise RuleError(str(error), *place) from None
    return Row(place, occasion, row["why"], row["set"], tuple(row["drop"]), row["refuse"], row["hint"], applied)


@cache
def shipped() -> Boundaries:
    """The boundary rules that come with the package."""
    return Boundaries(home() / VERSIONS, {})


def boundaries_of(directory: Path | None) -> Boundaries | None:
    """The boundary rules in a user's folder of rules, with the shipped helpers; None if it has none."""
    folder = None if directory is None else directory / VERSIONS
    if folder is None or not folder.is_dir():
        return None
    return Boundaries(folder, shipped().helpers, name=folder.parent.resolve().name)
