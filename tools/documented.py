"""Turn the rows of a vendor's lists of operators into facts, merged over releases, as TOML.

The scripts that use this module read downloaded lists, one for each release, and replace everything after `MARK` in a
target file. Only facts are kept from a list, each with its address, release and date. A script stops at a remark that
it does not know, so that a new list shows what is new in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from reducelower.conformance.target_file import fact_lines
from reducelower.model.schemas import all_operators, schema
from reducelower.runtimes.facts import Evidence, Fact, Is, When
from reducelower.runtimes.ranges import Ranges, Versions, release

__all__ = [
    "Release",
    "Row",
    "UnknownRemarkError",
    "missing_types",
    "not_listed",
    "of_remark",
    "others_than",
    "table_rows",
    "write",
]

MARK = "# The rest is made by tools/{script}; change that instead."

_TYPES = (
    "float16", "float", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
)  # fmt: skip
"""Element types that facts name. Double has facts of its own; other types only store quantized weights."""


class UnknownRemarkError(ValueError):
    """A list has a remark that the script does not know."""


@dataclass(frozen=True)
class Row:
    """One statement of a list about operators."""

    operators: frozenset[str]
    outcome: Is
    says: str
    when: tuple[tuple[str, Any], ...] = ()
    opsets: str = ""

    @classmethod
    def of(cls, operators: Iterable[str], outcome: Is, says: str, opsets: str = "", **when: Any) -> Row:
        """A row with conditions by name; a list is a set of texts, and a text is a range."""
        conditions = {
            name: frozenset(value) if isinstance(value, list | tuple) else value for name, value in when.items()
        }
        return cls(frozenset(operators), outcome, says, tuple(sorted(conditions.items())), opsets)


@dataclass(frozen=True)
class Release:
    """The list of one release: version, address, date, and statements."""

    version: str
    address: str
    on: date
    rows: Sequence[Row]
    reads: str
    prefer: int | None = None


def others_than(listed: Iterable[str], reads: str) -> frozenset[str]:
    """The operators of the opset versions that are not in a list."""
    newest = max(number for number in range(1, 40) if number in Ranges.parse(reads))
    return frozenset(name for name in all_operators() if schema(name, newest) is not None) - set(listed)


def not_listed(operator: str, listed: Ranges, reads: str) -> str:
    """The opset versions, as text, at which ONNX has an operator but the list leaves it out; empty if none."""
    read = Ranges.parse(reads)
    others = (opset for opset in range(1, 40) if opset in read and opset not in listed)
    return str(Ranges.of(opset for opset in others if schema(operator, opset) is not None))


def table_rows(text: str) -> list[list[str]]:
    """The cells of each table row in a page of Markdown."""
    rows = [line.strip().strip("|").split("|") for line in text.splitlines() if line.lstrip().startswith("|")]
    return [[" ".join(cell.split()) for cell in row] for row in rows]


def missing_types(taken: Iterable[str]) -> list[str]:
    """The element types that a runtime does not accept."""
    return [name for name in _TYPES if name not in set(taken)]


def write(target: Path, script: str, releases: Sequence[Release], *, own: str, until: str = "") -> None:
    """Replace the generated part of a target file: the facts, and an entry for every version except `own`."""
    mark = MARK.format(script=script)
    head = target.read_text(encoding="utf-8").partition(mark)[0].rstrip("\n")
    lines = [head, "", mark]
    for fact in _facts(sorted(releases, key=lambda each: release(each.version)), until):
        lines += ["", *fact_lines(fact)]
    for each in (each for each in releases if each.version != own):
        lines += ["", f'[versions."{each.version}"]', f'reads = "{each.reads}"']
        lines += [f"prefer = {each.prefer}"] if each.prefer else []
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _facts(releases: Sequence[Release], until: str) -> list[Fact]:
    """A fact for each statement, with the releases and the operators that it is about.

    A statement also holds before the first list and after the last one, unless `until` names the last version.
    """
    where: dict[Row, dict[str, list[int]]] = {}
    for at, each in enumerate(releases):
        for row in each.rows:
            key = Row(frozenset(), row.outcome, row.says, row.when, row.opsets)
            for operator in row.operators:
                where.setdefault(key, {}).setdefault(operator, []).append(at)
    facts: list[Fact] = []
    for key, operators in where.items():
        together: dict[tuple[int, ...], list[str]] = {}
        for operator, places in operators.items():
            together.setdefault(tuple(sorted(set(places))), []).append(operator)
        for places, names in sorted(together.items()):
            facts.append(_fact(key, names, places, releases, until))
    return facts


def _fact(key: Row, names: list[str], places: Sequence[int], releases: Sequence[Release], until: str) -> Fact:
    last = releases[places[-1]]
    spans = []
    for low, high in Ranges.of(places).pairs:
        assert high is not None
        begin = "" if low == 0 else releases[low].version
        end = until if high == len(releases) - 1 else releases[high].version
        spans.append(begin if begin and begin == end else f"{begin}-{end}")
    everywhere = spans == ["-"]
    versions = None if everywhere else Versions.parse(", ".join(spans))
    when = When(**{name: _condition(value) for name, value in key.when})
    first = releases[places[0]].version
    span = last.version if first == last.version else f"{first} to {last.version}"
    evidence = Evidence(documented=last.address, release=span, on=last.on)
    opsets = Ranges.parse(key.opsets) if key.opsets else None
    return Fact(key.says, key.outcome, evidence, frozenset(names), opsets=opsets, when=when, versions=versions)


def _condition(value: Any) -> Any:
    return Ranges.parse(value) if isinstance(value, str) else value


def of_remark(
    remark: str, operator: str, known: Mapping[str, Sequence[tuple[str, Is, Mapping[str, Any]]] | None]
) -> list[Row]:
    """The rows for a remark on an operator, by pattern; None means that the remark says nothing about nodes.

    Raises:
        UnknownRemarkError: no pattern matches.
    """
    for pattern, rows in known.items():
        if re.search(pattern, f"{operator}: {remark}"):
            return [Row.of([operator], outcome, says, **when) for says, outcome, when in rows or ()]
    raise UnknownRemarkError(f"what does this mean? {operator}: {remark}")
