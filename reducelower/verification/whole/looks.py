"""Second looks at whole models: what a region was asked to lose, other inputs, and what two runtimes differ in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reducelower.model.graph import all_nodes
from reducelower.numerics.measure import identical, is_float
from reducelower.verification.checking.sites import Regions
from reducelower.verification.feeding.limits import open_to_special
from reducelower.verification.inputs.made import varied
from reducelower.verification.judging.compare import tensors, withdrawn
from reducelower.verification.judging.doubts import is_slight
from reducelower.verification.judging.runs import Run, run_result
from reducelower.verification.judging.witness import Witness
from reducelower.verification.result import OutputComparison
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.source import CannotRunError, OutOfTimeError
from reducelower.verification.whole.borders import at_borders
from reducelower.verification.whole.question import Question, compared, differ

__all__ = ["as_regions", "in_reference", "refuses", "searched", "without_slight"]


def as_regions(outputs: list[OutputComparison], regions: Regions | None) -> list[OutputComparison]:
    """Outputs of which some show what a region was asked to lose, or what one has right and the source overflows in."""
    sites = () if regions is None else regions.findings
    chosen = any(site.status == "loses range" and site.is_chosen for site in sites)
    improved = any(site.status == "improved" for site in sites)
    found = []
    for item in outputs:
        if chosen and item.loses_range:
            item = replace(item, verdict="equal", reason=f"loses range: {item.reason}")
        elif improved and item.gains_range:
            item = replace(item, verdict="equal", reason=f"right where the source is not: {item.reason}")
        found.append(item)
    return found


def in_reference(question: Question, left: Run, reason: str) -> Run | None:
    """The converted model in the reference evaluator, for a runtime that fails on it though every region holds."""
    if wrong_in_reference(question.after.proto):
        return None
    try:
        found = run_result(question.after, ("reference",), left, question.clock, [])
    except CannotRunError:
        return None
    question.departs.extend(question.output_names)
    question.departed.append(f"the runtime fails on the converted model, which onnx.reference runs: {reason}")
    return found


def refuses(question: Question, left: Run) -> bool:
    """Whether the reference evaluator finds the inputs wrong on which onnxruntime ran the source, in all sets."""
    witness = Witness(question.before.proto, question.after.proto, left.runtime, left.runtime)
    return all(map(witness.refuses, left.cases))


def searched(question: Question, left: Run, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Look for inputs on which a region shows that differs by itself; both runs then end with the first of them."""
    accepted = {value.name for value in question.after.proto.graph.input} & left.cases[0].keys()
    for feeds in varied(left.cases[0], question.request.given, question.request.seed):
        try:
            question.clock.check()
            before = left.session.run(feeds, question.clock.left)
            after = right.session.run({name: feeds[name] for name in accepted}, question.clock.left)
        except OutOfTimeError:
            break
        except CannotRunError:
            continue
        found = replace(left, cases=[feeds], results=[before]), replace(right, cases=[feeds], results=[after])
        if differ(compared(question, *found)) and differ(at_borders(question, *found, compared(question, *found))):
            for run, results in ((left, before), (right, after)):
                run.cases, run.results = [*run.cases[: len(run.results)], feeds], [*run.results, results]
            return compared(question, left, right)
    return outputs


def without_slight(
    question: Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Withdraw what rounding may explain where parts were not run, or what two runtimes differ in."""
    is_open = bool(open_to_special(all_nodes(question.before.proto)))
    same: defaultdict[str, bool] = defaultdict(lambda: True)
    for feeds, before, after in zip(left.cases, left.results, right.results, strict=False):
        if is_open and any(_is_special(value) for value in feeds.values()):
            continue
        for name, one, other in zip(question.output_names, before, after, strict=True):
            there = dict(tensors(name, other))
            for part, value in tensors(name, one):
                seen = there.get(part)
                same[part] &= value is None or (seen is not None and (identical(value, seen) or is_slight(value, seen)))
    reason = f"{left.runtime} and {right.runtime} may differ as much"
    if left.runtime == right.runtime:
        reason = "rounding may explain as much, in parts that were not run"
    return withdrawn(outputs, reason, lambda item: same[item.name], with_difference=True)


def _is_special(value: Any) -> bool:
    return isinstance(value, np.ndarray) and is_float(value) and not np.isfinite(value.astype(np.float64)).all()
