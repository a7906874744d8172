"""Verifies two models: every region in which they differ by itself, then both whole on the same inputs."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.arguments import check_arguments
from reducelower.model.inference import Inference
from reducelower.numerics.measure import element_type_of, identical, measure
from reducelower.numerics.tolerance import APART, Tolerance, tolerance_for
from reducelower.plan import Plan
from reducelower.verification.branches import taken
from reducelower.verification.compare import compare_outputs, tensors
from reducelower.verification.conditioning import Move, disturbed_inside
from reducelower.verification.doubts import is_slight, no_evidence, random_outputs, sensitivity, wrong_in_reference
from reducelower.verification.given import check_given
from reducelower.verification.inputs import input_specs
from reducelower.verification.places import Place
from reducelower.verification.providers import CPU, chosen_provider, on_provider, require_onnxruntime
from reducelower.verification.result import Coverage, OutputComparison, Verdict, Verification
from reducelower.verification.runs import Clock, Request, Run, run_result, run_source
from reducelower.verification.runtimes import Session, runtime_named
from reducelower.verification.search import varied
from reducelower.verification.sites import Regions, verify_regions
from reducelower.verification.source import CannotRunError, OutOfTimeError, Source
from reducelower.verification.testdata import TestDataSet
from reducelower.verification.unsteady import inner_values
from reducelower.verification.wider import InDouble, with_bodies
from reducelower.verification.witness import Witness, sides_with

__all__ = ["compare_models", "verify"]

Model = ModelProto | str | os.PathLike[str]


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
    regions: Regions | None
    notes: list[str] = field(default_factory=list)
    departs: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every region in which the models differ holds by itself."""
        return self.regions is not None and self.regions.hold

    @property
    def hides(self) -> bool:
        """Whether a region differs by itself, and neither on what its surroundings gave it nor in a larger one."""
        regions = self.regions
        return regions is not None and (
            regions.evens_out or any(item.status == "not run" and item.cases for item in regions.findings)
        )

    @property
    def output_names(self) -> list[str]:
        return [value.name for value in self.before.proto.graph.output]


def verify(
    before: Model,
    after: Model,
    *,
    inputs: Mapping[str, Any] | None = None,
    expected: Sequence[Any] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    runtimes: Sequence[str] = ("onnxruntime",),
    tolerances: Mapping[str, Tolerance] | None = None,
    budget: float | None = None,
    plan: Plan | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    strict: bool = False,
    overrides: bool = True,
    provider: str = "",
) -> Verification:
    """Run every region in which two models differ by itself, then both whole models, and compare every output.

    The models are aligned by what they compute; names do not matter but for those of inputs and outputs. What is
    computed otherwise is run by itself on ordinary and edge values. Both whole models run in onnxruntime with graph
    optimizations off. A side that onnxruntime has no kernel or no opset support for runs in
    ``onnx.reference.ReferenceEvaluator``, and the notes say so.

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
        plan: what a conversion did; its rewrites are then named in what is found.
        on_progress: called with (done, total) distinct regions.
        base_dir: folder of the external data of models given as ModelProto.
        strict: take a runtime that diverges from the specification for a reason not to say ``equivalent``.
        overrides: whether initializers that are also inputs have to be defaults in both models, which a caller may
            override.
        provider: execution provider of onnxruntime, such as ``cuda``; the CPU where none is named.

    Returns:
        The verdict, what every region and every output gave, and what was not seen.

    Raises:
        UnreadableModelError: a path is missing or not an ONNX model.
        TypeError: an argument is of another type than it should be.
        ValueError: there is no runtime, provider, input or symbolic dimension of a given name, a given value does not
            fit its input, or onnxruntime is not installed.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> found = reducelower.verify(model, reducelower.expand(model, rules="stable"))
        >>> found.equivalent
        True
    """
    check_arguments(inputs=inputs, dims=dims, runtimes=runtimes, tolerances=tolerances)
    check_arguments(budget=budget, base_dir=base_dir, plan=plan)
    source, result = Source.of(before, base_dir).light(), Source.of(after, base_dir).light()
    if "onnxruntime" in runtimes:
        require_onnxruntime()
    data = TestDataSet("", dict(inputs or {}), () if expected is None else tuple(expected))
    with on_provider(provider):
        found = compare_models(
            source,
            result,
            [data],
            plan=plan,
            seed=seed,
            dims=dims or {},
            runtimes=runtimes,
            tolerances=tolerances,
            budget=budget,
            overrides=overrides,
            on_progress=on_progress,
        )
    departs = bool(found.departing or found.departs)
    return replace(found, verdict="not shown") if strict and departs and found.equivalent else found


def compare_models(
    source: Source,
    result: Source,
    data_sets: Sequence[TestDataSet],
    *,
    plan: Plan | None,
    seed: int,
    dims: Mapping[str, int],
    runtimes: Sequence[str],
    tolerances: Mapping[str, Tolerance] | None,
    budget: float | None,
    overrides: bool,
    on_progress: Callable[[int, int], None] | None,
    protos: tuple[ModelProto, ModelProto] | None = None,
) -> Verification:
    """Run the regions of two models, then both on each set of inputs in each runtime, and give one verdict.

    Args:
        source, result: the models.
        data_sets: what the whole models are run on; what an input is not given is made.
        plan, seed, dims, runtimes, tolerances, budget, overrides, on_progress: as of `verify`.
        protos: the models as messages, where they are at hand already.

    Raises:
        ValueError: as `verify`.
    """
    for name in runtimes:
        runtime_named(name)
    for data in data_sets:
        check_given(source.proto, data.inputs, dims)
    left, right = protos or (source.proto, result.proto)
    regions = None
    if not interface_mismatch(left, right):
        regions = verify_regions(left, right, plan, seed=seed, tolerances=tolerances, on_progress=on_progress)
    start, left_over = time.monotonic(), budget
    found = []
    for data in data_sets:
        request = Request(dict(data.inputs), seed, dict(dims), overrides)
        questions = (
            _Question(source, result, name, request, data.outputs or None, tolerances, Clock(left_over), regions)
            for name in runtimes
        )
        found.append([_verify_in(question) for question in questions])
        if budget is not None:
            left_over = max(budget - (time.monotonic() - start), 0.001)
    whole = _combined([item for each in found for item in each], regions)
    # The worst of each output over all sets of inputs.
    outputs: dict[tuple[str, str], OutputComparison] = {}
    for item in whole.outputs:
        key = item.name, item.runtime
        outputs[key] = outputs[key].merged(item) if key in outputs else item
    cases = sum(max((item.cases for item in each), default=0) for each in found)
    return replace(whole, outputs=tuple(outputs.values()), cases=cases)


def _combined(found: Sequence[Verification], regions: Regions | None) -> Verification:
    """One verdict from several runs of whole models and from their regions.

    Args:
        found: what running the whole models gave, in each runtime.
        regions: what the regions gave by themselves; None where the models cannot be compared at all.
    """
    sites = () if regions is None else regions.findings
    outputs = tuple(output for item in found for output in item.outputs)
    unseen = dict.fromkeys(note for item in found for note in item.unseen)
    unseen |= dict.fromkeys(f"{site.place}: {site.reason}" for site in sites if site.status == "not run")
    ran = bool(found) and all(item.ran for item in found)
    verdict: Verdict = "equivalent"
    if unseen or not ran or any(item.verdict == "not shown" for item in found):
        verdict = "not shown"
    if _differ(outputs) or any(_cannot_be_same(item) for item in found) or not all(site.ok for site in sites):
        verdict = "different"
    branches = dict.fromkeys(branch for item in found for branch in item.coverage.branches)
    told = tuple(dict.fromkeys(item.name for item in outputs if item.verdict == "equal" and item.tells))
    coverage = Coverage()
    if regions is not None:
        coverage = replace(regions.coverage, outputs=told, branches=(*regions.coverage.branches, *branches))
    return Verification(
        verdict,
        ran,
        ", ".join(dict.fromkeys(item.runtime for item in found if item.runtime)),
        outputs,
        "; ".join(dict.fromkeys(item.reason for item in found if item.reason)),
        tuple(dict.fromkeys(note for item in found for note in item.notes)),
        sites,
        max((item.cases for item in found), default=0),
        tuple(unseen),
        coverage,
        tuple(dict.fromkeys(name for item in found for name in item.departs)),
    )


def _as_regions(outputs: list[OutputComparison], regions: Regions | None) -> list[OutputComparison]:
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


def _cannot_be_same(item: Verification) -> bool:
    """Whether the models differ in what they take or give, or the second does not run."""
    return item.verdict == "different" and not item.ran


def _verify_in(question: _Question) -> Verification:
    """Compare in one runtime, with the reference evaluator where onnxruntime cannot."""
    before, after, notes = question.before, question.after, question.notes
    reason = interface_mismatch(before.proto, after.proto)
    if reason:
        return Verification("different", False, reason=reason)
    left_names = ("reference",) if question.runtime == "reference" else ("onnxruntime", "reference")
    right_names = left_names if question.runtime == "onnxruntime" else (question.runtime,)
    try:
        left = run_source(before, left_names, question.request, question.clock, notes)
    except CannotRunError as error:
        reason = f"the source model could not be run: {error.reason}"
        return Verification("not shown", False, reason=reason, notes=tuple(notes), unseen=(_what_to_do(reason),))
    try:
        right = run_result(after, right_names, left, question.clock, notes)
    except CannotRunError as error:
        reason = f"the source runs in {left.runtime}, but the converted model does not: {error.reason}"
        if error.unsupported:
            return Verification("not shown", False, reason=reason, notes=tuple(notes), unseen=(reason,))
        elsewhere = _in_reference(question, left, error.reason) if question.holds else None
        if elsewhere is None and question.holds and _refuses(question, left):
            reason += "; nor does onnx.reference run the source on these inputs"
            return Verification("not shown", False, reason=reason, notes=tuple(notes), unseen=(_what_to_do(reason),))
        if elsewhere is None:
            return Verification("different", False, reason=reason, notes=tuple(notes))
        right = elsewhere
    return _judge(question, left, right)


def _in_reference(question: _Question, left: Run, reason: str) -> Run | None:
    """The converted model in the reference evaluator, for a runtime that fails on it though every region holds."""
    if wrong_in_reference(question.after.proto):
        return None
    try:
        found = run_result(question.after, ("reference",), left, question.clock, [])
    except CannotRunError:
        return None
    question.departs.extend(question.output_names)
    question.notes.append(f"The runtime fails on the converted model, which onnx.reference runs: {reason}.")
    return found


def _refuses(question: _Question, left: Run) -> bool:
    """Whether the reference evaluator finds the inputs wrong on which onnxruntime ran the source, in all sets."""
    witness = Witness(question.before.proto, question.after.proto, left.runtime, left.runtime)
    return all(map(witness.refuses, left.cases))


def _searched(question: _Question, left: Run, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
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
        if _differ(_compared(question, *found, _sensitivity(question, *found))):
            for run, results in ((left, before), (right, after)):
                run.cases, run.results = [*run.cases[: len(run.results)], feeds], [*run.results, results]
            return _compared(question, left, right)
    return outputs


def _what_to_do(reason: str) -> str:
    return f"{reason}; give inputs that it takes with --input, --dim or --test-data"


def interface_mismatch(before: ModelProto, after: ModelProto) -> str:
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
    if not _differ(outputs) and question.hides:
        outputs = _searched(question, left, right, outputs)
    if _differ(outputs):
        outputs = random_outputs(question.before.proto, left, right, outputs, question.clock)
    if _differ(outputs):
        outputs = _with_sensitivity(question, left, right, outputs)
    outputs = _as_regions(outputs, question.regions)
    if _differ(outputs) and {left.runtime, right.runtime} == {"onnxruntime", "reference"}:
        outputs = _both_in_reference(question, right, outputs)
    if _differ(outputs) and question.holds and right.runtime == "onnxruntime":
        outputs = _departing(question, left, right, outputs)
    doubt = no_evidence([(left.runtime, question.before.proto), (right.runtime, question.after.proto)])
    if doubt:
        outputs = [
            replace(item, verdict="not compared", reason=doubt) if item.verdict == "different" else item
            for item in outputs
        ]
    if _differ(outputs) and left.runtime != right.runtime:
        outputs = _without_slight(question, left, right, outputs)
    if _differ(outputs) and question.clock.over:
        question.notes.append(
            f"The budget of {question.clock.budget:g} s ended before it was clear whether the model's randomness or "
            "conditioning explains the difference."
        )
    if question.expected is not None:
        outputs += _against_expected(question, left, right)
    compared = [item for item in outputs if item.verdict != "not compared"]
    reason = "" if compared or not outputs else f"no output can be compared: {outputs[0].reason}"
    unseen = [
        f"output {item.name!r} was not compared: {item.reason}" for item in outputs if item.verdict == "not compared"
    ]
    unseen += [
        f"of output {item.name!r} nothing was compared, since it was empty, NaN or infinite in every run; give inputs "
        "that tell more with --input, --dim or --test-data"
        for item in outputs
        if item.verdict == "equal" and not item.tells and item.element_type
    ]
    if len(right.cases) < len(left.cases):
        unseen.append(f"the budget of {question.clock.budget:g} s ended early; raise --budget")
    verdict: Verdict = "different" if _differ(outputs) else "not shown" if unseen or reason else "equivalent"
    return Verification(
        verdict,
        not reason,
        _where(left, right),
        tuple(outputs),
        reason,
        tuple(question.notes),
        cases=len(right.cases),
        unseen=tuple(unseen),
        coverage=Coverage(branches=taken(question.before, left, question.clock)),
        departs=tuple(question.departs),
    )


def _differ(outputs: Sequence[OutputComparison]) -> bool:
    return any(item.verdict == "different" for item in outputs)


def _where(left: Run, right: Run) -> str:
    provider = chosen_provider()
    on = "" if provider == CPU else f" on {provider}"
    names = [run.runtime + (on if run.runtime == "onnxruntime" else "") for run in (left, right)]
    return " / ".join(dict.fromkeys(names))


def _compared(
    question: _Question,
    left: Run,
    right: Run,
    moves: Sequence[Mapping[str, Move]] = (),
) -> list[OutputComparison]:
    """The worst comparison of each output over all sets of inputs that both sides were run on."""
    merged: dict[str, OutputComparison] = {}
    for at in range(min(len(left.results), len(right.results))):
        for item in _compared_at(question, left, right, at, moves[at] if at < len(moves) else {}):
            merged[item.name] = merged[item.name].merged(item) if item.name in merged else item
    return list(merged.values())


def _compared_at(
    question: _Question, left: Run, right: Run, at: int, moves: Mapping[str, Move]
) -> list[OutputComparison]:
    """The comparison of each output on one set of inputs."""
    return compare_outputs(
        question.output_names,
        left.results[at],
        right.results[at],
        runtime=_where(left, right),
        tolerances=question.tolerances,
        widen=1.0 if left.runtime == right.runtime else APART,
        moves=moves,
    )


def _sensitivity(
    question: _Question, left: Run, right: Run, unsteady: Sequence[Callable[[], Session | None]] = ()
) -> list[dict[str, Move]]:
    """What explains the differences of each set of inputs, as far as the source's conditioning does."""

    def explains(at: int, moves: Mapping[str, Move]) -> bool:
        return at >= len(right.results) or not _differ(_compared_at(question, left, right, at, moves))

    return sensitivity(question.before.proto, left, question.request.seed, question.clock, explains, unsteady)


def _without_slight(
    question: _Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Withdraw what two runtimes may differ in."""
    same: defaultdict[str, bool] = defaultdict(lambda: True)
    for before, after in zip(left.results, right.results, strict=False):
        for name, one, other in zip(question.output_names, before, after, strict=True):
            there = dict(tensors(name, other))
            for part, value in tensors(name, one):
                seen = there.get(part)
                same[part] &= value is None or (seen is not None and (identical(value, seen) or is_slight(value, seen)))
    reason = f"{left.runtime} and {right.runtime} may differ as much"
    return [
        replace(item, verdict="not compared", reason=f"{reason}: {item.reason}")
        if item.verdict == "different" and same[item.name]
        else item
        for item in outputs
    ]


def _with_sensitivity(
    question: _Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Accept what the source's own conditioning explains of each element, and say so."""
    unsteady = [cache(partial(_unsteady, question, left, inside=inside)) for inside in (False, True)]
    again = _compared(question, left, right, _sensitivity(question, left, right, unsteady))
    is_inside = any(item.cache_info().currsize and item() is not None for item in unsteady)
    places = "the inputs, and of the values that regions compute otherwise," if is_inside else "the inputs"
    kept = []
    for old, new in zip(outputs, again, strict=True):
        if old.verdict == "different" and new.verdict == "equal":
            question.notes.append(
                f"Output {new.name!r} differs by up to {new.max_absolute:.3g} at elements where a change in the last "
                f"places of {places} explains as much: the model is ill-conditioned there."
            )
            kept.append(new)
        else:
            kept.append(old)
    return kept


def _unsteady(question: _Question, left: Run, *, inside: bool) -> Session | None:
    """The source with values that move in their last places where no region differs that computes them otherwise.

    Args:
        question: the models.
        left: where the source ran.
        inside: of operators that are functions, move what their bodies compute too; None where there is none.
    """
    if question.regions is None or not all(site.ok for site in question.regions.findings):
        return None  # where one was not run, the verdict is "not shown" all the same
    source = question.before
    claims = question.regions.alignment.claims
    model, values = source.proto, [(claim.level.left, name) for claim in claims for name, _ in claim.pairs]
    if inside:
        body = with_bodies(model)
        if body is None:
            return None
        known = {name for node in model.graph.node for name in node.output}
        place = Place(body, body.graph, Inference(lambda: body))
        named = [(place, name) for level, name in values if level.holder is model.graph]
        model, values = body, [*named, *inner_values(body, known)]
    moving = disturbed_inside(model, values)
    folder = source.folder if source.path is None else source.path.parent
    try:
        return None if moving is None else runtime_named(left.runtime).load(Source(moving, folder=folder))
    except CannotRunError:
        return None


def _both_in_reference(question: _Question, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Compare within the reference evaluator where the two runtimes do not agree, unless it is no evidence there."""
    if wrong_in_reference(question.before.proto) or wrong_in_reference(question.after.proto):
        return outputs
    try:
        before = _source_elsewhere(question, right, runtime_named("reference").load)
        after = run_result(question.after, ("reference",), before, question.clock, [])
    except CannotRunError:
        return outputs
    again = _compared(question, before, after)
    if _differ(again) or len(after.results) < len(right.results):
        return outputs
    question.notes.append(
        "onnxruntime and the reference evaluator do not agree on this model; the comparison is within the latter."
    )
    return again


def _source_elsewhere(question: _Question, right: Run, load: Callable[[Source], Session]) -> Run:
    """The source in another session, on the inputs that the result was run on."""
    question.clock.check()
    run = Run("reference", load(question.before), right.cases)
    for feeds in right.cases:
        question.clock.check()
        run.results.append(run.session.run(feeds, question.clock.left))
    return run


def _departing(question: _Question, left: Run, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Where every region holds, ask the reference evaluator what the source is: the runtime may depart from that.

    As it is, by the bodies of its operators, and in double: onnxruntime computes some less exactly than others.
    """
    if wrong_in_reference(question.before.proto):
        return outputs
    for load in (runtime_named("reference").load, _by_bodies, _in_double):
        try:
            reference = _source_elsewhere(question, right, load)
        except CannotRunError:
            continue
        again = [
            replace(item, verdict="equal")
            if item.verdict == "different" and _is_nearer(question, left, right, reference, at)
            else item
            for at, item in enumerate(_compared(question, reference, right, _sensitivity(question, reference, right)))
        ]
        if not _differ(again):
            break
    else:
        return outputs
    if question.clock.over:
        return outputs
    for item in outputs:
        if item.verdict == "different":
            question.departs.append(item.name)
            question.notes.append(
                f"The runtime diverges from the specification on the source: of output {item.name!r}, {item.reason}; "
                f"onnx.reference gives of the source what {right.runtime} gives of the converted model."
            )
    return again


def _is_nearer(question: _Question, left: Run, right: Run, reference: Run, at: int) -> bool:
    """Whether an output of the result, by its number, is much nearer to another run of the source than the source's."""
    for values in zip(left.results, right.results, reference.results, strict=False):
        before, after, truth = (each[at] for each in values)
        arrays = [item for item in (before, after, truth) if isinstance(item, np.ndarray)]
        if len({(item.dtype, item.shape) for item in arrays}) != 1 or len(arrays) < len(values):
            return False
        found = measure(before, after, tolerance_for(element_type_of(before), question.tolerances))
        if found.mismatch and (found.elements is None or not sides_with(before, after, truth, found.elements)):
            return False
    return True


def _by_bodies(source: Source) -> Session:
    body = with_bodies(source.proto)
    if body is None:
        raise CannotRunError("none of its operators is a function")
    return runtime_named("reference").load(replace(source, proto=body, data=None))


def _in_double(source: Source) -> Session:
    wide = InDouble.of(source.complete(), rounded=True)
    if wide is None:
        raise CannotRunError("its floats are not of one type")
    return wide


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
            by_tensor=True,
        ):
            found.append(item)
            if item.verdict == "different":
                question.notes.append(f"The {side} does not give the expected {item.name!r}: {item.reason}.")
    return found
