"""Where two whole models part: what rewritten nodes were given in a run, and the first value that diverges.

Both sides of each region are fed exactly what the first model computes there. If they give the same, what differs in
the end is rounding that the models amplify, since all between the regions is the same by construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from onnx import ModelProto, NodeProto

from reducelower.model.graph import inner_path, subgraphs, walk
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.text import counted
from reducelower.numerics.tolerance import APART
from reducelower.verification.checking.alike import nodes_of
from reducelower.verification.checking.checker import Checker
from reducelower.verification.findings import OutputComparison, SiteVerification
from reducelower.verification.judging.compare import compare_outputs, is_of_last_digits, withdrawn
from reducelower.verification.regions.claims import Alignment, Claim
from reducelower.verification.regions.cut import Region, cut_region
from reducelower.verification.regions.numbering import content
from reducelower.verification.result import Departure
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.source import CannotRunError
from reducelower.verification.whole.kept import keep_first
from reducelower.verification.whole.question import Question, compared_at, differ, far_apart, in_evaluator
from reducelower.verification.whole.runs import Run, inner_values, values_of

__all__ = ["at_borders", "first_difference"]


def at_borders(question: Question, left: Run, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Accept what regions explain that give the same of exactly what they are given, or differ in the runtime alone.

    They are not asked about the last digits of an output.
    """
    assert question.regions is not None
    if not far_apart(question, left, right, is_near=is_of_last_digits) and not question.tolerances:
        return [replace(item, verdict="equal") if item.verdict == "different" else item for item in outputs]
    cases = range(min(len(left.results), len(right.results)))
    differing = [at for at in cases if differ(compared_at(question, left, right, at))]
    try:
        findings = _findings(question, question.regions.alignment, left, differing)
    except CannotRunError as error:
        reason = f"it could not be seen what its parts were given: {error.reason}"
        return withdrawn(outputs, reason, with_difference=True)
    models = question.before.proto, question.after.proto
    if not all(finding.ok for finding in findings) or len(set(map(_defaults, models))) > 1:
        return outputs
    told = [item for item in outputs if item.verdict == "different"]
    by_source = _sided_with(question, left, right, told) if far_apart(question, left, right) else []
    outputs = [replace(item, verdict="equal") if item in by_source else item for item in outputs]
    told = [item for item in told if item not in by_source]
    unseen = [finding for finding in findings if finding.status == "not run"]
    if told and unseen:
        return withdrawn(outputs, f"{unseen[0].place}: {unseen[0].reason}", with_difference=True)
    departed = [f"{finding.place}: {finding.reason}" for finding in findings if finding.status == "departs"]
    question.departed.extend(departed if told else ())
    question.departs.extend(item.name for item in told if departed)
    question.notes.extend(
        f"Output {item.name!r} differs by up to {item.max_absolute:.3g}; each rewritten part gives the same of what it "
        "was given there, so that is rounding which the model amplifies."
        for item in told
        if not departed
    )
    return [replace(item, verdict="equal") if item.verdict == "different" else item for item in outputs]


def _sided_with(question: Question, left: Run, right: Run, told: Sequence[OutputComparison]) -> list[OutputComparison]:
    """The outputs of which the evaluator gives of the source what the runtime gives of the result, which are noted."""
    found = in_evaluator(question, question.before, left)
    if found is None:
        return []
    sided = far_apart(question, found, left) - far_apart(question, found, right)
    agreed = [item for item in told if item.name in sided]
    untold = [item for item in agreed if item.name not in question.departs]
    question.departs.extend(item.name for item in untold)
    if untold:
        first = untold[0]
        likewise = f" ({counted(len(untold) - 1, 'more output')} likewise)" if len(untold) > 1 else ""
        how = "in shape" if first.shape_before != first.shape_after else f"by up to {first.max_absolute:.3g}"
        question.departed.append(
            f"onnxruntime diverges from the specification on output {first.name!r} of the source {how}; "
            f"onnx.reference agrees with the converted model{likewise}"
        )
    return agreed


def _defaults(model: ModelProto) -> frozenset[object]:
    """The values of inputs that a caller may override, which are taken for inputs."""
    inputs = {value.name for value in model.graph.input}
    return frozenset((item.name, content(item)) for item in model.graph.initializer if item.name in inputs)


def _findings(question: Question, alignment: Alignment, run: Run, cases: Sequence[int]) -> list[SiteVerification]:
    """What each region of the main graph gives of what it is given in some runs, those together that are alike.

    What they are given is kept for as many at once as memory allows.
    """
    before = question.before

    def inside(at: int, names: Sequence[str]) -> dict[str, Any]:
        return {**run.cases[at], **inner_values(before, run, at, names, question.clock)}

    groups: dict[object, list[Region]] = {}
    for claim in _in_main_graph(alignment):
        question.clock.check()
        region = cut_region(claim)
        groups.setdefault(region.pair.identity, []).append(region)
    checker = Checker(question.request.seed, question.tolerances, question.clock)

    def settled(groups: Sequence[Sequence[Region]]) -> list[SiteVerification]:
        inputs = {item.name for regions in groups for region in regions for item in region.pair.inputs}
        try:
            seen = [values_of(before.proto, partial(inside, at), inputs) for at in cases]
        except TooLargeError:
            if len(groups) < 2:
                raise
            half = len(groups) // 2
            return settled(groups[:half]) + settled(groups[half:])
        findings = []
        for regions in groups:
            given = [_given(region, values, regions[0]) for region in regions for values in seen]
            found = checker.settle(regions[0].pair, given, alone=True)
            if not found.ok and _lose_digits_inside(question, regions[0]):
                reason = (
                    f"graphs inside lose digits as definitions of operators do, which may explain it: {found.reason}"
                )
                found = replace(found, status="not run", reason=reason)
            findings.append(replace(found, nodes=nodes_of(region.pair.site for region in regions)))
        return findings

    return settled(list(groups.values()))


def _lose_digits_inside(question: Question, region: Region) -> bool:
    """Whether a region holds graphs, in some of which rewrites are only as exact as definitions are."""
    holds_graphs = any(True for node in region.pair.nodes for _ in subgraphs(node))
    findings = () if question.regions is None else question.regions.findings
    inside = (finding for finding in findings if any(graph != "graph" for graph, _ in finding.nodes))
    return holds_graphs and any(finding.status == "overflow" for finding in inside)


def _given(region: Region, values: Mapping[str, Any], first: Region) -> dict[str, Any]:
    """The inputs of a region, by the names that they have in one that is alike."""
    names = zip(first.pair.inputs, region.pair.inputs, strict=True)
    try:
        return {item.name: values[own.name] for item, own in names}
    except KeyError as missing:
        raise CannotRunError(f"{missing} is none of the values of the first model") from None


def _in_main_graph(alignment: Alignment) -> Iterator[Claim]:
    """The claims of the main graph, and for those in graphs and functions inside, that the nodes around are equal."""
    main = alignment.levels[0]
    inner = {claim.level.path for claim in alignment.claims} - {main.path}
    yield from (claim for claim in alignment.claims if claim.level is main)
    claimed = {name for claim in alignment.claims if claim.level is main for _, name in claim.pairs}
    by_number = {number: name for name, number in main.left_numbers.items()}
    for node in main.right.holder.node if inner else ():
        pairs = [(by_number.get(main.right_numbers[name], ""), name) for name in node.output if name]
        if all(left and name not in claimed for left, name in pairs) and pairs:
            source = main.left.producer(pairs[0][0])
            if source is not None and _holds(source, main.left.positions[pairs[0][0]], main.path, inner):
                yield Claim(main, pairs)


def _holds(node: NodeProto, at: int, path: str, inner: set[str]) -> bool:
    """Whether one of some paths leads into a node, or into a function that it may call."""
    paths = [inner_path(path, node, at, name) for _, name, _ in subgraphs(node)]
    calls = any(each.startswith("functions/") for each in inner) and any(
        item.domain not in DEFAULT_DOMAINS for item in walk([node])
    )
    return calls or any(each == one or each.startswith(f"{one}/") for each in inner for one in paths)


def first_difference(question: Question, left: Run, right: Run) -> Departure | None:
    """The first value of the source, in the order of its nodes, that the other model computes otherwise.

    It is looked for on the first set of inputs on which an output differs, among the values that have a counterpart; in
    one runtime, among those that are not the same by construction. None where no such value is off by more than two
    runtimes may be, where the models take no more outputs, or where no time is left.
    """
    if question.regions is None:
        return None
    level = question.regions.alignment.levels[0]
    claims = [claim for claim in question.regions.alignment.claims if claim.level is level]
    pairs = [pair for claim in claims for pair in claim.pairs]
    if left.runtime != right.runtime:
        same = {number: name for name, number in level.right_numbers.items() if name in level.right.positions}
        pairs += [(name, same[number]) for name, number in level.left_numbers.items() if number in same]
    positions = level.left.positions
    paired = dict(sorted((pair for pair in pairs if pair[0] in positions), key=lambda pair: positions[pair[0]]))
    cases = range(min(len(left.results), len(right.results)))
    at = next((at for at in cases if differ(compared_at(question, left, right, at))), None)
    if at is None or not paired:
        return None
    try:
        before = inner_values(question.before, left, at, list(paired), question.clock)
        after = inner_values(question.after, right, at, list(dict.fromkeys(paired.values())), question.clock)
    except CannotRunError:
        return None
    there = {name: after[counterpart] for name, counterpart in paired.items()}
    found = compare_outputs(
        list(paired), list(before.values()), list(there.values()), runtime="", widen=APART, by_tensor=True
    )
    wrong = {item.name: item.reason for item in found if item.verdict == "different"}
    name = next((name for name in paired if name in wrong), None)
    if name is None:
        return None
    node = level.left.holder.node[positions[name]]
    named = node.name or f"{node.op_type}#{positions[name]}"
    if question.keep is not None:
        pair = name, paired[name]
        claim = next((claim for claim in claims if pair in claim.pairs), Claim(level, [pair]))
        sides = (question.before, question.after), (left, right)
        question.kept[:] = keep_first(question.keep, claim, *sides, at, question.clock)
    return Departure(named, node.op_type, positions[name], name, wrong[name])
