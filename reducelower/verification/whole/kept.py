"""The first value in which two models differ, and the smallest part of both that shows it, written to a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from reducelower.model.graph import node_label, nodes_needed, read_by
from reducelower.model.protected import infer_shapes
from reducelower.numerics.tolerance import APART
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.sites import Regions
from reducelower.verification.judging.compare import compare_outputs
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.cut import cut
from reducelower.verification.regions.pairs import Pair, small_models
from reducelower.verification.result import Departure
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import CannotRunError, Source, with_outputs
from reducelower.verification.whole.comparison import Comparison, differ

__all__ = ["keep_region", "note_first"]

_FILES = "before.onnx", "after.onnx", "inputs.npz"
"""Both sides, and what they are fed, by name."""

_Sides = tuple[Source, Source]


def note_first(comparison: Comparison, keep: Path | None) -> None:
    """Note the first value of the source, in the order of its nodes, that the other model computes differently.

    It is looked for on the first inputs on which an output differs, among the values that have a counterpart; in one
    runtime, among those that are not the same by construction. There is none if no such value differs by more than two
    runtimes may, if the models take no more outputs, or if no time is left. The part that shows it is written to the
    folder `keep`.

    Raises:
        OSError: the part cannot be written.
    """
    if comparison.regions is None or comparison.account.first is not None:
        return
    level = comparison.regions.alignment.levels[0]
    claims = [claim for claim in comparison.regions.alignment.claims if claim.level is level]
    pairs = [pair for claim in claims for pair in claim.pairs]
    if not comparison.are_together:
        same = {number: name for name, number in level.right.numbers.items() if name in level.right.positions}
        pairs += [(name, same[number]) for name, number in level.left.numbers.items() if number in same]
    positions = level.left.positions
    paired = dict(sorted((pair for pair in pairs if pair[0] in positions), key=lambda pair: positions[pair[0]]))
    at = next(iter(comparison.differing_cases()), None)
    if at is None or not paired:
        return
    clock = comparison.clock
    with suppress(CannotRunError):
        here = comparison.left.values(at, paired.keys(), clock)
        there = comparison.right.values(at, set(paired.values()), clock)
        before, after = [here[name] for name in paired], [there[name] for name in paired.values()]
        compared = compare_outputs(list(paired), before, after, runtime="", widen=APART, by_tensor=True)
        wrong = {item.name: item.reason for item in compared if item.verdict == "different"}
        name = next((name for name in paired if name in wrong), None)
        if name is None:
            return
        node = level.left.holder.node[positions[name]]
        named = node_label(node, positions[name])
        comparison.account.first = Departure(named, node.op_type, positions[name], name, wrong[name])
        if keep is not None:
            pair = name, paired[name]
            claim = next((claim for claim in claims if pair in claim.pairs), Claim(level, [pair]))
            shown = (part for part in _parts(comparison, claim, at) if _shows(comparison, *part))
            comparison.account.kept = next((_written(keep, *part) for part in shown), "")


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
                return _written(folder, _sides(pair), feeds)
    return ""


def _sides(pair: Pair) -> _Sides:
    before, after = small_models(pair)
    return Source(before), Source(after)


def _parts(comparison: Comparison, claim: Claim, at: int) -> Iterator[tuple[_Sides, Mapping[str, Any]]]:
    """Parts that may show how claimed values differ on a set of inputs: both sides, and what they are fed.

    First the nodes that compute the values, on what the source gives them, then everything before them.
    """
    with suppress(CannotRunError, KeyError):  # a weight is too large, or only the second model has a value
        pair = cut(claim)
        values = comparison.left.values(at, {item.name for item in pair.inputs}, comparison.clock)
        yield _sides(pair), {item.name: values[item.name] for item in pair.inputs}
    left, right = claim.pairs[0]
    yield (_ending_with(comparison.before, left), _ending_with(comparison.after, right)), comparison.left.cases[at]


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


def _shows(comparison: Comparison, sides: _Sides, feeds: Mapping[str, Any]) -> bool:
    """Whether two sides give different values, each in the runtime in which the whole ran, of arrays alone."""
    if not all(isinstance(value, np.ndarray) for value in feeds.values()):
        return False
    results = []
    for side, run in zip(sides, (comparison.left, comparison.right), strict=True):
        taken = {value.name for value in side.proto.graph.input}
        given = {name: value for name, value in feeds.items() if name in taken}
        try:
            comparison.clock.check()
            results.append(runtime_named(run.runtime).load(side).run(given, comparison.clock.left))
        except CannotRunError:
            return False
    names = [str(number) for number in range(len(results[0]))]
    widen = 1.0 if comparison.are_together else APART
    return differ(compare_outputs(names, *results, runtime="", widen=widen, by_tensor=True))


def _written(folder: Path, sides: _Sides, feeds: Mapping[str, Any]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in zip(_FILES, sides, strict=False):
        onnx.save(infer_shapes(model.proto), folder / name)  # onnx's checker wants the shapes of outputs
    taken = {value.name for model in sides for value in model.proto.graph.input}
    np.savez(folder / _FILES[-1], **{name: value for name, value in feeds.items() if name in taken})
    return str(folder)
