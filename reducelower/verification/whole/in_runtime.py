"""Two whole models in one runtime: both run on the same inputs, their outputs compared, and one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

from onnx import ModelProto

from reducelower.model.value_info import sizes
from reducelower.numerics.tolerance import APART
from reducelower.verification.findings import OutputComparison
from reducelower.verification.inputs.made import input_specs
from reducelower.verification.inputs.testdata import refused_input, two_sizes
from reducelower.verification.judging.compare import compare_outputs, withdrawn
from reducelower.verification.result import Verdict, Verification
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.reference_gaps import no_evidence
from reducelower.verification.running.runtimes import OnnxRuntime, try_load
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source
from reducelower.verification.whole.borders import at_borders, first_difference
from reducelower.verification.whole.comparison import Comparison, as_regions, differ, without_random, without_slight
from reducelower.verification.whole.runs import Request, Run, inner_values, run_result, run_source

__all__ = ["SourceRuns", "interface_mismatch", "names_of", "verify_in"]


def names_of(runtime: str, *, is_of_one: bool) -> tuple[Sequence[str], Sequence[str]]:
    """The runtimes to try for the source and for the result, in order, to compare them in a runtime."""
    if is_of_one:
        return tuple(name for name in ("onnxruntime", "reference") if name != runtime), (runtime,)
    left = ("reference",) if runtime == "reference" else ("onnxruntime", "reference")
    return left, left if runtime == "onnxruntime" else (runtime,)


class SourceRuns:
    """Runs of the source, each done once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._runs: dict[tuple[Sequence[str], int], tuple[Run | CannotRunError, list[str]]] = {}

    def seen(self, names: Sequence[str], request: Request, clock: Clock, watched: Sequence[str]) -> Mapping[str, Any]:
        """Values of the main graph by name, on the first inputs that the source accepts; empty if it accepts none."""
        outputs = [value.name for value in self._source.proto.graph.output]
        try:
            run = self.run(names, request, clock, [], [name for name in watched if name not in outputs])
        except CannotRunError:
            return {}
        known = {**run.cases[0], **dict(zip(outputs, run.results[0], strict=True)), **run.inside}
        with suppress(CannotRunError):
            known |= inner_values(self._source, run, 0, [name for name in watched if name not in known], clock)
        return known

    def run(
        self, names: Sequence[str], request: Request, clock: Clock, notes: list[str], watched: Sequence[str] = ()
    ) -> Run:
        """As `run_source`; with the inner values that are watched, if the first runtime gives them."""
        key = names, id(request)
        if key not in self._runs:
            said: list[str] = []
            found = None
            with suppress(CannotRunError):
                found = run_source(self._source, names[:1], request, clock, said, watched) if watched else None
            try:
                self._runs[key] = found or run_source(self._source, names, request, clock, said), said
            except OutOfTimeError:
                raise  # there may be time later
            except CannotRunError as error:
                self._runs[key] = copy(error), said  # without its traceback
        run, said = self._runs[key]
        if isinstance(run, CannotRunError):
            raise copy(run)
        notes += said
        return run


def verify_in(comparison: Comparison, left_runs: SourceRuns) -> Verification:
    """Run both models in one runtime, and compare them; in the reference evaluator what onnxruntime cannot run."""
    before, after, notes = comparison.before, comparison.after, comparison.notes
    reason = interface_mismatch(before.proto, after.proto)
    if reason:
        return _not_run("different", reason, notes)
    left_names, right_names = names_of(comparison.runtime, is_of_one=comparison.is_of_one)
    try:
        left = comparison.left = left_runs.run(left_names, comparison.request, comparison.clock, notes)
    except CannotRunError as error:
        failed, advice = (
            "the source model could not be run",
            "give inputs that it takes with --input, --dim or --test-data",
        )
        if isinstance(error, OutOfTimeError):
            failed, advice = "no time was left for the whole models", "raise --verify-budget"
        elif isinstance(error, TooLargeError):
            failed, advice = "the whole models were not run", "raise it, or set smaller sizes with --dim"
        sizes_given = two_sizes(before.proto, comparison.request.given)
        return _not_run("not shown", f"{failed}: {error.reason}{sizes_given}", notes, advice)
    reason = next(filter(None, (refused_input(after.proto, feeds) for feeds in left.cases)), "")
    if reason:
        return _not_run("different", reason, notes)
    try:
        right = comparison.right = run_result(after, right_names, left, comparison.clock, notes)
    except CannotRunError as error:
        failed = f"the source runs in {left.runtime}, but "
        is_over = isinstance(error, OutOfTimeError)
        failed += "no time was left for the converted model" if is_over else "the converted model does not"
        is_open = error.unsupported and not _alone_fails(comparison, right_names, error)
        return _not_run("not shown" if is_open else "different", f"{failed}: {error.reason}", notes)
    if right.runtime == "onnxruntime" and not comparison.clock.over:
        notes.extend(_by_default(before, after))
    return _judge(comparison)


def _not_run(verdict: Verdict, reason: str, notes: Sequence[str], advice: str = "") -> Verification:
    """The verdict where one of the whole models was not run, and what to do about it."""
    unseen = (f"{reason}; {advice}" if advice else reason,) if verdict == "not shown" else ()
    return Verification(verdict, False, reason=reason, notes=tuple(notes), unseen=unseen)


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


def _alone_fails(comparison: Comparison, names: Sequence[str], error: CannotRunError) -> bool:
    """Whether the target runtime does not take the result, but runs the source on the same inputs."""
    if comparison.runtime in ("onnxruntime", "reference") or isinstance(error, OutOfTimeError | TooLargeError):
        return False
    try:
        run_result(comparison.before, names, comparison.left, comparison.clock, [])
    except CannotRunError:
        return False
    return True


def interface_mismatch(before: ModelProto, after: ModelProto) -> str:
    """Why the models cannot be compared at all; empty if their inputs and outputs match."""
    outputs = [[value.name for value in model.graph.output] for model in (before, after)]
    if outputs[0] != outputs[1]:
        return f"the outputs are {outputs[0]} before and {outputs[1]} after"
    known = {value.name for value in before.graph.input} | {tensor.name for tensor in before.graph.initializer}
    specs, skipped = input_specs(after)
    extra = sorted({*(spec.name for spec in specs), *skipped} - known)
    return f"the converted model needs inputs that the source does not have: {extra}" if extra else ""


def _judge(comparison: Comparison) -> Verification:
    left, right, clock = comparison.left, comparison.right, comparison.clock
    outputs = comparison.outputs()
    if differ(outputs):
        outputs = without_random(comparison, outputs)
    outputs = as_regions(outputs, comparison.regions)
    is_checked = comparison.holds and not comparison.is_of_one
    if differ(outputs) and is_checked and right.runtime in ("onnxruntime", "reference"):
        outputs = at_borders(comparison, outputs)
    doubt = no_evidence([(left.runtime, comparison.before.proto), (right.runtime, comparison.after.proto)])
    if doubt:
        outputs = withdrawn(outputs, doubt)
    if differ(outputs) and (not comparison.are_together or comparison.is_open):
        outputs = without_slight(comparison, outputs)
    if differ(outputs) and (clock.over or comparison.is_cut_short):
        ended = f"the budget of {clock.budget:g} s ended before it was clear what explains the difference"
        outputs = withdrawn(outputs, f"{ended}; raise --verify-budget", with_difference=True)
    if differ(outputs):
        comparison.first = first_difference(comparison)
    if comparison.expected:
        outputs += _against_expected(comparison)
    are_compared = any(item.verdict != "not compared" for item in outputs)
    reason = "" if are_compared or not outputs else f"no output can be compared: {outputs[0].reason}"
    unseen = list(_unseen(comparison, outputs))
    verdict: Verdict = "different" if differ(outputs) else "not shown" if unseen or reason else "equivalent"
    return Verification(
        verdict,
        not reason,
        comparison.runtimes,
        tuple(outputs),
        reason,
        tuple(comparison.notes),
        cases=len(right.cases),
        unseen=tuple(unseen),
        departs=tuple(comparison.departs),
        departed=tuple(comparison.departed),
        first=comparison.first,
        kept=comparison.kept,
    )


def _unseen(comparison: Comparison, outputs: Sequence[OutputComparison]) -> Iterator[str]:
    """What was not compared, and why."""
    for item in outputs:
        if item.verdict == "not compared":
            yield f"output {item.name!r} was not compared: {item.reason}"
    are_empty = {value.name for value in comparison.before.proto.graph.output if 0 in (sizes(value.type) or ())}
    for item in outputs:
        if item.verdict == "equal" and not item.tells and item.element_type and item.name not in are_empty:
            yield (
                f"of output {item.name!r} nothing was compared, since it was empty, NaN or infinite in every run; give "
                "inputs that tell more with --input, --dim or --test-data"
            )
    if len(comparison.right.cases) < len(comparison.left.cases):
        yield f"the budget of {comparison.clock.budget:g} s ended early; raise --verify-budget"


def _against_expected(comparison: Comparison) -> list[OutputComparison]:
    """Compare both sides with the outputs that came with the inputs."""
    expected = list(comparison.expected)
    names = comparison.output_names[: len(expected)]
    found = []
    for side, run in (("source", comparison.left), ("converted model", comparison.right)):
        for item in compare_outputs(
            names,
            expected,
            run.results[0][: len(expected)],
            runtime=f"{run.runtime} against the expected one",
            tolerances=comparison.tolerances,
            widen=APART,
            by_tensor=True,
        ):
            found.append(item)
            if item.verdict == "different":
                comparison.notes.append(f"The {side} does not give the expected {item.name!r}: {item.reason}.")
    return found
