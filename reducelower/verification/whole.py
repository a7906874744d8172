"""Verifies two whole models: the same inputs, every output compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import ModelProto

from reducelower.numerics.tolerance import APART, Tolerance
from reducelower.plan import Plan
from reducelower.verification.compare import compare_outputs
from reducelower.verification.doubts import old_in_reference, random_outputs, sensitivity
from reducelower.verification.inputs import free_sizes, input_specs
from reducelower.verification.result import OutputComparison, SiteVerification, Verification
from reducelower.verification.runs import Clock, Request, Run, run_result, run_source
from reducelower.verification.runtimes import runtime_named
from reducelower.verification.sites import verify_sites
from reducelower.verification.source import CannotRunError, Source

__all__ = ["combined", "verify"]


@dataclass(frozen=True)
class _Question:
    """The two models and how to compare them, in one runtime."""

    before: Source
    after: Source
    runtime: str
    request: Request
    expected: Sequence[Any] | None
    tolerances: Mapping[str, Tolerance] | None
    clock: Clock
    notes: list[str]

    @property
    def output_names(self) -> list[str]:
        return [value.name for value in self.before.proto.graph.output]


def verify(
    before: ModelProto | str | os.PathLike[str],
    after: ModelProto | str | os.PathLike[str],
    *,
    inputs: Mapping[str, Any] | None = None,
    expected: Sequence[Any] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    runtimes: Sequence[str] = ("onnxruntime",),
    tolerances: Mapping[str, Tolerance] | None = None,
    budget: float | None = None,
    strict: bool = False,
    plan: Plan | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
) -> Verification:
    """Run two models on the same inputs and compare every output.

    Both run in onnxruntime with graph optimizations off. A side that onnxruntime has no kernel or no opset support for
    runs in ``onnx.reference.ReferenceEvaluator``, and the notes say so.

    Args:
        before: the model that is right by definition; a path is run from that path, so that external data is found.
        after: the model to compare with it.
        inputs: values by input name; those not given are made.
        expected: outputs that both models should give, in graph order (from a test-data folder), for the given inputs.
        seed: seed for the values that are made.
        dims: sizes of symbolic dimensions, by symbol; the others are bound to several sizes.
        runtimes: where `after` runs. `before` runs in onnxruntime, except that ``reference`` runs both sides.
        tolerances: by ONNX element type, replacing `DEFAULT_TOLERANCES`.
        budget: seconds for the whole-model runs in each runtime; None for no limit. The reference evaluator
            and OpenVINO cannot be stopped within a run, only after it.
        strict: count "could not be run" as not equivalent.
        plan: what the conversion did; with it, every distinct rewrite is verified by itself too.
        on_progress: called with (done, total) distinct rewrites.
        base_dir: folder of the external data of models given as ModelProto.

    Returns:
        The verdict, per-output distances and what they rest on.

    Raises:
        UnreadableModelError: a path is missing or not an ONNX model.
        ValueError: there is no runtime, no input or no symbolic dimension of a given name.
    """
    source, result = Source.of(before, base_dir), Source.of(after, base_dir)
    for name in runtimes:
        runtime_named(name)
    given = dict(inputs or {})
    unknown = set(given) - {value.name for value in source.proto.graph.input}
    if unknown:
        raise ValueError(f"the model has no input called {', '.join(sorted(map(repr, unknown)))}")
    unknown = set(dims or ()) - set(free_sizes(source.proto))
    if unknown:
        names = ", ".join(sorted(map(repr, unknown)))
        raise ValueError(f"the model's inputs have no symbolic dimension called {names}")
    request = Request(given, seed, dict(dims or {}))
    sites: tuple[SiteVerification, ...] = ()
    if plan is not None:
        sites = verify_sites(
            source.proto, result.proto, plan, seed=seed, tolerances=tolerances, on_progress=on_progress
        )
    found = [
        _verify_in(_Question(source, result, name, request, expected, tolerances, Clock(budget), []))
        for name in runtimes
    ]
    return combined(found, sites, strict=strict)


def combined(found: Sequence[Verification], sites: tuple[SiteVerification, ...], *, strict: bool) -> Verification:
    """One verdict from several runs of whole models and from their sites.

    Args:
        found: what running the whole models gave, in each runtime.
        sites: what the rewrites gave by themselves.
        strict: count "could not be run" as not equivalent.
    """
    ran = all(item.ran for item in found)
    equivalent = all(item.equivalent for item in found) and all(site.ok for site in sites)
    found_all = Verification(
        equivalent,
        ran,
        ", ".join(dict.fromkeys(item.runtime for item in found if item.runtime)),
        tuple(output for item in found for output in item.outputs),
        "; ".join(dict.fromkeys(item.reason for item in found if item.reason)),
        tuple(dict.fromkeys(note for item in found for note in item.notes)),
        sites,
        max((item.cases for item in found), default=0),
    )
    return replace(found_all, equivalent=False) if strict and not found_all.complete else found_all


def _verify_in(question: _Question) -> Verification:
    """Compare in one runtime, with the reference evaluator where onnxruntime cannot."""
    before, after, notes = question.before, question.after, question.notes
    reason = _interface_mismatch(before.proto, after.proto)
    if reason:
        return Verification(False, False, reason=reason)
    left_names = ("reference",) if question.runtime == "reference" else ("onnxruntime", "reference")
    right_names = left_names if question.runtime == "onnxruntime" else (question.runtime,)
    try:
        left = run_source(before, left_names, question.request, question.clock, notes)
    except CannotRunError as error:
        return Verification(
            True, False, reason=f"the source model could not be run: {error.reason}", notes=tuple(notes)
        )
    try:
        right = run_result(after, right_names, left, question.clock, notes)
    except CannotRunError as error:
        text = f"the source runs in {left.runtime}, but the converted model does not: {error.reason}"
        return Verification(error.unsupported, False, reason=text, notes=tuple(notes))
    return _judge(question, left, right)


def _interface_mismatch(before: ModelProto, after: ModelProto) -> str:
    """Why the models cannot be compared at all; empty when their inputs and outputs match."""
    outputs = [[value.name for value in model.graph.output] for model in (before, after)]
    if outputs[0] != outputs[1]:
        return f"the outputs are {outputs[0]} before and {outputs[1]} after"
    known = {value.name for value in before.graph.input} | {tensor.name for tensor in before.graph.initializer}
    specs, skipped = input_specs(after)
    extra = sorted({*(spec.name for spec in specs), *skipped} - known)
    return f"the converted model needs inputs that the source does not have: {extra}" if extra else ""


def _judge(question: _Question, left: Run, right: Run) -> Verification:
    outputs = _compared(question, left, right)
    if _differ(outputs):
        outputs = random_outputs(question.before.proto, left, outputs, question.clock)
    if _differ(outputs):
        outputs = _with_sensitivity(question, left, right, outputs)
    if _differ(outputs) and {left.runtime, right.runtime} == {"onnxruntime", "reference"}:
        outputs = _both_in_reference(question, left, right, outputs)
    if _differ(outputs) and question.clock.over:
        question.notes.append(
            f"The budget of {question.clock.budget:g} s ended before it was clear whether the model's randomness or "
            "conditioning explains the difference."
        )
    if question.expected is not None:
        outputs += _against_expected(question, left, right)
    compared = [item for item in outputs if item.verdict != "not compared"]
    reason = "" if compared or not outputs else f"no output can be compared: {outputs[0].reason}"
    question.notes.extend(
        f"Output {item.name!r} was not compared: {item.reason}." for item in outputs if item.verdict == "not compared"
    )
    return Verification(
        not _differ(outputs),
        not reason,
        _where(left, right),
        tuple(outputs),
        reason,
        tuple(question.notes),
        cases=len(right.cases),
    )


def _differ(outputs: Sequence[OutputComparison]) -> bool:
    return any(item.verdict == "different" for item in outputs)


def _where(left: Run, right: Run) -> str:
    return left.runtime if left.runtime == right.runtime else f"{left.runtime} / {right.runtime}"


def _compared(
    question: _Question, left: Run, right: Run, allowances: Mapping[str, float] | None = None
) -> list[OutputComparison]:
    """The worst comparison of each output over all sets of inputs that both sides were run on."""
    merged: dict[str, OutputComparison] = {}
    for before, after in zip(left.results, right.results, strict=False):
        for item in compare_outputs(
            question.output_names,
            before,
            after,
            runtime=_where(left, right),
            tolerances=question.tolerances,
            widen=1.0 if left.runtime == right.runtime else APART,
            allowances=allowances,
        ):
            merged[item.name] = merged[item.name].merged(item) if item.name in merged else item
    return list(merged.values())


def _with_sensitivity(
    question: _Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Accept what the source's own conditioning explains, and say so."""
    allowances = sensitivity(question.before.proto, left, question.request.seed, question.clock)
    again = _compared(question, left, right, allowances)
    kept = []
    for old, new in zip(outputs, again, strict=True):
        if old.verdict == "different" and new.verdict == "equal":
            question.notes.append(
                f"Output {new.name!r} differs by up to {new.max_absolute:.3g}, less than {allowances[new.name]:.3g}, "
                "which a change in the last places of the inputs explains: the model is ill-conditioned there."
            )
            kept.append(new)
        else:
            kept.append(old)
    return kept


def _both_in_reference(
    question: _Question, left: Run, right: Run, outputs: list[OutputComparison]
) -> list[OutputComparison]:
    """Compare within the reference evaluator where the two runtimes do not agree, unless it is no evidence there."""
    stale = sorted({*old_in_reference(question.before.proto), *old_in_reference(question.after.proto)})
    if stale:
        question.notes.append(
            "The two sides had to run in different runtimes, and the reference evaluator is no evidence for the old "
            f"{', '.join(stale[:5])}; the difference may be between the runtimes."
        )
        return outputs
    notes: list[str] = []
    try:
        question.clock.check()
        before = Run("reference", runtime_named("reference").load(question.before), right.cases)
        for feeds in right.cases:
            question.clock.check()
            before.results.append(before.session.run(feeds, question.clock.left))
        after = run_result(question.after, ("reference",), before, question.clock, notes)
    except CannotRunError:
        return outputs
    again = _compared(question, before, after)
    if _differ(again) or len(after.results) < len(right.results):
        return outputs
    question.notes.append(
        "onnxruntime and the reference evaluator do not agree on this model; the comparison is within the latter."
    )
    return again


def _against_expected(question: _Question, left: Run, right: Run) -> list[OutputComparison]:
    """Compare both sides with the outputs that came with the inputs."""
    expected = list(question.expected or ())
    names = question.output_names[: len(expected)]
    found = []
    for side, run in (("source", left), ("converted model", right)):
        for item in compare_outputs(
            names,
            expected,
            run.results[0][: len(expected)],
            runtime=f"expected / {run.runtime}",
            tolerances=question.tolerances,
            widen=APART,
        ):
            found.append(item)
            if item.verdict == "different":
                question.notes.append(f"The {side} does not give the expected {item.name!r}: {item.reason}.")
    return found
