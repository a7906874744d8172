"""Second looks at whole models: random operators, what a region was asked to lose, two runtimes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from onnx import ModelProto

from reducelower.model.graph import all_nodes, read_by, walk
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, identical
from reducelower.verification.checking.sites import Regions
from reducelower.verification.feeding.limits import with_called
from reducelower.verification.findings import OutputComparison
from reducelower.verification.judging.compare import tensors, withdrawn
from reducelower.verification.operators import BY_PROBABILITY, RANDOM
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.source import CannotRunError, OutOfTimeError
from reducelower.verification.whole.question import Question, far_apart
from reducelower.verification.whole.runs import Run

__all__ = ["as_regions", "random_outputs", "without_slight"]


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


def without_slight(
    question: Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Withdraw what rounding may explain where parts were not run, or what two runtimes differ in."""
    far = far_apart(question, left, right)
    reason = f"{left.runtime} and {right.runtime} may differ as much"
    if left.runtime == right.runtime:
        reason = "rounding may explain as much, in parts that were not run"
    return withdrawn(outputs, reason, lambda item: item.name not in far, with_difference=True)


def random_outputs(
    model: ModelProto, run: Run, other: Run, outputs: Sequence[OutputComparison], clock: Clock
) -> list[OutputComparison]:
    """Withdraw the comparison of outputs that the source does not reproduce on the same inputs, or elsewhere.

    Each runtime draws random numbers of its own. When the time is over, what was seen until then counts.
    """
    names = [value.name for value in model.graph.output]
    unstable = _drawn(model, BY_PROBABILITY if run.runtime == other.runtime else RANDOM)
    found = sorted({node.op_type for node in all_nodes(model)} & RANDOM)
    # Without a random operator, one set of inputs tells whether threads add up in an order of their own.
    for feeds, first in islice(zip(run.cases, run.results, strict=True), None if found else 1):
        try:
            clock.check()
            second = run.session.run(feeds, clock.left)
        except OutOfTimeError:
            break
        except CannotRunError:
            return list(outputs)
        for name, left, right in zip(names, first, second, strict=False):  # it gives what is watched inside, too
            there = dict(tensors(name, right))
            unstable |= {part for part, value in tensors(name, left) if not _identical(value, there.get(part))}
    if not unstable:
        return list(outputs)
    reason = f"the source gives different values each time it is run ({', '.join(found) or 'it is not deterministic'})"
    return withdrawn(outputs, reason, lambda item: item.name in unstable and item.shape_before == item.shape_after)


def _drawn(model: ModelProto, kinds: Collection[str]) -> set[str]:
    """The values of the main graph that are computed from what some operators draw, in functions too."""
    names: set[str] = set()
    if not any(node.op_type in kinds and node.domain in DEFAULT_DOMAINS for node in all_nodes(model)):
        return names
    for node in model.graph.node:
        inside = with_called([*walk([node])], model)
        draws = any(inner.op_type in kinds and inner.domain in DEFAULT_DOMAINS for inner in inside)
        if draws or not names.isdisjoint(read_by(node)):
            names.update(name for name in node.output if name)
    return names


def _identical(left: Array | None, right: Array | None) -> bool:
    if left is None or right is None:
        return left is right
    return identical(left, right) or (left.dtype == right.dtype == object and left.tolist() == right.tolist())
