"""What one run learned serves the next one of its kind, and changes nothing of what it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reducelower
from reducelower import Target
from reducelower.legalization import memo as memory
from reducelower.legalization import run
from reducelower.legalization.node_rewriter import NodeRewriter
from tests.models import model
from tests.watching import calls_of
from tools.memo_graphs import converted

_TEXT = """(float[2,3] first, float[2,3] second) => (float[2,1] y, float[2,1] z)
    <int64[1] a = {1}, int64[1] b = {-1}> { n = Neg (first)  y = ReduceMax (n, a)  z = ReduceLogSumExp (second, b) }"""

_RENAMED = _TEXT.replace("first", "data").replace("Neg (data)", "Abs (data)")


def worked_out(work: Callable[[], object]) -> set[str]:
    """The operators of the nodes that were worked out."""
    with calls_of(NodeRewriter.legalize) as calls:
        work()
    return {call["node"].op_type for _, call in calls}


def test_like_nodes_of_the_next_model_are_not_worked_out_again() -> None:
    assert worked_out(lambda: reducelower.convert_version(model(_TEXT), 13))
    data = model(_RENAMED).SerializeToString()
    assert not worked_out(lambda: converted(data, Target(13), memo=True))
    found = converted(data, Target(13), memo=True)
    assert found == converted(data, Target(13), memo=False)


@pytest.mark.parametrize(
    "settings",
    [
        {"target": Target(12)},
        {"target": Target(13, without=frozenset({"ReduceLogSumExp"}))},
        {"target": Target(13), "rules": "spec"},
        {"target": Target(13), "rules": str(Path(reducelower.__file__).parents[1] / "rules" / "stable")},
        {"target": Target(13), "element_types": {"first": "float"}},
        {"target": Target(13), "ranks": {"first": 2}},
        {"target": Target(13), "validate": False},
        {"target": Target(13, runtime=reducelower.load_runtime("onnxruntime"))},
    ],
    ids=lambda settings: ", ".join(settings if len(settings) > 1 else map(str, settings.values()))[:60],
)
def test_runs_of_another_kind_start_afresh(settings: dict[str, Any]) -> None:
    reducelower.convert_version(model(_TEXT), 13)
    assert "ReduceMax" in worked_out(lambda: reducelower.legalize(model(_TEXT), **settings))


def test_a_run_within_a_run_has_a_memory_of_its_own() -> None:
    with memory.memory_for("kind") as outer:
        outer.outcomes = 1
        with memory.memory_for("kind") as inner:
            assert inner is not outer
    with memory.memory_for("kind") as later:
        assert later is outer


@pytest.mark.parametrize(("outcomes", "is_kept"), [(2000, True), (2001, False)])
def test_what_has_grown_large_is_dropped(outcomes: int, is_kept: bool) -> None:
    with memory.memory_for("kind") as grown:
        grown.outcomes = outcomes
    with memory.memory_for("kind") as later:
        assert (later is grown) == is_kept


def test_only_the_kinds_of_late_are_kept() -> None:
    for opset in (17, 16, 15, 14, 13, 12):
        reducelower.convert_version(model(_TEXT), opset)
    assert not worked_out(lambda: reducelower.convert_version(model(_TEXT), 13))
    assert worked_out(lambda: reducelower.convert_version(model(_TEXT), 17))


@pytest.mark.parametrize("memo", [True, False])
def test_a_custom_operator_leaves_types_open_in_every_model(memo: bool) -> None:
    text = "(float[2] x) => (float[2] z) { y = custom.Op (x)  r = Relu (y)  z = custom.Op (r) }"
    data = model(text, 14, imports='"custom": 1').SerializeToString()
    said = [converted(data, Target(13), memo=memo) for _ in range(2)]
    assert said[0] == said[1]
    assert "element type of 'y' is not known" in str(said[0])


def test_what_is_in_doubt_is_looked_into_in_every_model() -> None:
    """Subgraphs that a rewrite writes read values around it, which may be of any type."""
    text = "(float[N,M] x, int64[2] s) => (float[A,B] y) { z = custom.Op (x)  y = Reshape <allowzero = 1> (z, s) }"
    given = model(text, 18, imports='"custom": 1')
    for is_first in (True, False):
        with calls_of(NodeRewriter.legalize, run.new_objection) as calls:
            reducelower.convert_version(given, 13)
        assert {name for name, _ in calls} == ({"legalize", "new_objection"} if is_first else {"new_objection"})
