"""Pairs of models in tables, which `verify` has to tell apart or to find the same.

A table stands in `pairs`. Its groups hold pairs by verdict and claim, or the one pair that their name is the claim of.
With ``graph``, which is inputs, outputs and initializers, the sides of a pair are nodes, without it whole graphs. They
may hold what is ``said`` of their pairs, the ``runtime`` in which these run, and the ``dims`` that they are run at.
``options`` are expressions for further arguments of `verify`, ``holds`` are such that are true of what was ``found``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from reducelower.verification import verify
from tests.models import model
from tests.table import combinations

from .tables import FIELDS, evaluated, filled, given, holding, is_verdict, written

VERDICTS = ("different", "equivalent", "not shown", "not different")
KNOWN = {*FIELDS, *VERDICTS, "said", "runtime", "dims", "options", "holds"}


def _pairs() -> dict[str, tuple[Mapping[str, Any], str, list[str]]]:
    """The group, the verdict and the two sides of each claim."""
    found: dict[str, tuple[Mapping[str, Any], str, list[str]]] = {}
    for path in sorted((Path(__file__).parent / "pairs").glob("*.toml")):
        for name, group in tomllib.loads(path.read_text(encoding="utf-8")).items():
            assert not set(group) - KNOWN, f"{path.name}, {name}: {set(group) - KNOWN} are no fields"
            for verdict in set(VERDICTS) & set(group):
                pairs = group[verdict]
                named = {f"{name}: {claim}": sides for claim, sides in pairs.items()} if isinstance(pairs, dict) else {}
                for claim, sides in (named or {name: pairs}).items():
                    assert claim not in found, f"{path.name}: {claim} stands twice"
                    found[claim] = group, verdict, sides
    return dict(sorted(found.items()))


PAIRS = _pairs()


@pytest.mark.parametrize("claim", PAIRS)
def test_the_verdict_on_a_pair(claim: str) -> None:
    group, verdict, sides = PAIRS[claim]
    for chosen in combinations(group.get("each", {})):
        before, after = (written(group, text, chosen, at) for at, text in enumerate(sides))
        options = {"inputs": given(group, chosen), **evaluated(group.get("options", {}), chosen)}
        found = verify(before, after, dims=group.get("dims"), **options)
        assert is_verdict(found, verdict), f"with {chosen}: {found}"
        assert filled(group.get("said", ""), group, chosen) in " ".join([str(found), *found.notes])
        assert found.runtime == group.get("runtime", found.runtime)
        assert all(holding(group, found, chosen).values()), (holding(group, found, chosen), str(found))


# What begins and ends where random numbers say is empty; no size that is tried fits a reshape to 0 and 4.
NOT_SHOWN = {"steps told at run time", "a zero in a constant shape is read in both ways"}


@pytest.mark.parametrize("claim", [claim for claim, (_, verdict, _) in PAIRS.items() if verdict == "different"])
def test_every_model_is_equivalent_to_itself(claim: str) -> None:
    group, _, sides = PAIRS[claim]
    same = written(group, sides[0], next(combinations(group.get("each", {}))))
    found = verify(same, same)
    assert (found.verdict, found.sites) == ("not shown" if claim in NOT_SHOWN else "equivalent", ()), str(found)


def test_a_thousand_alike_regions_are_one_check() -> None:
    count = 1000
    bodies = ("Relu", []), ("Max", ["zero"])
    before, after = (model(f"g (float[4] v0) => (float[4] v{count}) <float zero = {{0}}> {{ }}") for _ in bodies)
    for made, (op_type, more) in zip((before, after), bodies, strict=True):
        made.graph.node.extend(helper.make_node(op_type, [f"v{at}", *more], [f"v{at + 1}"]) for at in range(count))
    found = verify(before, after)
    assert found.verdict == "equivalent"
    assert [site.nodes for site in found.sites] == [tuple(("graph", f"Relu#{at}") for at in range(count))]


def test_a_fault_deep_inside_is_told_where_it_stands() -> None:
    chain = "g (float[N, 4] x) => (float[N, 4] y) {{ a = Abs (x)  b = Exp (a)  c = {} (b)  d = Relu (c)  y = Neg (d) }}"
    found = verify(model(chain.format("Sqrt")), model(chain.format("Log")))
    (region,) = [site for site in found.sites if not site.ok]
    assert (region.op_type, found.verdict) == ("Sqrt", "different")
