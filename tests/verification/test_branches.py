"""Which branches and bodies the runs of whole models took, as the report tells."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.verification import verify

from .models import model

CHOSEN = (
    "g (float[4] x, float k) => (float[4] y) <float t = {1000}, bool on = {1}> { c = Greater (k, t)  "
    "y = If (%s) <then_branch = a () => (float[4] p) { p = Neg (x) }, else_branch = b () => (float[4] q) "
    "{ q = Identity (x) }> }"
)
REPEATED = (
    "g (float[4] x, int64 n) => (float[4] y) <bool go = {1}> { y = Loop (n, go, x) <body = b "
    "(int64 i, bool c, float[4] v) => (bool d, float[4] w) { d = Identity (c)  w = Neg (v) }> }"
)


@pytest.mark.parametrize(("value", "branch"), [(2000, "then_branch"), (10, "else_branch")])
def test_the_branch_that_ran_is_told(value: float, branch: str) -> None:
    given = model(CHOSEN % "c")
    found = verify(given, given, inputs={"k": np.float32(value)})
    ran = {item.split(":")[0]: " 0 of " not in item for item in found.coverage.branches}
    assert ran == {
        "graph/If#1.then_branch": branch == "then_branch",
        "graph/If#1.else_branch": branch == "else_branch",
    }


def test_a_branch_that_a_constant_chooses_is_told() -> None:
    given = model(CHOSEN % "on")
    then, other = verify(given, given).coverage.branches
    assert " 0 of " not in then
    assert " 0 of " in other


@pytest.mark.parametrize(("turns", "ran"), [(3, True), (0, False)])
def test_a_body_runs_where_there_are_turns(turns: int, ran: bool) -> None:
    given = model(REPEATED)
    (body,) = verify(given, given, inputs={"n": np.array(turns)}).coverage.branches
    assert (" 0 of " not in body) == ran
