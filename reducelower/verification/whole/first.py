"""Names the first place at which two whole models diverge, or one in two runtimes: the value, and what computes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from reducelower.numerics.measure import Array, is_float
from reducelower.numerics.tolerance import APART
from reducelower.verification.judging.compare import compare_outputs
from reducelower.verification.judging.runs import Run
from reducelower.verification.result import Departure
from reducelower.verification.running.source import CannotRunError
from reducelower.verification.whole.borders import inner_values
from reducelower.verification.whole.question import Question, compared_at, differ

__all__ = ["error_of", "first_difference"]


def first_difference(question: Question, left: Run, right: Run) -> Departure | None:
    """The first value of the source, in the order of its nodes, that the other model computes otherwise.

    It is looked for on the first set of inputs on which an output differs, among the values that have a counterpart; in
    one runtime, among those that are not the same by construction. None where no such value is off by more than two
    runtimes may be, where the models take no more outputs, or where no time is left.
    """
    if question.regions is None:
        return None
    level = question.regions.alignment.levels[0]
    pairs = [pair for claim in question.regions.alignment.claims if claim.level is level for pair in claim.pairs]
    if left.runtime != right.runtime:
        same = {number: name for name, number in level.right_numbers.items() if name in level.right.positions}
        pairs += [(name, same[number]) for name, number in level.left_numbers.items() if number in same]
    pairs = sorted((pair for pair in pairs if pair[0] in level.left.positions), key=lambda pair: _at(level, pair))
    cases = range(min(len(left.results), len(right.results)))
    at = next((at for at in cases if differ(compared_at(question, left, right, at))), None)
    if at is None or not pairs:
        return None
    try:
        before = inner_values(question, question.before, left, at, [name for name, _ in pairs])
        after = inner_values(question, question.after, right, at, [name for _, name in pairs])
    except CannotRunError:
        return None
    names = [name for name, _ in pairs]
    found = compare_outputs(names, before, after, runtime="", widen=APART, by_tensor=True)
    wrong = {item.name: item.reason for item in found if item.verdict == "different"}
    name = next((name for name in names if name in wrong), None)
    if name is None:
        return None
    position = level.left.positions[name]
    node = level.left.holder.node[position]
    reason = error_of(before[names.index(name)], after[names.index(name)]) or wrong[name]
    return Departure(node.name or f"{node.op_type}#{position}", node.op_type, position, name, reason)


def _at(level: Any, pair: tuple[str, str]) -> int:
    position: int = level.left.positions[pair[0]]
    return position


def error_of(before: Any, after: Any) -> str:
    """The largest error of one tensor and where it is, in a few words; empty where there is no such number."""
    if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)) or before.shape != after.shape:
        return ""
    if before.dtype != after.dtype or not before.size or not (is_float(before) or before.dtype.kind in "iu"):
        return ""
    with np.errstate(all="ignore"):
        errors: Array = np.abs(before.astype(np.float64) - after.astype(np.float64))
    if not np.isfinite(errors).all():
        return ""
    place = [int(step) for step in np.unravel_index(int(errors.argmax()), errors.shape)]
    return f"{float(errors.max()):.3g} at {place}"
