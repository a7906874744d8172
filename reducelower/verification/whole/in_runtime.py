"""Two whole models in one runtime: both run on the same inputs, their outputs compared, and one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
from reducelower.verification.whole.question import (
    Question,
    as_regions,
    compared,
    differ,
    random_outputs,
    where_run,
    without_slight,
)
from reducelower.verification.whole.runs import Request, Run, inner_values, run_result, run_source

__all__ = ["SourceRuns", "interface_mismatch", "names_of", "verify_in"]


def names_of(runtime: str, *, is_of_one: bool) -> tuple[Sequence[str], Sequence[str]]:
    """Where the source runs and where the result does, if that is to be compared in a runtime: each in the first."""
    if is_of_one:
        return tuple(name for name in ("onnxruntime", "reference") if name != runtime), (runtime,)
    left = ("reference",) if runtime == "reference" else ("onnxruntime", "reference")
    return left, left if runtime == "onnxruntime" else (runtime,)


class SourceRuns:
    """Runs of the source, each made once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._runs: dict[tuple[Sequence[str], int], tuple[Run, list[str]]] = {}

    def seen(self, names: Sequence[str], request: Request, clock: Clock, watched: Sequence[str]) -> Mapping[str, Any]:
        """Values of the main graph by name, as the first inputs give them that the source takes; none if none are."""
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
        """As `run_source`, with what is watched inside where the first runtime gives it."""
        key = names, id(request)
        if key not in self._runs:
            said: list[str] = []
            found = None
            with suppress(CannotRunError):
                found = run_source(self._source, names[:1], request, clock, said, watched) if watched else None
            self._runs[key] = found or run_source(self._source, names, request, clock, said), said
        run, said = self._runs[key]
        notes += said
        return run


def verify_in(question: Question, left_runs: SourceRuns) -> Verification:
    """Compare in one runtime, with the reference evaluator where onnxruntime cannot."""
    before, after, notes = question.before, question.after, question.notes
    reason = interface_mismatch(before.proto, after.proto)
    if reason:
        return _not_run("different", reason, notes)
    left_names, right_names = names_of(question.runtime, is_of_one=question.is_of_one)
    try:
        left = left_runs.run(left_names, question.request, question.clock, notes)
    except CannotRunError as error:
        said, advice = (
            "the source model could not be run",
            "give inputs that it takes with --input, --dim or --test-data",
        )
        if isinstance(error, OutOfTimeError):
            said, advice = "no time was left for the whole models", "raise --verify-budget"
        elif isinstance(error, TooLargeError):
            said, advice = "the whole models were not run", "raise it, or set smaller sizes with --dim"
        told = two_sizes(before.proto, question.request.given)
        return _not_run("not shown", f"{said}: {error.reason}{told}", notes, advice)
    reason = next(filter(None, (refused_input(after.proto, feeds) for feeds in left.cases)), "")
    if reason:
        return _not_run("different", reason, notes)
    try:
        right = run_result(after, right_names, left, question.clock, notes)
    except CannotRunError as error:
        said = f"the source runs in {left.runtime}, but "
        is_over = isinstance(error, OutOfTimeError)
        said += "no time was left for the converted model" if is_over else "the converted model does not"
        is_open = error.unsupported and not _alone_fails(question, right_names, left, error)
        return _not_run("not shown" if is_open else "different", f"{said}: {error.reason}", notes)
    if right.runtime == "onnxruntime" and not question.clock.over:
        notes.extend(_by_default(before, after))
    return _judge(question, left, right)


def _not_run(verdict: Verdict, reason: str, notes: Sequence[str], advice: str = "") -> Verification:
    """The verdict where one of the whole models was not run, and what to do about it."""
    unseen = (f"{reason}; {advice}" if advice else reason,) if verdict == "not shown" else ()
    return Verification(verdict, False, reason=reason, notes=tuple(notes), unseen=unseen)


def _by_default(before: Source, after: Source) -> Iterator[str]:
    """Whether onnxruntime loads the result as users do by default: some of its optimizations stumble."""
    session = OnnxRuntime(optimizes=True)
    try:
        session.load(after)
    except CannotRunError as error:
        if try_load(session, before) is not None:
            yield (
                "onnxruntime loads the result only without graph optimizations "
                f"(SessionOptions.graph_optimization_level), and the source with them: {error.reason}"
            )


def _alone_fails(question: Question, names: Sequence[str], left: Run, error: CannotRunError) -> bool:
    """Whether the runtime that the result is for, and that does not take it, runs the source on the same inputs."""
    if question.runtime in ("onnxruntime", "reference") or isinstance(error, OutOfTimeError | TooLargeError):
        return False
    try:
        run_result(question.before, names, left, question.clock, [])
    except CannotRunError:
        return False
    return True


def interface_mismatch(before: ModelProto, after: ModelProto) -> str:
    """Why the models cannot be compared at all; empty when their inputs and outputs match."""
    outputs = [[value.name for value in model.graph.output] for model in (before, after)]
    if outputs[0] != outputs[1]:
        return f"the outputs are {outputs[0]} before and {outputs[1]} after"
    known = {value.name for value in before.graph.input} | {tensor.name for tensor in before.graph.initializer}
    specs, skipped = input_specs(after)
    extra = sorted({*(spec.name for spec in specs), *skipped} - known)
    return f"the converted model needs inputs that the source does not have: {extra}" if extra else ""


def _judge(question: Question, left: Run, right: Run) -> Verification:
    outputs = compared(question, left, right)
    if differ(outputs):
        outputs = random_outputs(question.before.proto, left, right, outputs, question.clock)
    outputs = as_regions(outputs, question.regions)
    if differ(outputs) and question.holds and not question.is_of_one and right.runtime in ("onnxruntime", "reference"):
        outputs = at_borders(question, left, right, outputs)
    doubt = no_evidence([(left.runtime, question.before.proto), (right.runtime, question.after.proto)])
    if doubt:
        outputs = withdrawn(outputs, doubt)
    if differ(outputs) and (left.runtime != right.runtime or question.is_open):
        outputs = without_slight(question, left, right, outputs)
    if differ(outputs) and (question.clock.over or question.is_cut_short):
        ended = f"the budget of {question.clock.budget:g} s ended before it was clear what explains the difference"
        outputs = withdrawn(outputs, f"{ended}; raise --verify-budget", with_difference=True)
    first = first_difference(question, left, right) if differ(outputs) else None
    if question.expected:
        outputs += _against_expected(question, left, right)
    are_compared = any(item.verdict != "not compared" for item in outputs)
    reason = "" if are_compared or not outputs else f"no output can be compared: {outputs[0].reason}"
    unseen = [
        f"output {item.name!r} was not compared: {item.reason}" for item in outputs if item.verdict == "not compared"
    ]
    are_empty = {value.name for value in question.before.proto.graph.output if 0 in (sizes(value.type) or ())}
    unseen += [
        f"of output {item.name!r} nothing was compared, since it was empty, NaN or infinite in every run; give inputs "
        "that tell more with --input, --dim or --test-data"
        for item in outputs
        if item.verdict == "equal" and not item.tells and item.element_type and item.name not in are_empty
    ]
    if len(right.cases) < len(left.cases):
        unseen.append(f"the budget of {question.clock.budget:g} s ended early; raise --verify-budget")
    verdict: Verdict = "different" if differ(outputs) else "not shown" if unseen or reason else "equivalent"
    return Verification(
        verdict,
        not reason,
        where_run(left, right),
        tuple(outputs),
        reason,
        tuple(question.notes),
        cases=len(right.cases),
        unseen=tuple(unseen),
        departs=tuple(question.departs),
        departed=tuple(question.departed),
        first=first,
        kept="".join(question.kept),
    )


def _against_expected(question: Question, left: Run, right: Run) -> list[OutputComparison]:
    """Compare both sides with the outputs that came with the inputs."""
    expected = list(question.expected)
    names = question.output_names[: len(expected)]
    found = []
    for side, run in (("source", left), ("converted model", right)):
        for item in compare_outputs(
            names,
            expected,
            run.results[0][: len(expected)],
            runtime=f"{run.runtime} against the expected one",
            tolerances=question.tolerances,
            widen=APART,
            by_tensor=True,
        ):
            found.append(item)
            if item.verdict == "different":
                question.notes.append(f"The {side} does not give the expected {item.name!r}: {item.reason}.")
    return found
