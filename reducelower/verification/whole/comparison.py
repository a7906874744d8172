"""Two whole models, run on the same inputs: what each output gave, and why a difference may not count."""

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
from reducelower.verification.findings import OutputComparison
from reducelower.verification.judging.compare import compare_outputs, is_slight, tensors, withdrawn, worst_of
from reducelower.verification.operators import BY_PROBABILITY, RANDOM
from reducelower.verification.result import Departure
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.conditions import CPU, conditions
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source
from reducelower.verification.whole.runs import Request, Run

__all__ = ["Comparison", "as_regions", "differ", "far_apart", "without_random", "without_slight"]


@dataclass
class Comparison:
    """Two whole models in one runtime: how to compare them, and what came of it.

    Attributes:
        before, after: the models; both are the same object to compare one model in two runtimes.
        runtime: where `after` runs.
        request: the inputs that the caller gives.
        expected: the outputs that the caller expects; empty if there are none.
        tolerances: by ONNX element type, replacing the defaults.
        clock: the time left.
        regions: what the regions of the models gave; None if the models cannot be aligned.
        keep: folder for the smallest part that shows a difference; None to keep none.
        left, right: the runs of both models.
        notes: sentences for a reader.
        departs: the outputs in which the runtime diverges from the specification.
        departed: how it diverges, as sentences.
        first: the first value that differs.
        kept: where the part that shows a difference was written; empty if it was not.
    """

    before: Source
    after: Source
    runtime: str
    request: Request
    expected: Sequence[Any]
    tolerances: Mapping[str, Tolerance] | None
    clock: Clock
    regions: Regions | None
    keep: Path | None = None
    left: Run = field(init=False)
    right: Run = field(init=False)
    notes: list[str] = field(default_factory=list)
    departs: list[str] = field(default_factory=list)
    departed: list[str] = field(default_factory=list)
    first: Departure | None = None
    kept: str = ""

    @property
    def is_of_one(self) -> bool:
        """Whether one model is compared in two runtimes."""
        return self.before is self.after

    @property
    def are_together(self) -> bool:
        """Whether both models ran in the same runtime."""
        return self.left.runtime == self.right.runtime

    @property
    def holds(self) -> bool:
        """Whether every region held by itself."""
        return self.regions is not None and self.regions.hold

    @property
    def is_open(self) -> bool:
        """Whether some regions were not run, and no other one differs."""
        return self.regions is not None and not self.holds and all(item.ok for item in self.regions.findings)

    @property
    def is_cut_short(self) -> bool:
        """Whether time ran out before all rewrites of a plan were checked, and no other one differs."""
        regions = self.regions
        if regions is None or not (regions.unseen and self.is_open):
            return False
        return any(claim.site is not None for claim in regions.alignment.claims)

    @property
    def output_names(self) -> list[str]:
        """The outputs of the source, in graph order."""
        return [value.name for value in self.before.proto.graph.output]

    @property
    def runtimes(self) -> str:
        """The runtimes of both sides, with onnxruntime's execution provider unless that is the CPU."""
        provider = conditions().provider
        on = "" if provider == CPU else f" on {provider}"
        names = [run.runtime + (on if run.runtime == "onnxruntime" else "") for run in (self.left, self.right)]
        return " / ".join(dict.fromkeys(names))

    @property
    def cases(self) -> range:
        """The numbers of the sets of inputs that both models ran on."""
        return range(min(len(self.left.results), len(self.right.results)))

    def outputs(self) -> list[OutputComparison]:
        """The worst comparison of each output over all sets of inputs."""
        return worst_of(item for at in self.cases for item in self.outputs_on(at))

    def outputs_on(self, at: int) -> list[OutputComparison]:
        """The comparison of each output on one set of inputs."""
        return compare_outputs(
            self.output_names,
            self.left.results[at],
            self.right.results[at],
            runtime=self.runtimes,
            tolerances=self.tolerances,
            widen=1.0 if self.are_together else APART,
            by_tensor=self.is_of_one,
        )

    def differing_cases(self) -> list[int]:
        """The numbers of the sets of inputs on which an output differs."""
        return [at for at in self.cases if differ(self.outputs_on(at))]

    def far_apart(self, is_near: Callable[[Array, Array], bool] = is_slight) -> set[str]:
        """As the function, for the runs of both models."""
        return far_apart(self.output_names, self.left, self.right, is_near)


def differ(outputs: Sequence[OutputComparison]) -> bool:
    """Whether an output is different."""
    return any(item.verdict == "different" for item in outputs)


def far_apart(
    names: Sequence[str], left: Run, right: Run, is_near: Callable[[Array, Array], bool] = is_slight
) -> set[str]:
    """The outputs, or parts of them, of which two runs give values on some inputs that are not near each other."""
    apart: set[str] = set()
    for before, after in zip(left.results, right.results, strict=False):
        for name, one, other in zip(names, before, after, strict=True):
            there = dict(tensors(name, other))
            for part, value in tensors(name, one):
                counterpart = there.get(part)
                if value is not None and (
                    counterpart is None or not (identical(value, counterpart) or is_near(value, counterpart))
                ):
                    apart.add(part)
    return apart


def as_regions(outputs: list[OutputComparison], regions: Regions | None) -> list[OutputComparison]:
    """Accept outputs that lose or gain range, where a region was asked to lose it or is better than the source."""
    sites = () if regions is None else regions.findings
    chosen = any(site.status == "loses range" and site.is_chosen for site in sites)
    improved = any(site.status == "improved" for site in sites)
    accepted = []
    for item in outputs:
        if chosen and item.loses_range:
            item = replace(item, verdict="equal", reason=f"loses range: {item.reason}")
        elif improved and item.gains_range:
            item = replace(item, verdict="equal", reason=f"right where the source is not: {item.reason}")
        accepted.append(item)
    return accepted


def without_slight(comparison: Comparison, outputs: Sequence[OutputComparison]) -> list[OutputComparison]:
    """Withdraw differences that rounding may explain: in parts that were not run, or between two runtimes."""
    far = comparison.far_apart()
    reason = f"{comparison.left.runtime} and {comparison.right.runtime} may differ as much"
    if comparison.are_together:
        reason = "rounding may explain as much, in parts that were not run"
    return withdrawn(outputs, reason, lambda item: item.name not in far, with_difference=True)


def without_random(comparison: Comparison, outputs: Sequence[OutputComparison]) -> list[OutputComparison]:
    """Withdraw the comparison of outputs that the source does not reproduce: on the same inputs, or in another runtime.

    Each runtime draws random numbers of its own. If the time runs out, what was seen until then counts.
    """
    model, run, clock = comparison.before.proto, comparison.left, comparison.clock
    unstable = _drawn(model, BY_PROBABILITY if comparison.are_together else RANDOM)
    random = sorted({node.op_type for node in all_nodes(model)} & RANDOM)
    # Without a random operator, one set of inputs tells whether threads add up in an order of their own.
    for feeds, first in islice(zip(run.cases, run.results, strict=True), None if random else 1):
        try:
            clock.check()
            second = run.session.run(feeds, clock.left)
        except OutOfTimeError:
            break
        except CannotRunError:
            return list(outputs)
        # The session also gives the inner values that are watched.
        for name, left, right in zip(comparison.output_names, first, second, strict=False):
            there = dict(tensors(name, right))
            unstable |= {part for part, value in tensors(name, left) if not _identical(value, there.get(part))}
    if not unstable:
        return list(outputs)
    reason = f"the source gives different values each time it is run ({', '.join(random) or 'it is not deterministic'})"
    return withdrawn(outputs, reason, lambda item: item.name in unstable and item.shape_before == item.shape_after)


def _drawn(model: ModelProto, kinds: Collection[str]) -> set[str]:
    """The values of the main graph that depend on what operators of these kinds draw."""
    names: set[str] = set()
    if not any(node.op_type in kinds and node.domain in DEFAULT_DOMAINS for node in all_nodes(model)):
        return names
    for node in model.graph.node:
        draws = any(inner.op_type in kinds and inner.domain in DEFAULT_DOMAINS for inner in walk([node]))
        if draws or not names.isdisjoint(read_by(node)):
            names.update(name for name in node.output if name)
    return names


def _identical(left: Array | None, right: Array | None) -> bool:
    if left is None or right is None:
        return left is right
    return identical(left, right) or (left.dtype == right.dtype == object and left.tolist() == right.tolist())
