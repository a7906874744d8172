"""Single rewrites in a table: the nodes before and after, and what the check of the site gives.

Each row of `rewrites.toml` is a rewrite as `planned.rewrite` takes it. Its ``status`` may also be ``ok``, for any that
does not fail, and ``right``, for those that were run; ``chosen`` says that a user asked for this form, whose loss of
range is no failure. ``reason`` is a part of the reason, ``cases`` how many sets of inputs there are more than; what
``holds`` are expressions that are true of what was ``found``. The value ``reductions`` of a parameter stands for every
Reduce operator.
"""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

import pytest

from reducelower.model.schemas import REDUCTIONS
from tests.table import combinations, rows

from .planned import rewrite

OPERATORS = sorted(REDUCTIONS)
SETTINGS = ("kind", "rank", "opsets", "extra", "constants")
ROWS = rows(
    Path(__file__).parent / "rewrites.toml",
    fields={"before", "after", "each", "status", "chosen", "reason", "runtime", "cases", "holds", *SETTINGS},
)


@pytest.mark.parametrize("claim", ROWS)
def test_what_the_check_of_a_rewrite_gives(claim: str) -> None:
    row = ROWS[claim]
    each = {
        name: sorted(REDUCTIONS) if values == "reductions" else values for name, values in row.get("each", {}).items()
    }
    for chosen in combinations(each):
        settings = {name: row[name] for name in SETTINGS if name in row} | {
            name: value for name, value in chosen.items() if name in SETTINGS
        }
        settings["constants"] = [_filled(text, chosen) for text in settings.get("constants", ["", ""])]
        given = rewrite(_filled(row["before"], chosen), _filled(row["after"], chosen), **settings)
        found = (given.as_chosen() if "chosen" in row else given).finding()
        told = f"with {chosen}: {found}"
        wanted = row["status"]
        assert found.ok is (wanted not in ("different", "loses range" if "chosen" not in row else "")), told
        assert wanted == "ok" or (found.status != "not run" if wanted == "right" else found.status == wanted), told
        assert row.get("reason", "") in found.reason, told
        assert found.reason or wanted != "different"
        assert row.get("runtime", found.runtime) == found.runtime
        assert found.cases > row.get("cases", -1)
        assert [text for text in row.get("holds", ()) if not eval(text, {"found": found})] == [], told


def _filled(text: str, chosen: Any) -> str:
    while "$" in text:
        text = Template(text).substitute(chosen)
    return text
