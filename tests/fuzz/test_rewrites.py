"""Every rewrite of an operator at an opset boundary computes what a runtime makes of its source."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from reducelower import ConversionError
from reducelower.adapters.absent import is_expressible
from reducelower.adapters.crossings import crossing_at
from reducelower.model.schemas import all_operators, is_deprecated, schema, versions
from reducelower.rulebook.rows import Row
from tools.fuzz.case import Action, Case
from tools.fuzz.drawing import NotDrawableError
from tools.fuzz.generating import node_case
from tools.fuzz.judging import judge
from tools.fuzz.versions import measured

ROOT = Path(__file__).parents[2]
RECURRENT = "tests/adapters/test_recurrent_and_sampling.py"
ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "OptionalHasElement 18 to 17": (
        "tests/legalization/cases/refused.toml",
        "an optional that is none is not taken where only optionals are",
    ),
    "MaxUnpool 9 to 8": ("tests/runtimes/cases/forms.toml", "MaxUnpool puts each element where its index says"),
    "GRU 2 to 3": (RECURRENT, "test_the_misspelled_default_direction_is_spelled_out"),
    "GRU 3 to 2": (RECURRENT, "test_the_misspelled_default_direction_is_spelled_out"),
    **{
        f"{op_type} {way}": (RECURRENT, "test_the_sequence_of_results_was_asked_for_below_7")
        for op_type in ("GRU", "LSTM", "RNN")
        for way in ("6 to 7", "7 to 6")
    },
}
"""Rewrites that no judge runs, with the test of what they write: its file, and its name or the claim of a row."""

SHARES = 6
TRIES = 100


@cache
def every_rewrite() -> Mapping[str, tuple[str, int, int]]:
    """Each rewrite by name: its operator, and the opset versions before and after it.

    A rewrite is registered for a boundary, moves an attribute to an input or back, or expresses an operator that the
    target lacks or has withdrawn.
    """
    rewrites = {}
    for op_type in sorted(all_operators()):
        since = versions(op_type)
        for boundary in since[1:]:
            for start, goal in ((boundary - 1, boundary), (boundary, boundary - 1)):
                if schema(op_type, start) is None or schema(op_type, goal) is None:
                    continue
                crossing = crossing_at(op_type, boundary, down=goal < start)
                rules = any(not (isinstance(rule, Row) and rule.refuse) for rule in crossing.rules)
                if rules or crossing.moves or crossing.changed_defaults:
                    rewrites[f"{op_type} {start} to {goal}"] = (op_type, start, goal)
        first = next(version for version in since if schema(op_type, version) is not None)
        withdrawn = next((version for version in since if version > first and is_deprecated(op_type, version)), None)
        if withdrawn is not None:
            rewrites[f"{op_type} {withdrawn - 1} to {withdrawn}"] = (op_type, withdrawn - 1, withdrawn)
        elif first > 1 and is_expressible(op_type):
            rewrites[f"{op_type} {first} to {first - 1}"] = (op_type, first, first - 1)
    return rewrites


def is_rewritten(case: Case) -> bool:
    """Whether the conversion changes more than version numbers."""
    made = case.action.apply(case.model)
    return made.graph != case.model.graph or list(made.functions) != list(case.model.functions)


def is_compared(name: str, number: int) -> bool:
    """Whether the random case of this number runs the rewrite in a runtime; no case may come out wrong."""
    op_type, start, goal = every_rewrite()[name]
    rng = np.random.default_rng([number, *map(ord, name)])
    try:
        case = node_case(rng, op_type, start, f"{name}, number {number}", Action("convert", goal))
    except NotDrawableError:
        return False
    with contextlib.suppress(ConversionError):
        if is_rewritten(case):
            verdict = judge(case)
            assert not verdict.is_finding, f"{case.name}: {verdict.kind}: {verdict.detail}"
            return verdict.kind == "equal" and bool(verdict.judges)
    return False


@measured
@pytest.mark.parametrize("share", range(SHARES))
def test_a_rewrite_computes_what_a_runtime_makes_of_its_source(share: int) -> None:
    names = [name for name in every_rewrite() if name not in ELSEWHERE][share::SHARES]
    assert [name for name in names if not any(is_compared(name, number) for number in range(TRIES))] == []


@pytest.mark.parametrize(("file", "claim"), sorted(set(ELSEWHERE.values())))
def test_what_is_named_instead_exists(file: str, claim: str) -> None:
    assert claim in (ROOT / file).read_text(encoding="utf-8")
