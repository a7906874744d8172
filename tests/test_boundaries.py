"""Every boundary between operator versions is known: derivable from the schemas, in a row or a rule, or rewritten.

A newer onnx announces itself here: the first test lists what nobody has looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reducelower.adapters.crossings import crossing_at
from reducelower.adapters.rules import Function, rules_for
from reducelower.model.schemas import REDUCTIONS, all_operators, schema, versions
from reducelower.rulebook.boundaries import shipped
from reducelower.rulebook.guards import asked_in, what_is_wrong
from reducelower.rulebook.occasions import Way
from reducelower.rulebook.rows import Row, rows_of

SAME_IN_PRACTICE = {
    **{
        (operator, 22): "the window that starts in the end padding was dropped by runtimes before the text said so"
        for operator in ("AveragePool", "LpPool", "MaxPool")
    },
    ("Clip", 13): "min above max was given a meaning, the one runtimes had",
    ("ConvTranspose", 11): "runtimes used the later text's padding for output_shape all along",
    ("Mod", 13): "the text says which types fmod is for; runtimes take the same as before",
    ("OptionalGetElement", 18): "what is no optional passes through, which its type tells",
    ("OptionalHasElement", 18): "what is no optional is there, which its type tells",
}
"""Boundaries where only the text changed, or where types tell the meaning: nodes stay as they are."""


def _reviewed() -> dict[tuple[str, int], str]:
    """The mark of each operator version that was looked at: empty, ``!`` or ``x``."""
    found = {}
    for line in (Path(__file__).parent / "data" / "operator_versions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            operator, *versions = line.split()
            for version in versions:
                found[operator, int(version.rstrip("!x"))] = version.lstrip("0123456789")
    return found


REVIEWED = _reviewed()
INSTALLED = [(operator, version) for operator in sorted(all_operators()) for version in versions(operator)]
WAYS: tuple[Way, ...] = ("below", "from")
BOUNDARIES = [
    (operator, version)
    for operator, version in INSTALLED
    if schema(operator, version) is not None and schema(operator, version - 1) is not None
]


def test_every_operator_version_of_the_installed_onnx_was_looked_at() -> None:
    unknown = [f"{operator} {version}" for operator, version in INSTALLED if (operator, version) not in REVIEWED]
    assert not unknown, (
        f"the installed onnx has operator versions that nobody has reviewed: {', '.join(unknown)}. Read what changed, "
        "write a rule or register a rewrite if the schemas do not say it, and add them to "
        "tests/data/operator_versions.txt"
    )


def test_what_changed_behind_the_schema_is_in_a_table_or_rewritten() -> None:
    for operator, version in [key for key in BOUNDARIES if REVIEWED.get(key) == "!"]:
        both = [crossing_at(operator, version, down=down) for down in (True, False)]
        is_rewritten = any(one.rules or one.changed_defaults or one.moves for one in both)
        assert is_rewritten or (operator, version) in SAME_IN_PRACTICE, f"{operator} {version}"


def test_everything_else_follows_from_the_schemas() -> None:
    wrong = {key: said for key in BOUNDARIES if REVIEWED.get(key) == "" if (said := _what_does_not_follow(*key))}
    assert not wrong


def _what_does_not_follow(operator: str, version: int) -> str:
    """What of a boundary the schemas do not say, empty where they say it all."""
    below, above = schema(operator, version - 1), schema(operator, version)
    assert below is not None
    assert above is not None
    for down in (True, False):
        crossing = crossing_at(operator, version, down=down)
        if crossing.rules:
            continue
        gone = crossing.gone - {move.attribute for move in crossing.moves}
        # What the other side does not have is refused unless it says nothing.
        if not down and gone:
            return f"{gone} are gone and not known to say nothing"
        # Downward the checker refuses a node that misses one.
        needed = [name for name, each in crossing.goal.attributes.items() if each.required]
        if not down and not set(needed) <= {*crossing.source.attributes}:
            return f"one of {needed} became required"
        shared = set(below.attributes) & set(above.attributes)
        retyped = [name for name in shared if below.attributes[name].type != above.attributes[name].type]
        if retyped or len(below.inputs) > len(above.inputs) or len(below.outputs) > len(above.outputs):
            return f"it lost inputs or outputs, or these changed type: {retyped}"
    return ""


def _written_at(operator: str, way: Way) -> set[int]:
    return {rule.occasion.boundary(operator) for rule in rules_for(operator, way)}


@pytest.mark.parametrize("operator", sorted({operator for operator, _ in REVIEWED}))
def test_rules_stand_at_boundaries_that_exist(operator: str) -> None:
    assert {(operator, version) for way in WAYS for version in _written_at(operator, way)} <= set(REVIEWED)


@pytest.mark.parametrize("operator", sorted({operator for operator, _ in REVIEWED}))
def test_rows_name_what_their_operator_has(operator: str) -> None:
    schemas = [found for version in versions(operator) if (found := schema(operator, version)) is not None]
    attributes = {name for each in schemas for name in each.attributes}
    formals = {formal.name for each in schemas for formal in (*each.inputs, *each.outputs)}
    for row in rows_of(operator):
        assert {*row.sets, *row.drops} <= attributes
        expressions = [value for value in row.sets.values() if isinstance(value, str)]
        for text in (row.occasion.guard, *expressions, *asked_in(row.refuse), *asked_in(row.hint)):
            assert not text or not what_is_wrong(text, formals, attributes)


@pytest.mark.parametrize("operator", shipped().operators)
def test_a_boundary_has_rules_in_text_or_in_python_but_not_both(operator: str) -> None:
    for way in (*WAYS, "absent"):
        kinds: dict[int, set[bool]] = {}
        for rule in rules_for(operator, way):
            if not isinstance(rule, Row):
                kinds.setdefault(rule.occasion.boundary(operator), set()).add(isinstance(rule, Function))
        assert all(len(found) == 1 for found in kinds.values())


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_the_rules_of_reductions_stand_where_the_schemas_move_axes_and_where_negative_ones_came(operator: str) -> None:
    moves = [version for version in versions(operator)[1:] if crossing_at(operator, version, down=True).moves]
    assert len(moves) == 1
    assert _written_at(operator, "from") == set(moves)
    assert _written_at(operator, "below") == {11, *moves}
    for version in set(versions(operator)[1:]) - {11, *moves}:  # which changed element types only
        assert all(crossing_at(operator, version, down=down).is_plain for down in (True, False))
