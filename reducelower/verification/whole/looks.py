"""Second looks at a difference of whole models: other inputs, other runtimes, and what rounding explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from reducelower.model.graph import all_nodes
from reducelower.numerics.measure import element_type_of, identical, is_float, measure
from reducelower.numerics.tolerance import tolerance_for
from reducelower.types import Inference
from reducelower.verification.checking.sites import Regions
from reducelower.verification.feeding.limits import open_to_special
from reducelower.verification.inputs.made import varied
from reducelower.verification.judging.compare import tensors, withdrawn
from reducelower.verification.judging.conditioning import Move, disturbed_inside
from reducelower.verification.judging.doubts import is_slight, sensitivity
from reducelower.verification.judging.runs import Run, run_result
from reducelower.verification.judging.unsteady import inner_values
from reducelower.verification.judging.witness import Witness, sides_with
from reducelower.verification.regions.places import Place
from reducelower.verification.result import OutputComparison
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.runtimes import Session, runtime_named, try_load
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source, computing
from reducelower.verification.running.wider import InDouble, with_bodies
from reducelower.verification.whole.question import Question, compared, compared_at, differ

__all__ = [
    "as_regions",
    "both_in_reference",
    "departing",
    "in_reference",
    "refuses",
    "searched",
    "with_sensitivity",
    "without_nan",
    "without_slight",
]


def as_regions(outputs: list[OutputComparison], regions: Regions | None) -> list[OutputComparison]:
    """Outputs of which some show what a region was asked to lose, or what one has right and the source overflows in.

    Or which are always the same, so that the region that gives them was compared on all that there is.
    """
    sites = () if regions is None else regions.findings
    fixed = _fixed(regions) if regions is not None and regions.hold else frozenset()
    chosen = any(site.status == "loses range" and site.is_chosen for site in sites)
    improved = any(site.status == "improved" for site in sites)
    found = []
    for item in outputs:
        if chosen and item.loses_range:
            item = replace(item, verdict="equal", reason=f"loses range: {item.reason}")
        elif improved and item.gains_range:
            item = replace(item, verdict="equal", reason=f"right where the source is not: {item.reason}")
        elif item.verdict == "different" and item.name in fixed:
            item = replace(item, verdict="equal", reason=f"as the region that gives it: {item.reason}")
        found.append(item)
    return found


def _fixed(regions: Regions) -> frozenset[str]:
    """What regions of the main graph give that is the same in every run."""
    main = (claim for claim in regions.alignment.claims if claim.level.left.parent is None)
    return frozenset(name for claim in main for name, _ in claim.pairs if claim.level.left.is_fixed(name))


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
        if differ(compared(question, *found, _sensitivity(question, *found))):
            for run, results in ((left, before), (right, after)):
                run.cases, run.results = [*run.cases[: len(run.results)], feeds], [*run.results, results]
            return compared(question, left, right)
    return outputs


def _sensitivity(
    question: Question, left: Run, right: Run, unsteady: Sequence[Callable[[], Session | None]] = ()
) -> list[dict[str, Move]]:
    """What explains the differences of each set of inputs, as far as the source's conditioning does."""

    def explains(at: int, moves: Mapping[str, Move]) -> bool:
        return at >= len(right.results) or not differ(compared_at(question, left, right, at, moves))

    return sensitivity(question.before.proto, left, question.request.seed, question.clock, explains, unsteady)


def without_slight(
    question: Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Withdraw what two runtimes may differ in: last digits, and what an operator's page leaves open of NaN."""
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
    return withdrawn(outputs, reason, lambda item: same[item.name], with_difference=True)


def without_nan(
    question: Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Withdraw what differs where NaN was given alone, if an operator's page leaves open what that does."""
    kind = open_to_special(all_nodes(question.before.proto))
    rest = [at for at, feeds in enumerate(left.cases[: len(right.results)]) if not any(map(_has_nan, feeds.values()))]
    if not kind or len(rest) == len(right.results):
        return list(outputs)
    known = {
        item.name for at in rest for item in compared_at(question, left, right, at, {}) if item.verdict == "different"
    }
    reason = f"NaN was given, of which the page of {kind} does not say what it does"
    return withdrawn(outputs, reason, lambda item: item.name not in known, with_difference=True)


def _has_nan(value: Any) -> bool:
    return isinstance(value, np.ndarray) and is_float(value) and bool(np.isnan(value.astype(np.float64)).any())


def _is_special(value: Any) -> bool:
    return isinstance(value, np.ndarray) and is_float(value) and not np.isfinite(value.astype(np.float64)).all()


def with_sensitivity(
    question: Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Accept what the source's own conditioning explains of each element, and say so."""
    unsteady = [cache(partial(_unsteady, question, left, inside=inside)) for inside in (False, True)]
    again = compared(question, left, right, _sensitivity(question, left, right, unsteady))
    is_inside = any(item.cache_info().currsize and item() is not None for item in unsteady)
    places = "the inputs and of rewritten values" if is_inside else "the inputs"
    kept = []
    for old, new in zip(outputs, again, strict=True):
        if old.verdict == "different" and new.verdict == "equal":
            question.notes.append(
                f"Output {new.name!r} differs by up to {new.max_absolute:.3g}, as much as a last digit of "
                f"{places} moves it."
            )
            kept.append(new)
        else:
            kept.append(old)
    return kept


def _unsteady(question: Question, left: Run, *, inside: bool) -> Session | None:
    """The source with values that move in their last places where no region differs that computes them otherwise.

    Inside, what the bodies of operators that are functions compute moves too; None where there is nothing of the kind.
    """
    regions = question.regions
    if regions is None or regions.unseen or not all(site.ok for site in regions.findings):
        return None  # where one was not run, the verdict is "not shown" all the same
    source = question.before
    claims = regions.alignment.claims
    model, values = source.proto, [(claim.level.left, name) for claim in claims for name, _ in claim.pairs]
    if inside:
        body = with_bodies(model)
        if body is None:
            return None
        known = {name for node in all_nodes(model) for name in node.output}
        place = Place(body, body.graph, Inference(lambda: body))
        named = [(place, name) for level, name in values if level.holder is model.graph]
        model, values = body, [*named, *inner_values(body, known)]
    moving = disturbed_inside(model, values)
    if moving is None:
        return None
    return try_load(runtime_named(left.runtime), Source(moving, folder=source.folder))


def both_in_reference(question: Question, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Compare within the reference evaluator where the two runtimes do not agree, unless it is no evidence there."""
    if wrong_in_reference(question.before.proto) or wrong_in_reference(question.after.proto):
        return outputs
    try:
        before = _source_elsewhere(question, right, runtime_named("reference").load)
        after = run_result(question.after, ("reference",), before, question.clock, [])
    except CannotRunError:
        return outputs
    again = compared(question, before, after)
    if differ(again) or len(after.results) < len(right.results):
        return outputs
    question.notes.append(
        "onnxruntime and the reference evaluator do not agree on this model; the comparison is within the latter."
    )
    return again


def _source_elsewhere(question: Question, right: Run, load: Callable[[Source], Session]) -> Run:
    """The source in another session, on the inputs that the result was run on."""
    question.clock.check()
    run = Run("reference", load(question.before), right.cases)
    for feeds in right.cases:
        question.clock.check()
        run.results.append(run.session.run(feeds, question.clock.left))
    return run


def departing(question: Question, left: Run, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Where every region holds, ask the reference evaluator what the source is: the runtime may depart from that.

    As it is, by the bodies of its operators, and in double: onnxruntime computes some less exactly than others. It is
    asked for no more of the source than the outputs that differ take, since there may be operators that it lacks.
    """
    told = {item.name for item in outputs if item.verdict == "different"}
    names = told if told <= {*question.output_names} else {*question.output_names}
    places = [at for at, name in enumerate(question.output_names) if name in names]
    left, right = (
        replace(run, results=[[values[at] for at in places] for values in run.results]) for run in (left, right)
    )
    question = replace(question, before=computing(question.before, names))
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
            for at, item in enumerate(compared(question, reference, right, _sensitivity(question, reference, right)))
        ]
        if not differ(again):
            break
    else:
        return outputs
    if question.clock.over:
        return outputs
    for item in outputs:
        if item.verdict == "different":
            question.departs.append(item.name)
            far = f" by up to {item.max_absolute:.3g}" if item.max_absolute else f" ({item.reason})"
            question.departed.append(
                f"{left.runtime} diverges from the specification on output {item.name!r} of the source{far}; "
                "onnx.reference agrees with the converted model"
            )
    found = {item.name: item for item in again}
    return [found.get(item.name, item) for item in outputs]


def _is_nearer(question: Question, left: Run, right: Run, reference: Run, at: int) -> bool:
    """Whether an output of the result, by its number, is much nearer to another run of the source than the source's."""
    for values in zip(left.results, right.results, reference.results, strict=False):
        before, after, truth = (each[at] for each in values)
        arrays = [item for item in (before, after, truth) if isinstance(item, np.ndarray)]
        if len({(item.dtype, item.shape) for item in arrays}) != 1 or len(arrays) < len(values):
            return False
        if is_slight(truth, after):
            continue  # as near as two runtimes may be of one model
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
