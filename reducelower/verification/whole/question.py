"""Two whole models and how to compare them: what each output gave, and second looks at those that differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from onnx import ModelProto

from reducelower.model.graph import all_nodes, read_by, walk
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, identical
from reducelower.numerics.tolerance import APART, Tolerance
from reducelower.verification.checking.sites import Regions
from reducelower.verification.feeding.limits import with_called
from reducelower.verification.findings import OutputComparison
from reducelower.verification.judging.compare import compare_outputs, is_slight, tensors, withdrawn, worst_of
from reducelower.verification.operators import BY_PROBABILITY, RANDOM
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.conditions import CPU, conditions
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source
from reducelower.verification.whole.runs import Request, Run, run_result

__all__ = [
    "Question",
    "as_regions",
    "compared",
    "compared_at",
    "differ",
    "far_apart",
    "in_evaluator",
    "random_outputs",
    "where_run",
    "without_slight",
]


@dataclass(frozen=True)
class Question:
    """The two models and how to compare them, in one runtime; where the part that shows a difference is to be kept."""

    before: Source
    after: Source
    runtime: str
    request: Request
    expected: Sequence[Any]
    tolerances: Mapping[str, Tolerance] | None
    clock: Clock
    regions: Regions | None
    keep: Path | None = None
    notes: list[str] = field(default_factory=list)
    departs: list[str] = field(default_factory=list)
    departed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def is_of_one(self) -> bool:
        """Whether it is one model, in two runtimes."""
        return self.before is self.after

    @property
    def holds(self) -> bool:
        """Whether every region in which the models differ holds by itself."""
        return self.regions is not None and self.regions.hold

    @property
    def is_open(self) -> bool:
        """Whether some regions were not run, and nothing speaks against the others."""
        return self.regions is not None and not self.holds and all(item.ok for item in self.regions.findings)

    @property
    def is_cut_short(self) -> bool:
        """Whether rewrites of a plan were not reached for lack of time, and nothing speaks against the others."""
        regions = self.regions
        if regions is None or not (regions.unseen and self.is_open):
            return False
        return any(claim.site is not None for claim in regions.alignment.claims)

    @property
    def output_names(self) -> list[str]:
        """The outputs of the source, in graph order."""
        return [value.name for value in self.before.proto.graph.output]


def differ(outputs: Sequence[OutputComparison]) -> bool:
    """Whether an output is different."""
    return any(item.verdict == "different" for item in outputs)


def where_run(left: Run, right: Run) -> str:
    """The runtimes of both sides, with the execution provider of onnxruntime unless it is the CPU's."""
    provider = conditions().provider
    on = "" if provider == CPU else f" on {provider}"
    names = [run.runtime + (on if run.runtime == "onnxruntime" else "") for run in (left, right)]
    return " / ".join(dict.fromkeys(names))


def in_evaluator(question: Question, model: Source, run: Run) -> Run | None:
    """A model in the reference evaluator, on the inputs of a run; None where that is no evidence or does not run it."""
    if wrong_in_reference(model.proto):
        return None
    try:
        return run_result(model, ("reference",), run, question.clock, [])
    except CannotRunError:
        return None


def compared(question: Question, left: Run, right: Run) -> list[OutputComparison]:
    """The worst comparison of each output over all sets of inputs that both sides were run on."""
    return worst_of(
        item
        for at in range(min(len(left.results), len(right.results)))
        for item in compared_at(question, left, right, at)
    )


def compared_at(question: Question, left: Run, right: Run, at: int) -> list[OutputComparison]:
    """The comparison of each output on one set of inputs."""
    return compare_outputs(
        question.output_names,
        left.results[at],
        right.results[at],
        runtime=where_run(left, right),
        tolerances=question.tolerances,
        widen=1.0 if left.runtime == right.runtime else APART,
        by_tensor=question.is_of_one,
    )


def far_apart(
    question: Question,
    left: Run,
    right: Run,
    is_near: Callable[[Array, Array], bool] = is_slight,
) -> set[str]:
    """The outputs, or parts of them, that differ on one of the sets of inputs by more than what is near."""
    found: set[str] = set()
    for before, after in zip(left.results, right.results, strict=False):
        for name, one, other in zip(question.output_names, before, after, strict=True):
            there = dict(tensors(name, other))
            for part, value in tensors(name, one):
                seen = there.get(part)
                if value is not None and (seen is None or not (identical(value, seen) or is_near(value, seen))):
                    found.add(part)
    return found


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
