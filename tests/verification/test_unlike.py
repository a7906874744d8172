"""Models that have little in common: they are told apart in time, and what there was no time for is told.

Time is that of a clock which every check of a region moves by one second.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

from reducelower.options import Target
from reducelower.plan import Plan, Site
from reducelower.verification import verify, verify_regions
from reducelower.verification.checking import remembered as remembered_module
from reducelower.verification.checking import seen as seen_module
from reducelower.verification.checking import sites as sites_module
from reducelower.verification.checking import two_sides as two_sides_module
from reducelower.verification.checking.remembered import Checker
from reducelower.verification.running import clock as clock_module
from reducelower.verification.running.clock import Clock

from .models import model

SAME = model("g (float[2, 3] x) => (float[2, 3] y) { a = Neg (x)  y = Neg (a) }", 18)
OTHER_NAMES = model("g (float[2, 3] x) => (float[2, 3] y) { a = Abs (x)  y = Min (x, a) }", 18)
KINDS = ("Tanh", "Neg", "Add", "Sub")


def chain(count: int, seed: int, *, ends_in_zero: bool = False) -> ModelProto:
    """Operators one after the other, drawn by a seed; the names of the values are the same for every seed."""
    drawn = random.Random(seed)
    values, nodes = ["x"], []
    for at in range(count):
        kind = drawn.choice(KINDS)
        given = [values[-1], drawn.choice(["x", *values[-9:]])] if kind in ("Add", "Sub") else [values[-1]]
        nodes.append(helper.make_node(kind, given, [f"v{at}"]))
        values.append(f"v{at}")
    nodes.append(helper.make_node("Tanh", [values[-1]], ["last"]))
    nodes.append(helper.make_node("Sub", ["last", "last" if ends_in_zero else "x"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@dataclass
class Checks:
    """How many regions were checked, a second each."""

    gone: float = 0


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    found = Checks()
    real: Callable[..., Any] = remembered_module.check

    def check(*given: Any, **options: Any) -> Any:
        found.gone += 1
        return real(*given, **options)

    remembered_module.forget()
    monkeypatch.setattr(remembered_module, "check", check)
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(monotonic=lambda: found.gone))
    return found


def test_of_many_unlike_regions_a_few_are_looked_at_in_detail(checks: Checks) -> None:
    """Each of some 50 regions would be looked at with three rings of surroundings, in each way to align the models."""
    assert verify(chain(60, 1), chain(60, 2)).verdict == "different"
    assert checks.gone < 250


@pytest.mark.parametrize("seconds", [1, 4, 9])
def test_regions_that_were_not_reached_are_counted(checks: Checks, seconds: int) -> None:
    before, after = chain(60, 1, ends_in_zero=True), chain(60, 2, ends_in_zero=True)
    found = verify(before, after, budget=seconds / 0.75)
    assert checks.gone <= seconds + 1
    assert found.verdict == "not shown"
    (sentence,) = [item for item in found.unseen if "were not reached" in item]
    assert f"within the budget of {seconds / 0.75:g} s; raise --verify-budget" in sentence
    left, total = (int(word) for word in sentence.split(" regions")[0].split(" of "))
    assert left + found.coverage.nodes + sum(len(site.nodes) for site in found.sites) == total


def test_a_budget_that_does_not_last_for_the_regions_leaves_time_for_the_whole(checks: Checks) -> None:
    found = verify(chain(60, 1), chain(60, 2), budget=4)
    assert checks.gone == 3
    assert (found.verdict, found.ran, found.outputs[0].verdict) == ("different", True, "different")


def test_an_alignment_by_misleading_names_is_no_difference_yet(checks: Checks) -> None:
    assert verify(SAME, OTHER_NAMES).equivalent
    needed, checks.gone = checks.gone, 0
    for seconds in range(1, int(needed)):
        checks.gone = 0
        remembered_module.forget()
        found = verify(SAME, OTHER_NAMES, budget=seconds / 0.75)
        assert (found.verdict, checks.gone) == ("not shown", seconds)
        assert any("--verify-budget" in item for item in found.unseen)
        assert not any(site.status == "different" for site in found.sites)


def test_a_region_that_a_plan_knows_is_a_difference_all_the_same(checks: Checks) -> None:
    outputs = "g (float[2, 3] x) => (float[2, 3] s, float[2, 3] y)"
    before = model(f"{outputs} {{ s = Tanh (x)  a = Neg (x)  y = Neg (a) }}", 18)
    after = model(f"{outputs} {{ s = Sin (x)  a = Abs (x)  y = Min (x, a) }}", 18)
    plan = Plan(18, Target(opset=18), (Site("graph", "Tanh#0", "Tanh", "by hand", 0, 0, 1),))
    found = verify_regions(before, after, plan, checker=Checker(clock=Clock(3)))
    assert found.unseen
    assert [site.status for site in found.findings if site.op_type == "Tanh"] == ["different"]
    assert not any(site.status == "different" for site in found.findings if site.op_type != "Tanh")


def test_the_time_ends_between_two_sets_of_inputs_of_one_region(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Checks()
    real: Callable[..., Any] = two_sides_module.judge_case

    def judge_case(*given: Any) -> None:
        gone.gone += 1
        real(*given)

    remembered_module.forget()
    monkeypatch.setattr(two_sides_module, "judge_case", judge_case)
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(monotonic=lambda: gone.gone))
    found = verify(SAME, OTHER_NAMES, budget=4)
    assert gone.gone == 3
    assert found.verdict == "not shown"


def test_the_time_ends_within_the_look_at_one_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Checks()
    real: Callable[..., Any] = seen_module.moved_by

    def moved_by(*given: Any) -> Any:
        gone.gone += 1
        return real(*given)

    remembered_module.forget()
    monkeypatch.setattr(seen_module, "moved_by", moved_by)
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(monotonic=lambda: gone.gone))
    found = verify_regions(SAME, OTHER_NAMES, checker=Checker(clock=Clock(1)))
    assert gone.gone == 1
    assert found.findings == ()


def test_alignments_in_which_regions_overlap_too_much_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites_module, "_SPARE_NODES", 0)
    monkeypatch.setattr(sites_module, "_OVERLAP", 0)
    found = verify(chain(60, 1, ends_in_zero=True), chain(60, 2, ends_in_zero=True))
    assert found.verdict == "not shown"
    assert any(item.startswith("not all ways to align the models were tried") for item in found.unseen)
