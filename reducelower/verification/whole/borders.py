"""Why two whole models differ: each region again on exactly what it was given, and the first value that differs.

If both sides of every region give the same for what the source computes there, the difference of the outputs is
rounding that the models amplify, since everything between the regions is the same by construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from onnx import ModelProto, NodeProto

from reducelower.model.graph import inner_path, subgraphs
from reducelower.model.text import counted
from reducelower.numerics.tolerance import APART
from reducelower.verification.checking.alike import nodes_of
from reducelower.verification.checking.checker import Checker
from reducelower.verification.findings import OutputComparison, SiteVerification
from reducelower.verification.judging.compare import compare_outputs, is_of_last_digits, withdrawn
from reducelower.verification.regions.claims import Alignment, Claim
from reducelower.verification.regions.cut import cut
from reducelower.verification.regions.numbering import content
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.result import Departure
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.source import CannotRunError
from reducelower.verification.whole.comparison import Comparison, far_apart
from reducelower.verification.whole.kept import keep_first
from reducelower.verification.whole.runs import inner_values, run_result, values_of

__all__ = ["at_borders", "first_difference"]


def at_borders(comparison: Comparison, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Accept differences that are only in the last digits, or that the regions explain.

    Regions explain a difference if both sides of each give the same on what the source computes there, or differ only
    because the runtime diverges from the specification.
    """
    assert comparison.regions is not None
    if not comparison.far_apart(is_near=is_of_last_digits) and not comparison.tolerances:
        return [replace(item, verdict="equal") if item.verdict == "different" else item for item in outputs]
    try:
        findings = _findings(comparison, comparison.regions.alignment)
    except CannotRunError as error:
        reason = f"it could not be seen what its parts were given: {error.reason}"
        return withdrawn(outputs, reason, with_difference=True)
    models = comparison.before.proto, comparison.after.proto
    if not all(finding.ok for finding in findings) or len(set(map(_defaults, models))) > 1:
        return outputs
    differing = [item for item in outputs if item.verdict == "different"]
    by_source = _sided_with(comparison, differing) if comparison.far_apart() else []
    outputs = [replace(item, verdict="equal") if item in by_source else item for item in outputs]
    differing = [item for item in differing if item not in by_source]
    unseen = [finding for finding in findings if finding.status == "not run"]
    if differing and unseen:
        return withdrawn(outputs, f"{unseen[0].place}: {unseen[0].reason}", with_difference=True)
    departed = [f"{finding.place}: {finding.reason}" for finding in findings if finding.status == "departs"]
    if departed and differing:
        comparison.departed += departed
        comparison.departs += [item.name for item in differing]
    else:
        comparison.notes += [
            f"Output {item.name!r} differs by up to {item.max_absolute:.3g}; each rewritten part gives the same of "
            "what it was given there, so that is rounding which the model amplifies."
            for item in differing
        ]
    return [replace(item, verdict="equal") if item.verdict == "different" else item for item in outputs]


def _sided_with(comparison: Comparison, differing: Sequence[OutputComparison]) -> list[OutputComparison]:
    """The outputs for which the evaluator gives, for the source, what the runtime gives for the result; noted."""
    if wrong_in_reference(comparison.before.proto):
        return []
    try:
        evaluated = run_result(comparison.before, ("reference",), comparison.left, comparison.clock, [])
    except CannotRunError:
        return []
    names = comparison.output_names
    sided = far_apart(names, evaluated, comparison.left) - far_apart(names, evaluated, comparison.right)
    agreed = [item for item in differing if item.name in sided]
    new = [item for item in agreed if item.name not in comparison.departs]
    comparison.departs += [item.name for item in new]
    if new:
        first = new[0]
        likewise = f" ({counted(len(new) - 1, 'more output')} likewise)" if len(new) > 1 else ""
        how = "in shape" if first.shape_before != first.shape_after else f"by up to {first.max_absolute:.3g}"
        comparison.departed.append(
            f"onnxruntime diverges from the specification on output {first.name!r} of the source {how}; "
            f"onnx.reference agrees with the converted model{likewise}"
        )
    return agreed


def _defaults(model: ModelProto) -> frozenset[object]:
    """The values of inputs that a caller may override; the regions are fed others."""
    inputs = {value.name for value in model.graph.input}
    return frozenset((item.name, content(item)) for item in model.graph.initializer if item.name in inputs)


def _findings(comparison: Comparison, alignment: Alignment) -> list[SiteVerification]:
    """What the regions of the main graph give on what they are given in the runs that differ, like regions together.

    Regions that differ in sizes alone are like, since only what they are given is fed.

    Their inputs are captured for as many regions at once as memory allows.
    """
    cases = comparison.differing_cases()

    def inside(at: int, names: Sequence[str]) -> dict[str, Any]:
        given = comparison.left.cases[at]
        return {**given, **inner_values(comparison.before, comparison.left, at, names, comparison.clock)}

    groups: dict[object, list[Pair]] = {}
    for claim in _in_main_graph(alignment):
        comparison.clock.check()
        pair = cut(claim)
        groups.setdefault(pair.key, []).append(pair)
    checker = Checker(comparison.request.seed, comparison.tolerances, comparison.clock)

    def settled(groups: Sequence[Sequence[Pair]]) -> list[SiteVerification]:
        inputs = {item.name for pairs in groups for pair in pairs for item in pair.inputs}
        try:
            captured = [values_of(comparison.before.proto, partial(inside, at), inputs) for at in cases]
        except TooLargeError:
            if len(groups) < 2:
                raise
            half = len(groups) // 2
            return settled(groups[:half]) + settled(groups[half:])
        findings = []
        for pairs in groups:
            samples = [_inputs_of(pair, values, pairs[0]) for pair in pairs for values in captured]
            finding = checker.settle(pairs[0], samples, only_samples=True)
            if not finding.ok and _lose_digits_inside(comparison, pairs[0]):
                loss = "graphs inside lose digits as definitions of operators do, which may explain it"
                finding = replace(finding, status="not run", reason=f"{loss}: {finding.reason}")
            findings.append(replace(finding, nodes=nodes_of(pair.claim for pair in pairs)))
        return findings

    return settled(list(groups.values()))


def _lose_digits_inside(comparison: Comparison, pair: Pair) -> bool:
    """Whether a region holds graphs in which some rewrites are only as exact as the definition of the operator."""
    holds_graphs = any(True for node in pair.nodes for _ in subgraphs(node))
    findings = () if comparison.regions is None else comparison.regions.findings
    inside = (finding for finding in findings if any(graph != "graph" for graph, _ in finding.nodes))
    return holds_graphs and any(finding.status == "overflow" for finding in inside)


def _inputs_of(pair: Pair, values: Mapping[str, Any], first: Pair) -> dict[str, Any]:
    """The inputs of a region, by the names that they have in the first region of its group."""
    names = zip(first.inputs, pair.inputs, strict=True)
    try:
        return {item.name: values[own.name] for item, own in names}
    except KeyError as missing:
        raise CannotRunError(f"{missing} is none of the values of the first model") from None


def _in_main_graph(alignment: Alignment) -> Iterator[Claim]:
    """The claims of the main graph without a proof; for claims inside nodes, that the nodes around them are equal."""
    main = alignment.levels[0]
    inner = {claim.level.path for claim in alignment.claims} - {main.path}
    yield from (claim for claim in alignment.claims if claim.level is main and not claim.is_same)
    claimed = {name for claim in alignment.claims if claim.level is main for _, name in claim.pairs}
    by_number = {number: name for name, number in main.left.numbers.items()}
    for node in main.right.holder.node if inner else ():
        pairs = [(by_number.get(main.right.numbers[name], ""), name) for name in node.output if name]
        if all(left and name not in claimed for left, name in pairs) and pairs:
            source = main.left.producer(pairs[0][0])
            if source is not None and _holds(source, main.left.positions[pairs[0][0]], main.path, inner):
                yield Claim(main, pairs)


def _holds(node: NodeProto, at: int, path: str, inner: set[str]) -> bool:
    """Whether one of some paths leads into a node."""
    paths = [inner_path(path, node, at, name) for _, name, _ in subgraphs(node)]
    return any(each == one or each.startswith(f"{one}/") for each in inner for one in paths)


def first_difference(comparison: Comparison) -> Departure | None:
    """The first value of the source, in the order of its nodes, that the other model computes differently.

    It is looked for on the first inputs on which an output differs, among the values that have a counterpart; in one
    runtime, among those that are not the same by construction. None if no such value differs by more than two runtimes
    may, if the models take no more outputs, or if no time is left. The part that shows it is kept, if that is asked.
    """
    if comparison.regions is None:
        return None
    level = comparison.regions.alignment.levels[0]
    claims = [claim for claim in comparison.regions.alignment.claims if claim.level is level]
    pairs = [pair for claim in claims for pair in claim.pairs]
    if not comparison.are_together:
        same = {number: name for name, number in level.right.numbers.items() if name in level.right.positions}
        pairs += [(name, same[number]) for name, number in level.left.numbers.items() if number in same]
    positions = level.left.positions
    paired = dict(sorted((pair for pair in pairs if pair[0] in positions), key=lambda pair: positions[pair[0]]))
    at = next(iter(comparison.differing_cases()), None)
    if at is None or not paired:
        return None
    left, right, clock = comparison.left, comparison.right, comparison.clock
    try:
        before = inner_values(comparison.before, left, at, list(paired), clock)
        after = inner_values(comparison.after, right, at, list(dict.fromkeys(paired.values())), clock)
    except CannotRunError:
        return None
    there = [after[counterpart] for counterpart in paired.values()]
    compared = compare_outputs(list(paired), list(before.values()), there, runtime="", widen=APART, by_tensor=True)
    wrong = {item.name: item.reason for item in compared if item.verdict == "different"}
    name = next((name for name in paired if name in wrong), None)
    if name is None:
        return None
    node = level.left.holder.node[positions[name]]
    named = node.name or f"{node.op_type}#{positions[name]}"
    if comparison.keep is not None:
        pair = name, paired[name]
        claim = next((claim for claim in claims if pair in claim.pairs), Claim(level, [pair]))
        sides = (comparison.before, comparison.after), (left, right)
        comparison.kept = keep_first(comparison.keep, claim, *sides, at, clock)
    return Departure(named, node.op_type, positions[name], name, wrong[name])
