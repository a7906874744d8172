"""Writes the smallest part of two models that shows their first difference, to send to the runtime's maintainers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from reducelower.model.graph import nodes_needed, read_by
from reducelower.model.inference.protected import infer_shapes
from reducelower.numerics.tolerance import APART
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.sites import Regions
from reducelower.verification.judging.compare import compare_outputs
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.cut import cut
from reducelower.verification.regions.pairs import Pair, small_models
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import CannotRunError, Source, with_outputs
from reducelower.verification.whole.runs import Run, inner_values, values_of

__all__ = ["FILES", "keep_first", "keep_region"]

FILES = "before.onnx", "after.onnx", "inputs.npz"
"""Both sides, and what they are fed, by name."""


@dataclass(frozen=True)
class _Part:
    """Both sides, and what they are fed."""

    models: tuple[Source, Source]
    feeds: Mapping[str, Any]


def keep_first(
    folder: Path, claim: Claim, sources: tuple[Source, Source], runs: tuple[Run, Run], at: int, clock: Clock
) -> str:
    """Write the part in which a claim fails, and return where; empty if no part shows the difference.

    First the nodes that compute the claimed values are tried, on what the first model gives them, then everything
    before them, on the inputs of the model.

    Args:
        folder: where to write; it is made.
        claim: the values that differ.
        sources: both models.
        runs: the runs of both.
        at: the number of the set of inputs.
        clock: the time left.

    Raises:
        OSError: it cannot be written.
    """
    part = _nodes_alone(claim, sources[0], runs[0], at, clock)
    if part is None or not _shows(part, runs, clock):
        part = _as_far_as(claim, sources, runs[0].cases[at])
        if not _shows(part, runs, clock):
            return ""
    return _written(folder, part)


def keep_region(folder: Path, regions: Regions, checker: Checker) -> str:
    """Write the first region that differs by itself, with values that show it, and return where; empty if none does.

    Raises:
        OSError: it cannot be written.
    """
    differing = {place for item in regions.findings if item.status == "different" for place in item.nodes}
    for claim in regions.alignment.claims if differing else ():
        with suppress(CannotRunError):
            pair = cut(claim)
            feeds = checker.failing(pair) if (pair.site.graph, pair.site.node) in differing else None
            if feeds is not None:
                return _written(folder, _Part(_sides(pair), feeds))
    return ""


def _sides(pair: Pair) -> tuple[Source, Source]:
    before, after = small_models(pair)
    return Source(before), Source(after)


def _nodes_alone(claim: Claim, source: Source, run: Run, at: int, clock: Clock) -> _Part | None:
    try:
        pair = cut(claim)
        names = {item.name for item in pair.inputs}
        values = values_of(
            source.proto, lambda inside: {**run.cases[at], **inner_values(source, run, at, inside, clock)}, names
        )
        return _Part(_sides(pair), {name: values[name] for name in names})
    except (CannotRunError, KeyError):
        return None  # a weight is too large for a small model, or only the second model has a value


def _as_far_as(claim: Claim, sources: tuple[Source, Source], feeds: Mapping[str, Any]) -> _Part:
    left, right = claim.pairs[0]
    return _Part((_ending_with(sources[0], left), _ending_with(sources[1], right)), feeds)


def _ending_with(source: Source, name: str) -> Source:
    """The part of a model that computes one value, with that value as its output."""
    model = with_outputs(source.complete(), [name])
    kept = nodes_needed(model.graph.node, [name])
    needed = {name}.union(*map(read_by, kept))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    holders: Sequence[Any] = (model.graph.input, model.graph.initializer)
    for held in holders:
        for at in [at for at, item in enumerate(held) if item.name not in needed][::-1]:
            del held[at]
    return Source(model)


def _shows(part: _Part, runs: tuple[Run, Run], clock: Clock) -> bool:
    """Whether the two sides give different values, each in the runtime in which the whole ran, of arrays alone."""
    if not all(isinstance(value, np.ndarray) for value in part.feeds.values()):
        return False
    try:
        one, other = (
            _given(model, run.runtime, part.feeds, clock) for model, run in zip(part.models, runs, strict=True)
        )
    except CannotRunError:
        return False
    widen = 1.0 if runs[0].runtime == runs[1].runtime else APART
    names = [str(number) for number in range(len(one))]
    found = compare_outputs(names, one, other, runtime="", widen=widen, by_tensor=True)
    return any(item.verdict == "different" for item in found)


def _given(model: Source, runtime: str, feeds: Mapping[str, Any], clock: Clock) -> Sequence[Any]:
    clock.check()
    taken = {value.name for value in model.proto.graph.input}
    return runtime_named(runtime).load(model).run({name: feeds[name] for name in feeds if name in taken}, clock.left)


def _written(folder: Path, part: _Part) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in zip(FILES, part.models, strict=False):
        onnx.save(infer_shapes(model.proto), folder / name)  # onnx's checker wants the shapes of outputs
    taken = {value.name for model in part.models for value in model.proto.graph.input}
    np.savez(folder / FILES[-1], **{name: value for name, value in part.feeds.items() if name in taken})
    return str(folder)
