"""Models that have little in common: they are told apart in time, and what there was no time for is told.

Time is that of a clock which moves by one second whenever it is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from onnx import ModelProto

from reducelower.options import Target
from reducelower.plan import Plan, Site
from reducelower.verification import verify_regions
from reducelower.verification.checking.cache import forget
from reducelower.verification.checking.sites import Regions
from reducelower.verification.running.conditions import under
from tests.models import model

from .clocks import Looked

HEAD = "g (float[2, 3] x) => (float[2, 3] y)"
SAME = model(f"{HEAD} {{ a = Neg (x)  y = Neg (a) }}", 18)
OTHER_NAMES = model(f"{HEAD} {{ a = Abs (x)  y = Min (x, a) }}", 18)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def chain(seed: int, last: str) -> ModelProto:
    """Operators one after the other, drawn by a seed; the names of the values are the same for every seed."""
    drawn = random.Random(seed)
    values, nodes = ["x"], []
    for at in range(60):
        kind = drawn.choice(("Tanh", "Neg", "Add", "Sub"))
        other = f", {drawn.choice(['x', *values[-9:]])}" if kind in ("Add", "Sub") else ""
        nodes.append(f"v{at} = {kind} ({values[-1]}{other})")
        values.append(f"v{at}")
    return model(f"{HEAD} {{ {' '.join(nodes)} last = Tanh ({values[-1]}) y = Sub (last, {last}) }}")


UNLIKE = chain(1, "x"), chain(2, "x")
UNLIKE_BUT_ZERO = chain(1, "last"), chain(2, "last")


def within(budget: float | None, before: ModelProto, after: ModelProto) -> tuple[Regions, float]:
    """What was found within so many looks at the clock, and how many there were."""
    forget()
    clock = Looked(budget)
    with under(clock=clock):
        return verify_regions(before, after), clock.gone


def test_of_many_unlike_regions_a_few_are_looked_at_in_detail() -> None:
    """Each of some 50 regions would be looked at with three rings of surroundings, in each way to align the models."""
    found, looks = within(None, *UNLIKE)
    assert any(finding.status == "different" for finding in found.findings)
    assert looks < 800


@pytest.mark.parametrize("looks", [1, 150, 250])
def test_regions_that_were_not_reached_are_counted(looks: int) -> None:
    found, gone = within(looks, *UNLIKE_BUT_ZERO)
    assert gone == looks
    assert f"within the budget of {looks} s; raise --verify-budget" in found.unseen
    left, total = (int(word) for word in found.unseen.split(" differing")[0].split(" of "))
    assert left + sum(len(finding.nodes) for finding in found.findings) == total
    assert (left < total) == (looks > 100)


def test_an_alignment_by_misleading_names_is_no_difference_yet() -> None:
    """The time ends where regions are cut, between two sets of inputs, and within the look at one difference."""
    found, needed = within(None, SAME, OTHER_NAMES)
    assert found.hold
    for looks in [*range(10), *range(10, int(needed), 6)]:
        found, gone = within(looks, SAME, OTHER_NAMES)
        assert gone == looks
        assert "--verify-budget" in found.unseen
        assert all(finding.status == "not run" for finding in found.findings)


def test_a_region_that_a_plan_knows_is_a_difference_all_the_same() -> None:
    outputs = "g (float[2, 3] x) => (float[2, 3] s, float[2, 3] y)"
    before = model(f"{outputs} {{ s = Tanh (x)  a = Neg (x)  y = Neg (a) }}", 18)
    after = model(f"{outputs} {{ s = Sin (x)  a = Abs (x)  y = Min (x, a) }}", 18)
    plan = Plan(18, Target(opset=18), (Site("graph", "Tanh#0", "Tanh", "by hand", 0, 0, 1),))
    with under(clock=Looked(30)):
        found = verify_regions(before, after, plan)
    assert found.unseen
    assert [(finding.op_type, finding.status) for finding in found.findings] == [
        ("Tanh", "different"),
        ("Neg", "not run"),
    ]


def test_names_that_mislead_everywhere_are_no_difference() -> None:
    """Each value has the name of another one; what no name tells, the order of like nodes does."""
    kinds = ("Tanh", "Neg", "Sigmoid", "Abs", "Sin") * 8

    def named(names: list[str]) -> ModelProto:
        values = ["x", *names]
        nodes = [f"{values[at + 1]} = {kind} ({values[at]})" for at, kind in enumerate(kinds)]
        return model(f"{HEAD} {{ {' '.join(nodes)} y = Cos ({values[-1]}) }}", 18)

    names = [f"v{at}" for at in range(len(kinds))]
    found = verify_regions(named(names), named([*names[1:], names[0]]))
    assert found.hold
    assert not found.findings
