"""The first value in which two models differ, and the smallest part of both that shows it, written to a folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from reducelower.model.graph import node_label
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
from reducelower.verification.running.source import RunError, Source
from reducelower.verification.whole.comparison import Comparison, differ

__all__ = ["keep_region", "note_first"]

_FILES = "before.onnx", "after.onnx", "inputs.npz"
"""Both sides, and what they are fed, by name."""


def note_first(comparison: Comparison, keep: Path | None) -> None:
    """Note the first value of the source, in the order of its nodes, that the other model computes differently.

    It is looked for on the first inputs on which an output differs, among the values that have a counterpart; in one
    runtime, among those that are not the same by construction. There is none if no such value differs by more than two
    runtimes may, if the models take no more outputs, or if no time is left. The part that shows it is written to the
    folder `keep`.

    Raises:
        OSError: the part cannot be written.
    """
    if comparison.regions is None:
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
    with suppress(RunError):
        here = comparison.left.values(at, paired.keys())
        there = comparison.right.values(at, set(paired.values()))
        before, after = [here[name] for name in paired], [there[name] for name in paired.values()]
        compared = compare_outputs(list(paired), before, after, runtime="", widen=APART, by_tensor=True)
        wrong = {item.name: item.reason for item in compared if item.verdict == "different"}
        name = next((name for name in paired if name in wrong), None)
        if name is None:
            return
        node = level.left.holder.node[positions[name]]
        named = node_label(node, positions[name])
        comparison.first = Departure(named, node.op_type, positions[name], name, wrong[name])
        if keep is not None:
            claim = next((claim for claim in claims if (name, paired[name]) in claim.pairs), None)
            pair = cut(claim or Claim(level, [(name, paired[name])]))
            inputs = {item.name for item in pair.inputs}
            feeds = {name: value for name, value in comparison.left.values(at, inputs).items() if name in inputs}
            if feeds.keys() == inputs and _shows(comparison, pair, feeds):
                comparison.kept = _written(keep, pair, feeds)


def keep_region(folder: Path, regions: Regions, checker: Checker) -> str:
    """Write the first region that differs by itself, with values that show it, and return where; empty if none does.

    Raises:
        OSError: it cannot be written.
    """
    differing = {place for item in regions.findings if item.status == "different" for place in item.nodes}
    for claim in regions.alignment.claims if differing else ():
        with suppress(RunError):
            pair = cut(claim)
            feeds = checker.failing(pair) if (pair.site.graph, pair.site.node) in differing else None
            if feeds is not None:
                return _written(folder, pair, feeds)
    return ""


def _shows(comparison: Comparison, pair: Pair, feeds: Mapping[str, Any]) -> bool:
    """Whether two sides give different values, each in the runtime in which the whole ran, of arrays alone."""
    if not all(isinstance(value, np.ndarray) for value in feeds.values()):
        return False
    results = []
    for model, run in zip(small_models(pair), (comparison.left, comparison.right), strict=True):
        results.append(runtime_named(run.runtime).load(Source(model)).run(feeds))
    widen = 1.0 if comparison.are_together else APART
    return differ(compare_outputs(pair.outputs, *results, runtime="", widen=widen, by_tensor=True))


def _written(folder: Path, pair: Pair, feeds: Mapping[str, Any]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in zip(_FILES, small_models(pair), strict=False):
        onnx.save(infer_shapes(model), folder / name)  # onnx's checker wants the shapes of outputs
    np.savez(folder / _FILES[-1], **feeds)
    return str(folder)
