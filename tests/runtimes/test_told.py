"""What is said of a model before anyone loads it: the table in `told.toml`.

A row has ``graph`` and what else `tests.table` says of models, and

- ``targets``, names of shipped ones, or ``facts`` about a made-up runtime; ``to``: the opset version, if not its own;
- ``constants``: initializers as expressions;
- ``told``: whether something is refused, rewritten or told; ``refused``, ``rewritten``: whether that is among it;
  ``said``: a part of what is said; ``by``: the rules of what is rewritten; ``opset``: the version that it goes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reducelower import Plan, Target, check, load_runtime
from tests.runtimes.toaster import runtime
from tests.table import VOCABULARY, combinations, facts_of, parsed, rows

FIELDS = (
    "graph", "imports", "from", "to", "ir", "each", "targets", "facts", "constants", "told", "refused", "rewritten",
    "said", "by", "opset",
)  # fmt: skip
ROWS = rows(Path(__file__).with_name("told.toml"), fields=FIELDS)


@pytest.mark.parametrize("claim", ROWS)
def test_what_is_said(claim: str) -> None:
    for chosen in combinations(ROWS[claim].get("each", {})):
        row = {**ROWS[claim], **{name: value for name, value in chosen.items() if name in FIELDS}}
        for plan in plans(row, chosen):
            found = {
                "told": bool(plan.refusals or plan.sites or plan.unmended),
                "refused": bool(plan.refusals),
                "rewritten": bool(plan.sites),
                "by": [site.rule for site in plan.sites],
                "opset": plan.target.opset,
            }
            for name, value in found.items():
                assert row.get(name, value) == value, (name, chosen)
            said = " ".join([*map(str, plan.refusals), *plan.unmended, *(site.because for site in plan.sites)])
            assert row.get("said", "") in said, chosen


def plans(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> list[Plan]:
    given = row.get("constants", {}).items()
    source = parsed(row, chosen, {name: eval(text, {**VOCABULARY, **chosen}) for name, text in given})
    runtimes = [load_runtime(name) for name in row.get("targets", ())] or [runtime(*facts_of(row, chosen))]
    return [check(source, target=Target(row.get("to", row["from"]), runtime=each)) for each in runtimes]
