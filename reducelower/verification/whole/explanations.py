"""Why the outputs of two whole models may differ although the models are the same; asked in order until none does.

If both sides of every region give the same for what the source computes there, the difference of the outputs is
rounding that the models amplify, since everything between the regions is the same by construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeGuard

import numpy as np
from onnx import ModelProto

from reducelower.model.graph import all_nodes, may_hold_graphs
from reducelower.numerics.tolerance import APART, Tolerance
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.sites import Regions, nodes_of
from reducelower.verification.findings import SiteVerification
from reducelower.verification.judging.compare import compare_outputs
from reducelower.verification.judging.sides import REDRAWN
from reducelower.verification.operators import BY_PROBABILITY, RANDOM
from reducelower.verification.regions.claims import Alignment, Claim
from reducelower.verification.regions.cut import cut, lemma
from reducelower.verification.regions.numbering import content
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.reference import no_evidence, wrong_in_reference
from reducelower.verification.running.source import CannotRunError, OutOfTimeError
from reducelower.verification.whole.comparison import Comparison
from reducelower.verification.whole.runs import Run, run_result

__all__ = ["explain"]


def explain(comparison: Comparison) -> None:
    """Accept the differences that are explained, and withdraw those that show nothing."""
    clock = conditions().clock
    with suppress(OutOfTimeError):
        for explanation in (_drawn, _range, _regions, _doubts):
            if comparison.differing:
                explanation(comparison)
    if clock.over or _are_cut_short(comparison.regions):
        ended = f"the budget of {clock.budget:g} s ended before it was clear what explains the difference"
        comparison.settle("not compared", f"{ended}; raise --verify-budget")


def _drawn(comparison: Comparison) -> None:
    """Withdraw outputs for which the source gives other values when it is run on the same inputs again.

    Two runtimes draw numbers of their own, whatever the seed. What is drawn by probability may be certain here.
    """
    kinds = {node.op_type for node in all_nodes(comparison.before.proto)} & RANDOM
    if not kinds:
        return
    run, names = comparison.left, comparison.output_names
    session = run.load()
    drawn = set(names if kinds & BY_PROBABILITY or not comparison.are_together else ())
    for at in comparison.differing_cases() * REDRAWN:
        if all(item.name in drawn for item in comparison.differing):
            break
        again = session.run(run.given(at))[: len(names)]
        compared = compare_outputs(names, run.results[at], again, runtime="")
        drawn |= {item.name for item in compared if item.verdict == "different"}
    reason = f"the source gives different values each time it is run ({', '.join(sorted(kinds))})"
    comparison.settle("not compared", reason, lambda item: item.name in drawn and item.shape_before == item.shape_after)


def _range(comparison: Comparison) -> None:
    """Accept outputs that lose or gain range, where a region was asked to lose it or is better than the source."""
    sites = () if comparison.regions is None else comparison.regions.findings
    if any(site.status == "loses range" and site.is_chosen for site in sites):
        comparison.settle("equal", "loses range", lambda item: item.loses_range)
    if any(site.status == "improved" for site in sites):
        comparison.settle("equal", "right where the source is not", lambda item: item.gains_range)


def _regions(comparison: Comparison) -> None:
    """Accept differences that are only in the last digits, or that the regions explain.

    Regions explain a difference if both sides of each give the same on what the source computes there, or differ only
    because the runtime diverges from the specification.
    """
    regions, names = comparison.regions, comparison.output_names
    if regions is None or not regions.hold or comparison.before is comparison.after:
        return
    if comparison.right.runtime not in ("onnxruntime", "reference"):
        return
    if not conditions().tolerances and not _far_apart(
        names, comparison.left, comparison.right, tolerances=_OF_A_FEW_SUMS
    ):
        comparison.settle("equal")
        return
    try:
        findings = _at_borders(comparison, regions.alignment)
    except CannotRunError as error:
        comparison.settle("not compared", f"it could not be seen what its parts were given: {error.reason}")
        return
    models = comparison.before.proto, comparison.after.proto
    if not all(finding.ok for finding in findings) or len(set(map(_defaults, models))) > 1:
        return
    if _far_apart(names, comparison.left, comparison.right):
        _side_with_evaluator(comparison, max(findings, key=_RELATIVE).place if findings else "")
    unseen = [finding for finding in findings if finding.status == "not run"]
    if unseen:
        comparison.settle("not compared", f"{unseen[0].place}: {unseen[0].reason}")
    departed = [f"{finding.place}: {finding.reason}" for finding in findings if finding.status == "departs"]
    if departed and comparison.differing:
        comparison.departs += departed
        comparison.settle("departs")
    else:
        comparison.notes += [
            f"Output {item.name!r} differs by up to {item.max_absolute:.3g}; each rewritten part gives the same of "
            "what it was given there, so that is rounding which the model amplifies."
            for item in comparison.differing
        ]
    comparison.settle("equal")


def _side_with_evaluator(comparison: Comparison, place: str) -> None:
    """Accept the outputs for which the evaluator gives, for the source, what the runtime gives for the result.

    `place` is the part whose sides are farthest apart.
    """
    if wrong_in_reference(comparison.before.proto):
        return
    with suppress(CannotRunError):
        evaluated = run_result(comparison.before, ("reference",), comparison.left, [])
        names = comparison.output_names
        sided = _far_apart(names, evaluated, comparison.left) - _far_apart(names, evaluated, comparison.right)
        for item in comparison.differing:
            if item.name in sided:
                how = "in shape" if item.shape_before != item.shape_after else f"by up to {item.max_absolute:.3g}"
                comparison.departs.append(
                    f"onnxruntime diverges from the specification on output {item.name!r} of the source {how}"
                    f"{f', most at {place}' if place else ''}; onnx.reference agrees with the converted model"
                )
        comparison.settle("departs", is_meant=lambda item: item.name in sided)


def _defaults(model: ModelProto) -> frozenset[object]:
    """The values of inputs that a caller may override; the regions are fed others."""
    inputs = {value.name for value in model.graph.input}
    return frozenset((item.name, content(item)) for item in model.graph.initializer if item.name in inputs)


def _at_borders(comparison: Comparison, alignment: Alignment) -> list[SiteVerification]:
    """What the regions of the main graph give on what they are given in the runs that differ, like regions together.

    Regions that differ in sizes alone are like, since only what they are given is fed. Their inputs are captured for
    as many regions at once as memory allows.
    """
    cases, checker = comparison.differing_cases(), Checker()
    parts: list[tuple[Claim, Pair | None, list[str]]] = []
    for claim in _in_main_graph(alignment):
        conditions().clock.check()
        pair = cut(claim) if claim.entry is None else None
        names = [claim.names[part] for part in claim.operands] if pair is None else pair.input_names
        parts.append((claim, pair, names))

    def settled(parts: Sequence[tuple[Claim, Pair | None, list[str]]]) -> list[SiteVerification]:
        read = {name for _, _, names in parts for name in names}
        try:
            captured = [comparison.left.values(at, read) for at in cases]
        except TooLargeError:
            if len(parts) < 2:
                raise
            half = len(parts) // 2
            return settled(parts[:half]) + settled(parts[half:])
        groups: dict[object, tuple[Pair, list[Claim], list[dict[str, Any]]]] = {}
        for claim, pair, names in parts:
            given = [_picked(values, names) for values in captured]
            types = (getattr(value, "dtype", None) for value in given[0])
            kind = (id(claim.entry), *types) if pair is None else pair.key
            if kind not in groups:
                groups[kind] = (pair or lemma(claim, captured[0])), [], []
            first, claims, samples = groups[kind]
            claims.append(claim)
            samples += [dict(zip(first.input_names, each, strict=True)) for each in given]
        return [
            replace(checker.settle(pair, samples, only_samples=True), nodes=nodes_of(claims))
            for pair, claims, samples in groups.values()
        ]

    return settled(parts)


def _picked(values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The values of these names, in order."""
    try:
        return [values[name] for name in names]
    except KeyError as missing:
        raise CannotRunError(f"{missing} is none of the values of the first model") from None


def _in_main_graph(alignment: Alignment) -> Iterator[Claim]:
    """The claims of the main graph without a proof; for claims inside nodes, that the nodes around them are equal."""
    main = alignment.levels[0]
    claims = [claim for claim in alignment.claims if claim.level is main]
    yield from (claim for claim in claims if not claim.is_same)
    claimed = {name for claim in claims for name, _ in claim.pairs}
    by_number = {number: name for name, number in main.right.numbers.items()}
    for node in main.left.holder.node if len(claims) < len(alignment.claims) else ():
        pairs = [(name, by_number.get(main.left.numbers[name], "")) for name in node.output if name]
        if may_hold_graphs(node) and pairs and all(right and left not in claimed for left, right in pairs):
            yield Claim(main, pairs)


def _doubts(comparison: Comparison) -> None:
    """Withdraw differences that show nothing: rounding may explain them, or the evaluator be wrong."""
    left, right = comparison.left, comparison.right
    doubt = no_evidence([(left.runtime, comparison.before.proto), (right.runtime, comparison.after.proto)])
    if doubt:
        comparison.settle("not compared", doubt)
    if not comparison.are_together or _are_open(comparison.regions):
        reason = "rounding may explain as much, in parts that were not run"
        if not comparison.are_together:
            reason = f"{left.runtime} and {right.runtime} may differ as much"
        far = _far_apart(comparison.output_names, left, right)
        comparison.settle("not compared", reason, lambda item: item.name not in far)


def _are_cut_short(regions: Regions | None) -> bool:
    """Whether some regions of a conversion were not reached; without a plan, these may differ as well."""
    return _are_open(regions) and bool(regions.unseen) and any(claim.site for claim in regions.alignment.claims)


def _are_open(regions: Regions | None) -> TypeGuard[Regions]:
    """Whether some regions were not run, and no other one differs."""
    return regions is not None and not regions.hold and all(item.ok for item in regions.findings)


_RELATIVE = attrgetter("max_relative")
# Some operators, such as Attention and BatchNormalization, compute doubles in single precision inside.
_OF_TWO_RUNTIMES: Mapping[str, Any] = {"widen": APART, "tolerances": {"double": Tolerance(relative=1e-5)}}
# A few sums may be off by this many last digits of the largest value of a tensor.
_OF_A_FEW_SUMS = {
    name: Tolerance(relative=8 * float(np.finfo(dtype).eps))
    for name, dtype in (("double", np.float64), ("float", np.float32))
}


def _far_apart(names: Sequence[str], left: Run, right: Run, **how: Any) -> set[str]:
    """The outputs, or parts of them, of which two runs give values that are farther apart than two runtimes may be."""
    return {
        item.name
        for before, after in zip(left.results, right.results, strict=False)
        for item in compare_outputs(names, before, after, runtime="", by_tensor=True, **(how or _OF_TWO_RUNTIMES))
        if item.verdict == "different"
    }
