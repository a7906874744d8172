"""Two whole models in one runtime: both run on the same inputs, their outputs compared, and one verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from textwrap import shorten
from typing import Any

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.value_info import sizes
from reducelower.numerics.tolerance import APART
from reducelower.verification.checking.sites import Regions
from reducelower.verification.findings import OutputComparison, OutputVerdict
from reducelower.verification.inputs.declared import free_sizes
from reducelower.verification.judging.compare import compare_outputs, worst_of
from reducelower.verification.result import Departure, Verdict, Verification
from reducelower.verification.running.conditions import CPU, conditions
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.runtimes import OnnxRuntime, try_load
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, RunError, Source
from reducelower.verification.whole.runs import Run, SourceRuns, run_result

__all__ = ["Comparison", "differ", "runtimes_for", "verdict_on"]

_LONGEST = 120  # characters of a reason


@dataclass
class Comparison:
    """Two whole models in one runtime, how to compare them, and what came of it.

    Attributes:
        runs: of the source, with the inputs that the caller gives.
        after: the other model; the source itself to compare one model in two runtimes.
        runtime: where `after` runs.
        expected: the outputs that the caller expects; empty if there are none.
        regions: what the regions of the models gave; None if the models cannot be aligned.
        left, right: the runs of both models.
        outputs: the worst comparison of each output over all sets of inputs.
        reasons: why the models did not run, or nothing could be compared; empty if they ran.
        is_different: whether the result does not run where the source does.
        unseen, notes, departs, first, kept: as in a `Verification`.
    """

    runs: SourceRuns
    after: Source
    runtime: str
    expected: Sequence[Any]
    regions: Regions | None
    left: Run = field(init=False)
    right: Run = field(init=False)
    outputs: list[OutputComparison] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    is_different: bool = False
    unseen: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    departs: list[str] = field(default_factory=list)
    first: Departure | None = None
    kept: str = ""

    @property
    def before(self) -> Source:
        """The source."""
        return self.runs.source

    @property
    def has_run(self) -> bool:
        """Whether both models ran."""
        return hasattr(self, "right")

    @property
    def are_together(self) -> bool:
        """Whether both models ran in the same runtime."""
        return self.left.runtime == self.right.runtime

    @property
    def output_names(self) -> list[str]:
        """The outputs of the source, in graph order."""
        return [value.name for value in self.before.proto.graph.output]

    @property
    def ran_in(self) -> str:
        """The runtimes of both sides, with onnxruntime's execution provider unless that is the CPU."""
        provider = conditions().provider
        on = "" if provider == CPU else f" on {provider}"
        names = [run.runtime + (on if run.runtime == "onnxruntime" else "") for run in (self.left, self.right)]
        return " / ".join(dict.fromkeys(names))

    @property
    def absent(self) -> Iterator[str]:
        """For each side that another runtime than the first one runs, a clause that says why."""
        if not self.has_run:
            return
        if self.left.instead:
            yield f"the source ran in {self.left.runtime}: {shorten(self.left.instead, _LONGEST)}"
        if self.right.instead and not self.are_together:
            yield f"the converted model ran in {self.right.runtime}: {shorten(self.right.instead, _LONGEST)}"

    def on(self, at: int) -> list[OutputComparison]:
        """The comparison of each output on one set of inputs."""
        return compare_outputs(
            self.output_names,
            self.left.results[at],
            self.right.results[at],
            runtime=self.ran_in,
            widen=1.0 if self.are_together else APART,
            by_tensor=self.before is self.after,
        )

    @property
    def differing(self) -> list[OutputComparison]:
        """The outputs that are different."""
        return [item for item in self.outputs if item.verdict == "different"]

    def differing_cases(self) -> list[int]:
        """The numbers of the sets of inputs on which an output differs."""
        return [at for at in range(len(self.right.results)) if differ(self.on(at))]

    def settle(
        self,
        verdict: OutputVerdict,
        reason: str = "",
        is_meant: Callable[[OutputComparison], bool] = lambda item: True,
    ) -> None:
        """Count different outputs that `is_meant` selects as equal, or as not compared, for a reason."""
        self.outputs = [
            replace(item, verdict=verdict, reason=f"{reason}: {item.reason}" if reason else item.reason)
            if item.verdict == "different" and is_meant(item)
            else item
            for item in self.outputs
        ]

    def run(self) -> bool:
        """Run both models, in the reference evaluator what onnxruntime cannot run; note why if that does not work."""
        before, after = self.before, self.after
        left_names, right_names = runtimes_for(self.runtime, is_of_one=before is after)
        try:
            left = self.left = self.runs.run(left_names, self.notes)
        except RunError as error:
            failed, advice = next(texts for kind, *texts in _SOURCE_FAILS if isinstance(error, kind))
            if custom := sorted({node.domain for node in all_nodes(before.proto)} - _KNOWN):
                advice = f"no runtime here knows the operators of {custom[0]}, so no inputs help"
            elif isinstance(error, TooLargeError) and not free_sizes(before.proto):
                advice = "raise it"
            self.reasons.append(f"{failed}: {error.reason}")
            self.unseen.append(f"{failed}: {error.reason}; {advice}")
            return False
        try:
            self.right = run_result(after, right_names, left, self.notes)
        except RunError as error:
            is_over = isinstance(error, OutOfTimeError)
            name = "model" if before is after else "converted model"
            failed = f"no time was left for the {name}" if is_over else f"the {name} does not"
            failed = f"not in {self.runtime}" if before is after and not is_over else failed
            self.reasons.append(f"the source runs in {left.runtime}, but {failed}: {error.reason}")
            self.is_different = isinstance(error, CannotRunError) and (
                not error.unsupported or self._alone_fails(right_names, error)
            )
            self.unseen += [] if self.is_different else self.reasons
            return False
        if self.right.runtime == "onnxruntime" and not conditions().clock.over:
            self.notes.extend(_by_default(before, after))
        self.outputs = worst_of(item for at in range(len(self.right.results)) for item in self.on(at))
        return True

    def _alone_fails(self, names: Sequence[str], error: CannotRunError) -> bool:
        """Whether the target runtime does not take the result, but runs the source on the same inputs."""
        if self.runtime in ("onnxruntime", "reference") or isinstance(error, TooLargeError):
            return False
        with suppress(RunError):
            run_result(self.before, names, self.left, [])
            return True
        return False

    def finish(self) -> None:
        """Compare with the outputs that are expected, and note what was not seen."""
        self.outputs += self._against_expected()
        self.unseen += self._unseen()
        if self.outputs and all(item.verdict == "not compared" for item in self.outputs):
            self.reasons.append(f"no output can be compared: {self.outputs[0].reason}")

    def _unseen(self) -> Iterator[str]:
        """What was not compared, and why."""
        for item in self.outputs:
            if item.verdict == "not compared":
                yield f"output {item.name!r} was not compared: {item.reason}"
        are_empty = {value.name for value in self.before.proto.graph.output if 0 in (sizes(value.type) or ())}
        for item in self.outputs:
            if item.verdict == "equal" and not item.tells and item.element_type and item.name not in are_empty:
                yield (
                    f"of output {item.name!r} nothing was compared, since it was empty, NaN or infinite in every run; "
                    "give inputs that tell more with --input, --dim or --test-data"
                )
        if len(self.right.cases) < len(self.left.cases):
            yield f"the budget of {conditions().clock.budget:g} s ended early; raise --verify-budget"

    def _against_expected(self) -> Iterator[OutputComparison]:
        """Both sides, compared with the outputs that came with the inputs."""
        count = len(self.expected)
        for side, run in (("source itself", self.left), ("converted model", self.right)) if count else ():
            names, results = self.output_names[:count], run.results[0][:count]
            against = f"{run.runtime} against the expected one"
            for item in compare_outputs(names, self.expected, results, runtime=against, widen=APART, by_tensor=True):
                is_other = item.verdict == "different"
                yield replace(item, reason=f"the {side} does not give it: {item.reason}") if is_other else item


_KNOWN = DEFAULT_DOMAINS | {"ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc"}
"""The domains of the operators that onnxruntime has."""

# What to say, and what to do, if the source cannot be run for one of these errors.
_SOURCE_FAILS = (
    (OutOfTimeError, "no time was left for the whole models", "raise --verify-budget"),
    (TooLargeError, "the whole models were not run", "raise it, or set smaller sizes with --dim"),
    (
        CannotRunError,
        "the source model could not be run",
        "give inputs that it takes with --input, --dim or --test-data",
    ),
)


def runtimes_for(runtime: str, *, is_of_one: bool) -> tuple[Sequence[str], Sequence[str]]:
    """The runtimes to try for the source and for the result, in order, to compare them in a runtime."""
    if is_of_one:
        return tuple(name for name in ("onnxruntime", "reference") if name != runtime), (runtime,)
    left = ("reference",) if runtime == "reference" else ("onnxruntime", "reference")
    return left, left if runtime == "onnxruntime" else (runtime,)


def verdict_on(comparisons: Sequence[Comparison], regions: Regions | None, notes: Sequence[str] = ()) -> Verification:
    """The verdict on two models, from them as a whole and from their regions if they could be aligned."""
    sites = () if regions is None else regions.findings
    outputs = tuple(worst_of(item for each in comparisons for item in each.outputs))
    of_sites = [f"{site.place}: {site.reason}" for site in sites if site.status == "not run"]
    of_regions = [regions.unseen] if regions is not None and regions.unseen else []
    unseen, reasons = _told(each.unseen for each in comparisons), _told(each.reasons for each in comparisons)
    unseen = _told([unseen, of_regions, of_sites])
    verdict: Verdict = "not shown" if unseen or reasons else "equivalent"
    if any(each.is_different for each in comparisons) or differ(outputs) or not all(site.ok for site in sites):
        verdict = "different"
    ran = [each for each in comparisons if each.has_run]
    cases = Counter[str]()
    for each in ran:
        cases[each.runtime] += len(each.right.cases)
    return Verification(
        verdict,
        not reasons,
        ", ".join(dict.fromkeys(each.ran_in for each in ran)),
        outputs,
        "; ".join(reasons),
        _told([notes, *(each.notes for each in comparisons)]),
        sites,
        max(cases.values(), default=0),
        unseen,
        _told(each.departs for each in comparisons),
        _told(each.absent for each in comparisons),
        first=next((each.first for each in comparisons if each.first is not None), None),
        kept=next((each.kept for each in comparisons if each.kept), ""),
    )


def _told(texts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """All texts in order, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(texts)))


def differ(outputs: Sequence[OutputComparison]) -> bool:
    """Whether an output is different."""
    return any(item.verdict == "different" for item in outputs)


def _by_default(before: Source, after: Source) -> Iterator[str]:
    """A note if onnxruntime cannot load the result with its default optimizations, though it can load the source."""
    session = OnnxRuntime(optimizes=True)
    try:
        session.load(after)
    except CannotRunError as error:
        if try_load(session, before) is not None:
            yield (
                "onnxruntime loads the result only without graph optimizations "
                f"(SessionOptions.graph_optimization_level), and the source with them: {error.reason}"
            )
