"""Verifies each region in which two models differ by itself; regions that are the same up to names run once.

A plan names some regions, its sites, beforehand. Aligning the models finds the others. Each is checked as generally as
possible: a rewrite with all that it did not ask about left free, or else a region of these models with free weights.
If that differs, it is checked again with its own weights, and with the nodes around it: these may never give the values
on which it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from onnx import ModelProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.plan import Plan
from reducelower.text import counted
from reducelower.types import Inference
from reducelower.verification.checking.checker import Checker, some
from reducelower.verification.findings import SiteVerification
from reducelower.verification.regions.align import align
from reducelower.verification.regions.claims import Alignment, Claim
from reducelower.verification.regions.cut import cut, lemma
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.source import CannotRunError, OutOfTimeError

__all__ = ["Regions", "nodes_of", "of_rewrites", "verify_regions"]

Judged = tuple[SiteVerification, list[Claim]]
"""A finding with its claims."""

_RINGS = 3


@dataclass(frozen=True)
class Regions:
    """The findings for the regions of two models.

    Attributes:
        alignment: what the models have in common.
        judged: each finding, with the claims that it is about.
        left: how many regions were not reached in time.
        unseen: why some regions were not tried; empty if all were.
    """

    alignment: Alignment
    judged: Sequence[Judged]
    left: int = 0
    unseen: str = ""

    @cached_property
    def findings(self) -> tuple[SiteVerification, ...]:
        """One per distinct region, in graph order of the first of each."""
        return tuple(replace(finding, nodes=nodes_of(claims)) for finding, claims in self.judged)

    @property
    def hold(self) -> bool:
        """Whether every region ran and agreed."""
        return not self.unseen and all(finding.holds_alone for finding, _ in self.judged)

    def may_mislead(self) -> bool:
        """Whether a claim failed that only names tell of."""
        return any(claim.is_guess for finding, claims in self.judged if not finding.ok for claim in claims)

    def undecided(self, unseen: str) -> Regions:
        """The same when there is no time for another alignment.

        That may pair other values, so a region that differs is no difference of the models yet, unless a plan says
        that its values are the same.
        """
        judged = list(self.judged)
        for at, (finding, claims) in enumerate(judged):
            if not finding.ok and all(claim.site is None for claim in claims):
                reason = f"{finding.reason}, if its results are meant to be the same, which was not seen"
                judged[at] = replace(finding, status="not run", reason=reason), claims
        return replace(self, judged=judged, unseen=unseen)


def nodes_of(claims: Iterable[Claim]) -> tuple[tuple[str, str], ...]:
    """Graph path and node name of each claim."""
    return tuple((claim.named.graph, claim.named.node) for claim in claims)


def verify_regions(
    before: ModelProto,
    after: ModelProto,
    plan: Plan | None = None,
    *,
    checker: Checker | None = None,
) -> Regions:
    """Run both sides of every region as two small models on the same inputs, per distinct region.

    Two regions are the same if their operators, attributes, constants, element types and ranks are. Both sides of a
    region run on ordinary and edge values, and on values either side of every constant in it (`feeding`). They are
    compared by tolerances; a Reduce operator is compared with its value in exact arithmetic. If they differ in
    onnxruntime, onnx's reference evaluator decides whose fault it is.

    Names of values may mislead. If a region differs that only names tell of, the models are aligned once more without.

    Args:
        before, after: the source model and the converted model, without local functions.
        plan: what the conversion did, if there was one.
        checker: checks each region until the time is over; `Regions.unseen` says what was not reached.
    """
    checker = checker or Checker()
    aligned = partial(align, before, after, plan, inferences=(Inference(before), Inference(after)))
    first = _judge(aligned(), checker)
    clock = conditions().clock
    within = f"within the budget of {clock.budget or 0:g} s; raise --verify-budget"
    if first.left:
        regions = f"{first.left:,} of {counted(len(first.alignment.claims), 'differing region')}"
        return first.undecided(f"{regions} not reached {within}")
    if not first.may_mislead():
        return first
    second = None if clock.over else _judge(aligned(by_name=False), checker)
    if second is None or second.left:
        return first.undecided(f"whether regions hold where the models are aligned otherwise was not seen {within}")
    return second if all(finding.ok for finding, _ in second.judged) else first


def _judge(alignment: Alignment, checker: Checker) -> Regions:
    """A finding for each distinct region of an alignment, as far as time allows."""
    judged: list[Judged] = []
    with suppress(OutOfTimeError):
        judged.extend(_findings(alignment.claims, checker))
    return Regions(alignment, judged, len(alignment.claims) - sum(len(claims) for _, claims in judged))


def _findings(claims: Sequence[Claim], checker: Checker) -> Iterator[Judged]:
    """Findings for rewrites that hold in all models, then for the rest as regions of these models."""
    settled: set[int] = set()
    for finding, alike in of_rewrites(claims, checker):
        settled |= set(map(id, alike))
        yield finding, alike
    groups: dict[object, list[Pair]] = {}
    uncut: dict[tuple[str, str, str], list[Claim]] = {}
    for claim in (claim for claim in claims if id(claim) not in settled):
        conditions().clock.check()
        try:
            pair = cut(claim)
            # Kernels of other domains may pack weights, and compute otherwise with those that are inputs.
            if any(node.domain not in DEFAULT_DOMAINS for node in (*pair.nodes, *pair.replacement)):
                pair = cut(claim, fixed=True)
            groups.setdefault(pair.key, []).append(pair)
        except CannotRunError as error:
            uncut.setdefault((claim.named.op_type, claim.named.rule, error.reason), []).append(claim)
    for (op_type, rule, reason), alike in uncut.items():
        yield SiteVerification(op_type, rule, (), "not run", reason), alike
    in_main = (pair for pairs in groups.values() for pair in some(pairs) if pair.site.graph == "graph")
    checker.watch({pair.real(name) for pair in in_main for name in pair.input_names})
    for pairs in groups.values():
        finding = checker.check(pairs)
        if _holds(finding):
            yield finding, [pair.claim for pair in pairs]
        else:
            yield from _one_by_one(pairs, checker, finding)


def of_rewrites(claims: Sequence[Claim], checker: Checker) -> Iterator[Judged]:
    """Findings for rewrites that are the same by structure, or hold whatever they did not ask about.

    Rewrites of one entry are one, on operands like those that some of them have in a run of the source.
    """
    same: dict[tuple[str, str], list[Claim]] = {}
    kinds: dict[int, list[Claim]] = {}
    for claim in claims:
        if claim.is_same:
            same.setdefault((claim.named.op_type, claim.named.rule), []).append(claim)
        elif claim.entry is not None:
            kinds.setdefault(id(claim.entry), []).append(claim)
    for (op_type, rule), alike in same.items():
        yield SiteVerification(op_type, rule, (), is_proved=True), alike
    chosen = [claim for alike in kinds.values() for claim in some(alike) if claim.level.path == "graph"]
    checker.watch({claim.names[part] for claim in chosen for part in claim.operands})
    groups: dict[object, tuple[list[Pair], list[Claim]]] = {}
    for alike in kinds.values():
        conditions().clock.check()
        pairs = [lemma(claim, checker.seen) for claim in some(alike)]
        group = groups.setdefault(tuple(dict.fromkeys(pair.key for pair in pairs)), ([], []))
        group[0].extend(pairs)
        group[1].extend(alike)
    for pairs, alike in groups.values():
        of_types: dict[tuple[Any, ...], list[Pair]] = {}
        for pair in sorted(pairs, key=lambda pair: len(pair.ones)):
            # Where sizes are free, 1 is tried, too.
            general = (key for key in of_types if key[0] == pair.kind and set(key[1]) <= set(pair.ones))
            of_types.setdefault(next(general, pair.key), []).append(pair)
        found = [(checker.check(each), each[0]) for each in of_types.values()]
        if all(_holds(finding) for finding, _ in found):
            yield next((finding for finding, _ in found if finding.status != "equal"), found[0][0]), alike


def _holds(finding: SiteVerification) -> bool:
    """Whether a finding is good enough for a region, and all that are like it.

    A runtime may diverge only at sizes or values that the model never has.
    """
    return finding.holds_alone and finding.status != "departs"


def _one_by_one(pairs: Sequence[Pair], checker: Checker, finding: SiteVerification) -> Iterable[Judged]:
    """The findings for like regions that do not hold together, at their own sizes or in their places."""
    is_known = all(pair.sizes == pairs[0].sizes for pair in pairs)
    known = {pairs[0].identity: finding} if is_known else {}
    judged: dict[object, Judged] = {}

    def check(pair: Pair) -> SiteVerification:
        if pair.identity not in known:
            known[pair.identity] = checker.check([pair])
        return known[pair.identity]

    for pair in pairs:
        used, found = pair, check(pair)
        if not _holds(found):
            used, found = _in_place(pair, check) or (used, found)
        judged.setdefault(used.identity, (found, []))[1].append(pair.claim)
    return judged.values()


def _in_place(pair: Pair, check: Callable[[Pair], SiteVerification]) -> tuple[Pair, SiteVerification] | None:
    """A larger region that holds, and the finding; None if there is none.

    It has the nodes between inputs too, or its own weights, or the nodes around it. Those around a mere guess are not
    tried, since the models are aligned without it then.
    """
    with suppress(CannotRunError):
        own = cut(pair.claim, fixed=True)
        for other in (cut(pair.claim, linked=True), own):
            if (found := check(other)).holds_alone:
                return other, found
        around = own if pair.claim.is_guess else cut(pair.claim, fixed=True, rings=_RINGS)
        if (found := check(around)).holds_alone:
            alone = check(pair)
            if alone.status != "not run":  # the nodes around it may just not have given the values on which it differs
                reason = f"{alone.reason}, but not on what the nodes around it gave in {found.cases} sets of values"
                reason += "; give inputs that tell more with --input, --dim or --test-data"
                found = replace(alone, status="not run", reason=reason)
            return around, found
    return None
