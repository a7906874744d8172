"""A rewrite that held is not run again in the same process, and nothing else is taken for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reducelower.verification import Tolerance, verify_regions
from reducelower.verification.checking import cache
from reducelower.verification.checking.tally import Tally
from reducelower.verification.running.conditions import under
from tests.models import model

from .clocks import Looked
from .planned import Rewrite, planned, rewrite


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    cache.forget()
    yield
    cache.forget()


def is_run(given: Rewrite, **options: Any) -> bool:
    """Whether a check looks at the clock more often than for cutting the region."""
    clock = Looked(None)
    with under(clock=clock, **options):
        verify_regions(given.before, given.after, given.plan)
    return clock.gone > 1


def to_input(op_type: str = "ReduceSum", said: str = "axes = [1]", after: str = "", **options: Any) -> Rewrite:
    settings = {"opsets": (12, 18), "constants": ("", "int64[1] axes = {1}")} | options
    return rewrite(f"y = {op_type} <{said}> (x)", after or f"y = {op_type} (x, axes)", **settings)


def renamed() -> Rewrite:
    """The same rewrite in a model in which everything is called something else."""
    given = to_input()
    for made in (given.before, given.after):
        node = made.graph.node[0]
        node.name, node.input[0], node.output[0] = "reduction", "data", "total"
        made.graph.input[0].name, made.graph.output[0].name = "data", "total"
    given.after.graph.node[0].input[1] = given.after.graph.initializer[0].name = "over"
    return replace(given, plan=replace(given.plan, sites=(replace(given.plan.sites[0], node="reduction"),)))


def test_the_same_rewrite_of_another_model_is_not_run_again() -> None:
    first = to_input().finding()
    assert (first.status, first.cases > 8) == ("equal", True)
    assert not is_run(to_input())
    assert not is_run(renamed())
    assert to_input().finding() == first
    assert renamed().finding() == replace(first, nodes=(("graph", "reduction"),))


def at_ir(version: int) -> Rewrite:
    given = to_input()
    given.after.ir_version = version
    return given


def of_sizes(*sizes: int) -> Rewrite:
    given = to_input()
    for dim, size in zip(given.before.graph.input[0].type.tensor_type.shape.dim, sizes, strict=True):
        dim.dim_value = size
    return given


ANOTHER = {
    "operator": to_input("ReduceMax"),
    "replacement": to_input(after="a = Neg (x) b = Neg (a) y = ReduceSum (b, axes)"),
    "constant": to_input(constants=("", "int64[1] axes = {-1}")),
    "opset": to_input(opsets=(12, 21)),
    "element type": to_input(kind="double"),
    "rank": to_input(rank=3),
    "declared sizes": of_sizes(3, 4),
    "IR version": at_ir(8),
}


@pytest.mark.parametrize("what", ANOTHER)
def test_another_rewrite_is_run(what: str) -> None:
    assert is_run(to_input())
    assert is_run(ANOTHER[what])


@pytest.mark.parametrize("options", [{"seed": 1}, {"tolerances": (("float", Tolerance(ulp=1)),)}], ids=str)
def test_a_check_of_another_kind_is_run(options: dict[str, Any]) -> None:
    assert is_run(to_input())
    assert is_run(to_input(), **options)


def test_what_was_assumed_of_the_inputs_of_another_model_is_not_told() -> None:
    def noted(name: str) -> tuple[str, ...]:
        given = rewrite(
            f"y = Gather (x, {name})", f"t = Transpose (x)  y = Gather <axis = 1> (t, {name})", extra=f", int64 {name}"
        )
        return given.finding().notes

    assert [text for text in noted("place") if "'place'" in text]
    assert not [text for text in noted("row") if "'place'" in text]


def test_a_fault_is_found_beside_what_is_remembered() -> None:
    right = "y = ReduceSum <axes = [1]> (x)"
    assert rewrite(right, right, opsets=(12, 12)).finding().ok
    wrong = rewrite(right, "y = ReduceSum <axes = [0]> (x)", opsets=(12, 12))
    for _ in range(2):
        assert wrong.finding().status == "different"
        assert is_run(wrong)  # what is wrong is told with the inputs that show it, of each model


def by_hand(before: str, after: str, *, opset: int = 18, **options: Any) -> str:
    """The status of a node of the graph before, in place of which all others after stand."""
    return planned(*(model(text, opset, 10) for text in (before, after)), **options).finding().status


@pytest.mark.opset(23)
def test_constants_of_types_that_numpy_keeps_alike() -> None:
    graph = "g (float[N] x) => ({0}[N] y) <float s = {{1}}, {0} {1} = {{0}}> {{ y = QuantizeLinear (x, s, {1}) }}"
    found = [
        by_hand(graph.format(kind, "before"), graph.format("int4", "after"), opset=23)
        for kind in ("int4", "uint4", "float8e4m3fn", "float8e5m2fnuz")
    ]
    assert found == ["equal", "different", "different", "different"]


def branch(computing: str) -> str:
    """A node with two graphs inside, which compute the same."""
    then_branch = f"t () => (float[N] r) {{ r = {computing} }}"
    else_branch = f"e () => (float[N] q) {{ q = {computing} }}"
    return f"y = If (c) <then_branch = {then_branch}, else_branch = {else_branch}>"


def test_names_that_graphs_inside_read_count() -> None:
    """What is constant and what is fed change places; the bytes of the graphs inside stay the same."""

    def status(constant: str, fed: str, replacement: str) -> str:
        head = f"g (bool c, float[N] {fed}) => (float[N] y) <float {constant} = {{3}}>"
        return by_hand(f"{head} {{ {branch('Sub (a, b)')} }}", f"{head} {{ {replacement} }}")

    assert status("a", "b", "y = Sub (a, b)") == "equal"
    assert status("b", "a", "y = Sub (b, a)") == "different"


def test_names_that_a_replacement_gives_to_graphs_inside_count() -> None:
    head = "g (bool c, float[N] x) => (float[N] y)"

    def status(first: str, second: str) -> str:
        replacement = f"{first} = Neg (x) {second} = Abs (x) {branch('Identity (p)')}"
        return by_hand(f"{head} {{ {branch('Neg (x)')} }}", f"{head} {{ {replacement} }}", count=3)

    assert status("p", "o") == "equal"
    assert status("o", "p") == "different"


def test_calls_of_functions_are_not_remembered() -> None:
    """The body of a function is no part of the node that calls it."""
    graph = "g (float[N, M] x) => (float[1, 1] y) {{ y = {} (x) }}"
    before = model(graph.format("ReduceSum"), ir_version=10)
    for operator, status in (("ReduceSum", "equal"), ("ReduceMax", "different")):
        body = f'<domain: "local", opset_import: ["": 18]> total (a) => (b) {{ b = {operator} (a) }}'
        assert planned(before, model(graph.format("local.total"), 18, 10, body)).finding().status == status


def test_nodes_in_functions_are_not_remembered() -> None:
    """What their attributes are is said by the calls."""

    def status(noop_with_empty_axes: int) -> str:
        """Of a replacement that leaves the attribute out."""
        call = f"y = local.total <noop_with_empty_axes = {noop_with_empty_axes}> (x)"
        head = '<domain: "local", opset_import: ["": 18]> total <noop_with_empty_axes> (v) => (w)'
        given = "<noop_with_empty_axes: int = @noop_with_empty_axes>"
        before, after = (
            model(f"g (float[N, M] x) => (float[K, L] y) {{ {call} }}", 18, 10, f"{head} {{ w = ReduceSum {how} (v) }}")
            for how in (given, "")
        )
        return planned(before, after).finding().status

    assert status(0) == "equal"
    assert status(1) == "different"


def test_what_is_remembered_has_a_bound() -> None:
    cache._held.update(dict.fromkeys(range(cache._REMEMBERED), Tally()))
    assert to_input("ReduceMax").finding().ok
    assert len(cache._held) <= cache._REMEMBERED
