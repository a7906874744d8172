"""Verifies every region in which two models differ by itself; regions that are the same up to names are verified once.

The sites of a plan are regions known beforehand; whatever else differs is found by aligning the models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx import ModelProto

from reducelower.model.inference import Inference
from reducelower.numerics.tolerance import Tolerance
from reducelower.plan import CHOSEN, Plan, Site
from reducelower.verification.checking.remembered import Checker
from reducelower.verification.checking.surroundings import Judged, holds, narrowed, nodes_of, not_reached
from reducelower.verification.regions.align import Alignment, Claim, align
from reducelower.verification.regions.cut import Region, cut_region
from reducelower.verification.regions.pairs import Pair, cut
from reducelower.verification.regions.places import find_places
from reducelower.verification.regions.zeros import readings
from reducelower.verification.result import Coverage, SiteVerification
from reducelower.verification.running.source import CannotRunError

__all__ = ["Regions", "losses", "verify_regions"]

_ROUNDS = 4


@dataclass(frozen=True)
class Regions:
    """What the regions of two models gave.

    Attributes:
        findings: one per distinct region, in graph order of the first of each.
        alignment: what the models have in common.
        evens_out: whether a region differs by itself, and a larger one that it is part of does not.
    """

    findings: tuple[SiteVerification, ...]
    alignment: Alignment
    evens_out: bool = False

    @property
    def hold(self) -> bool:
        """Whether every region was run and agreed."""
        return all(item.ok and item.status != "not run" for item in self.findings)

    @property
    def coverage(self) -> Coverage:
        """How much was seen."""
        ran = [item for item in self.findings if item.status != "not run"]
        branches = [f"{path}: the same" for path in self.alignment.same]
        inner = {claim.level.path for claim in self.alignment.claims} - {"graph"}
        branches += [f"{path}: by itself" for path in sorted(inner)]
        return Coverage(
            len(ran),
            sum(len(item.nodes) for item in ran),
            self.alignment.shared,
            sum(item.cases for item in ran),
            tuple(branches),
        )


@dataclass
class _Group:
    """Claims of one signature and one set of declared sizes; a reason in place of the region when it cannot be cut."""

    pair: Pair | str
    regions: list[Region] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)


_Groups = dict[object, dict[object, _Group]]


def verify_regions(
    before: ModelProto,
    after: ModelProto,
    plan: Plan | None = None,
    *,
    seed: int = 0,
    tolerances: Mapping[str, Tolerance] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Regions:
    """Run both sides of every region as two small models on the same inputs, per distinct region.

    Regions count as the same when operators, attributes, constants, element types and ranks are. A Reduce operator
    goes through seeded values in several magnitudes, the extremes of its element type, NaN and infinities, and shapes
    with sizes 0 and 1; where the sides differ, its value in extended precision decides. Other regions go through
    ordinary and edge values and values either side of every constant they hold (`feeding`), and are compared by
    `tolerances`; where they differ in onnxruntime, onnx's reference evaluator is asked too.

    Args:
        before: the source model.
        after: the converted model.
        plan: what the conversion did, where it was one.
        seed: seed for random values.
        tolerances: by ONNX element type, for operators other than Reduce.
        on_progress: called with (done, total) distinct regions.
    """
    inferences = Inference(lambda: before), Inference(lambda: after)
    checker = Checker(seed, tolerances)
    first: Regions | None = None
    for by_name in (True, False):
        dropped: dict[tuple[str, str], tuple[Claim, SiteVerification]] = {}
        for _ in range(_ROUNDS):
            alignment = align(before, after, plan, dropped=dropped, by_name=by_name, inferences=inferences)
            judged = _judge(alignment, plan, before, after, checker, on_progress)
            found = Regions(tuple(finding for finding, _ in judged), alignment)
            first = first or found
            failing = {
                region.claim.key: (region.claim, finding)
                for finding, regions in judged
                if not finding.ok
                for region in regions
                if region.claim.site is None and not region.claim.is_output
            }
            if all(finding.ok for finding in found.findings):
                zeros, hidden = _told_by_zeros(judged, checker), _hidden(dropped.values(), alignment, checker)
                return replace(found, findings=(*found.findings, *zeros, *hidden), evens_out=bool(dropped))
            if not failing.keys() - dropped.keys():
                break
            dropped |= failing
        if plan is not None:
            break  # a conversion keeps names
    assert first is not None
    return first


def _told_by_zeros(judged: Judged, checker: Checker) -> Iterator[SiteVerification]:
    """What divides by zeros whose sign is another, of regions that hold otherwise, and differs therefore."""
    seen: set[object] = set()
    for finding, regions in judged:
        for region in regions if finding.turns_zeros else ():
            for reading in readings(region):
                if reading.pair.identity not in seen:
                    seen.add(reading.pair.identity)
                    found = _check_group([_Group(reading.pair, [reading], [reading.pair.site])], checker)
                    yield from (told for told, _ in found if not told.ok)


def _hidden(
    dropped: Iterable[tuple[Claim, SiteVerification]], alignment: Alignment, checker: Checker
) -> Iterator[SiteVerification]:
    """Dropped claims that do not hold, though the larger regions they are part of do.

    A name may be that of another value in the other model: the two then differ on what both models share, and what
    follows evens that out. Where they do not, what follows was never given what tells.
    """
    levels = {level.path: level for level in alignment.levels}
    seen: set[object] = set()
    for claim, alone in dropped:
        try:
            region = cut_region(replace(claim, level=levels[claim.level.path]))
        except (KeyError, CannotRunError):
            continue
        if region.pair.identity not in seen:
            seen.add(region.pair.identity)
            found = checker.check(region.pair)
            if holds(found):
                yield not_reached(alone, found, region.pair)


def losses(before: ModelProto, after: ModelProto, plan: Plan) -> tuple[str, ...]:
    """Where the forms that a caller chose lose range, of a conversion that is not verified: one sentence each."""
    chosen = [site for site in plan.sites if site.rule.startswith(CHOSEN)]
    places = find_places(before, after, {site.graph for site in chosen})
    groups: dict[object, _Group] = {}
    for site in chosen:
        try:
            pair = cut(site, *places[site.graph])
        except (KeyError, CannotRunError):
            continue
        groups.setdefault(pair.key, _Group(pair)).sites.append(site)
    findings = [finding for group in groups.values() for finding, _ in _check_group([group], Checker(0, None))]
    return tuple(finding.loss for finding in findings if finding.status == "loses range")


def _judge(
    alignment: Alignment,
    plan: Plan | None,
    before: ModelProto,
    after: ModelProto,
    checker: Checker,
    on_progress: Callable[[int, int], None] | None,
) -> Judged:
    """Every distinct region of an alignment with its finding."""
    groups: _Groups = {}
    for claim in alignment.claims:
        try:
            region = cut_region(claim)
            _sort_in(groups, region.pair.site, region.pair, region)
        except CannotRunError as error:
            _sort_in(
                groups, claim.site or Site(claim.level.path, claim.pairs[0][0], "region", "", 0, 0, 0), error.reason
            )
    for left_over, pair in _elsewhere(alignment, plan, before, after):
        _sort_in(groups, left_over, pair)
    judged: Judged = []
    for site in alignment.missing:
        reason = "the replacement computes none of its outputs"
        nodes = ((site.graph, site.node),)
        judged.append((SiteVerification(site.op_type, site.rule, site.op_type, nodes, "different", reason), []))
    for done, group in enumerate(groups.values()):
        judged += _check_group(list(group.values()), checker)
        if on_progress is not None:
            on_progress(done + 1, len(groups))
    return judged


def _sort_in(groups: _Groups, site: Site, pair: Pair | str, region: Region | None = None) -> None:
    """Put a site where those stand that are alike; one that cannot be cut, with those of its reason."""
    key: object = (site.op_type, site.rule, pair) if isinstance(pair, str) else pair.key
    sizes = None if isinstance(pair, str) else pair.sizes
    group = groups.setdefault(key, {}).setdefault(sizes, _Group(pair))
    group.sites.append(site)
    if region is not None:
        group.regions.append(region)


def _elsewhere(
    alignment: Alignment, plan: Plan | None, before: ModelProto, after: ModelProto
) -> Iterable[tuple[Site, Pair | str]]:
    """Sites in graphs that were not aligned: of functions that nothing calls, or within larger regions."""
    claimed = {(claim.site.graph, claim.site.index) for claim in alignment.claims if claim.site is not None}
    claimed |= {(site.graph, site.index) for site in (*alignment.missing, *alignment.settled)}
    aligned = {level.path for level in alignment.levels}
    left = [
        site
        for site in (plan.sites if plan is not None else ())
        if (site.graph, site.index) not in claimed and not (site.graph in aligned and not site.count)
    ]
    places = find_places(before, after, {site.graph for site in left}) if left else {}
    for site in left:
        try:
            if site.graph not in places:
                raise CannotRunError("its graph was not found in both models")
            yield site, cut(site, *places[site.graph])
        except CannotRunError as error:
            yield site, error.reason


def _check_group(group: Sequence[_Group], checker: Checker) -> Judged:
    """One finding for regions that are alike, unless they hold only for the sizes, weights or surroundings of each."""
    sites = [site for item in group for site in item.sites]
    regions = [region for item in group for region in item.regions]
    pair = group[0].pair
    if isinstance(pair, str):
        return [
            (SiteVerification(sites[0].op_type, sites[0].rule, sites[0].op_type, nodes_of(sites), "not run", pair), [])
        ]
    others = [item.pair for item in group[1:] if isinstance(item.pair, Pair)]
    finding = replace(checker.check(pair, others), nodes=nodes_of(sites))
    if holds(finding) and not (pair.is_reduction and finding.status == "departs"):
        return [(finding, regions)]
    if others and not pair.is_reduction:
        return [found for item in group for found in _check_group([item], checker)]
    if pair.is_reduction:
        declared = [_check_declared(item, finding, checker) for item in group]
        if any(item.ok for item in declared):
            return [(found, item.regions) for found, item in zip(declared, group, strict=True)]
    if len(regions) < len(sites):
        return [(finding, regions)]
    apart = narrowed(regions, finding, checker)
    return apart if any(found.ok for found, _ in apart) else [(finding, regions)]


def _check_declared(item: _Group, finding: SiteVerification, checker: Checker) -> SiteVerification:
    assert isinstance(item.pair, Pair)
    declared = finding
    (dims,) = [given.dims for given in item.pair.inputs if given.name == item.pair.node.input[0]]
    if any(isinstance(dim, int) for dim in dims or ()):
        declared = checker.check(item.pair, declared=True)
    return replace(declared if declared.status != "not run" else finding, nodes=nodes_of(item.sites))
