"""The cases of a seed, by number. Each has its own generator, so that any can be made again alone."""

from __future__ import annotations

from functools import cache

import numpy as np

from reducelower.model.schemas import all_operators, is_deprecated, latest_opset, versions
from tools.fuzz.case import Action, Case
from tools.fuzz.drawing import NotDrawableError
from tools.fuzz.gaps import never_run
from tools.fuzz.nodes import draw_node
from tools.fuzz.places import places_of
from tools.fuzz.placing import place

__all__ = ["KINDS", "generate", "node_case", "operator_versions"]

KINDS = ("nodes", "graphs")
_NEAR = 3
_TRIES = 20


@cache
def operator_versions() -> tuple[tuple[str, int, int], ...]:
    """Every version of every operator, with the first and the last opset version that use it."""
    ranges = []
    for op_type in sorted(set(all_operators()) - set(never_run())):
        since = versions(op_type)
        ends = [*(start - 1 for start in since[1:]), latest_opset()]
        ranges += [
            (op_type, start, end) for start, end in zip(since, ends, strict=True) if not is_deprecated(op_type, start)
        ]
    return tuple(ranges)


def node_case(rng: np.random.Generator, op_type: str, opset: int, name: str, action: Action | None = None) -> Case:
    """A case with one node somewhere in a model.

    Raises:
        NotDrawableError: the draw failed.
    """
    for attempt in range(_TRIES):
        try:
            edge = rng.random() < 0.2 and attempt < _TRIES // 2
            node = draw_node(rng, op_type, opset, edge=edge)
            places = places_of(node)
            where = "main" if rng.random() < 0.5 else places[int(rng.integers(len(places)))]
            model, feeds = place(rng, node, where)
        except NotDrawableError:
            continue
        chosen = action or _action(rng, opset, {op_type}, edge=edge)
        return Case(f"{name}: {op_type} of opset {opset} in {where}, {chosen}", model, feeds, chosen)
    raise NotDrawableError(f"{op_type} of opset {opset}")


def _action(rng: np.random.Generator, opset: int, operators: set[str], *, edge: bool = False) -> Action:
    """Mostly a conversion, near or far; an expansion or raise only if there is something to expand or raise.

    The specification's own bodies are not tested with edge values, which they do not promise to handle.
    """
    reduces = any(name.startswith("Reduce") for name in operators)
    chance = rng.random()
    if reduces and chance < 0.25:
        books = ("stable", "core") if edge else ("spec", "stable", "core")
        return Action("expand", rules=books[int(rng.integers(len(books)))])
    if reduces and chance < 0.35:
        return Action("raise")
    others = [number for number in range(1, latest_opset() + 1) if number != opset]
    near = [number for number in others if abs(number - opset) <= _NEAR]
    chosen = near if rng.random() < (0.3 if len(operators) == 1 else 0.6) else others
    return Action("convert", chosen[int(rng.integers(len(chosen)))])


def generate(kind: str, seed: int, number: int) -> Case:
    """The case with a number.

    Raises:
        NotDrawableError: the draw of that number failed.
    """
    rng = np.random.default_rng([seed, number, KINDS.index(kind)])
    name = f"{kind} {seed}/{number}"
    if kind == "graphs":
        from tools.fuzz.graphs import draw_graph

        opset = int(rng.integers(7, latest_opset() + 1))
        model, feeds, operators = draw_graph(rng, opset)
        action = _action(rng, opset, operators)
        return Case(f"{name}: {len(model.graph.node)} nodes of opset {opset}, {action}", model, feeds, action)
    every = operator_versions()
    op_type, first, last = every[number % len(every)]
    return node_case(rng, op_type, int(rng.integers(first, last + 1)), name)
