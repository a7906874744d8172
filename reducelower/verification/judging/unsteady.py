"""The source of a region with what it computes inside moved in the last places, otherwise each time it is run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from onnx import ModelProto

from reducelower.model.graph import subgraphs, walk
from reducelower.types import Inference
from reducelower.verification.feeding.limits import becoming
from reducelower.verification.judging.conditioning import DRAWS, Move, disturbed_inside, widened_all
from reducelower.verification.operators import column
from reducelower.verification.regions.places import Place
from reducelower.verification.running.runtimes import RUNTIMES, Session, runtime_named, try_load, try_run
from reducelower.verification.running.source import Source
from reducelower.verification.running.wider import with_bodies

__all__ = ["Unsteady", "inner_values"]


def inner_values(model: ModelProto, known: Collection[str] = ()) -> list[tuple[Place, str]]:
    """What the graphs of a model compute, except what becomes a size or a count, and values that are known.

    Nor constants: a power of three that is moved has no value for what is negative.
    """
    sizes = becoming(list(walk(model.graph.node)), column("where"))
    apart = {*sizes, *known}
    places = [Place(model, model.graph, Inference(lambda: model))]
    for place in places:  # with those inside, which are added on the way
        nodes = enumerate(place.holder.node)
        places += [place.inside(graph, at, number) for at, node in nodes for number, _, graph in subgraphs(node)]
    return [
        (place, name) for place in places for name in place.positions if name not in apart and not place.is_fixed(name)
    ]


@dataclass
class Unsteady:
    """A source whose values inside move, loaded when first asked; of operators that are functions, their bodies."""

    model: ModelProto
    runtime: str

    @cached_property
    def _session(self) -> Session | None:
        if self.runtime not in RUNTIMES:
            return None
        model = with_bodies(self.model) or self.model
        moving = disturbed_inside(model, inner_values(model))
        return None if moving is None else try_load(runtime_named(self.runtime), Source(moving))

    def moves(self, feeds: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Move]:
        """How far each element of each result moves, by the number of the result; empty where that is not available."""
        found: dict[str, Move] = {}
        for _ in range(DRAWS):
            moved = try_run(self._session, feeds)
            if moved is None:
                break
            widened_all(found, results, moved)
        return found
