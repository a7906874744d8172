"""The parts of a report that need the models: each distinct rewrite, with the nodes before and after."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from onnx import ModelProto

from reducelower.difference import Difference, changed_operators
from reducelower.plan import Plan, Site
from reducelower.report.fragments import Fragment, fragments_of, region_fragments
from reducelower.types import Inference
from reducelower.verification import SiteVerification, Verification
from reducelower.verification.checking.tally import describe
from reducelower.verification.regions.align import align
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.cut import Region, cut_region
from reducelower.verification.running.source import CannotRunError, Source

__all__ = ["Details", "DistinctRewrite", "describe_difference", "describe_models"]

_MOST_SIDES = 60


@dataclass(frozen=True)
class DistinctRewrite:
    """Sites that are equal up to names: their common properties, their number, and the first of them.

    `sides` is None if there would be too many or they could not be cut out, `finding` if nothing was verified.
    """

    number: int
    op_type: str
    rule: str
    signature: str
    graph: str
    node: str
    count: int
    sides: tuple[Fragment, Fragment] | None = None
    finding: SiteVerification | None = None


@dataclass(frozen=True)
class Details:
    """The details of one model in a report.

    Attributes:
        rewrites: distinct rewrites, in the order of their first nodes.
        operators: the operators whose number of nodes changed, with both numbers.
        sizes: bytes of the model before and after.
    """

    rewrites: tuple[DistinctRewrite, ...]
    operators: tuple[tuple[str, int, int], ...] = ()
    sizes: tuple[int, int] = (0, 0)


def describe_models(before: ModelProto, after: ModelProto, plan: Plan, verification: Verification | None) -> Details:
    """Collect the details of a conversion; their size is bounded, unlike that of the models."""
    rewrites = _rewrites(before, after, plan, verification)
    return Details(rewrites, changed_operators(before, after), (before.ByteSize(), after.ByteSize()))


def describe_difference(
    before: ModelProto, after: ModelProto, comparison: Difference, verification: Verification | None = None
) -> Details:
    """Collect the details of a comparison: each distinct change once, with the result of running it."""
    changes = []
    findings = {place: item for item in (verification.sites if verification else ()) for place in item.nodes}
    for number, (change, region) in enumerate(zip(comparison.changes, comparison.regions, strict=True), 1):
        sides = region_fragments(region) if any(region.nodes) and number <= _MOST_SIDES else None
        kinds = [dict.fromkeys(text.partition(" ")[0] for text in texts) for texts in (change.before, change.after)]
        title = " → ".join(dict.fromkeys(", ".join(kind) or "nothing" for kind in kinds)) if any(kinds) else "Output"
        graph, node = change.nodes[0]
        details = "; ".join(change.details)
        finding = next((findings[place] for place in change.nodes if place in findings), None)
        changes.append(
            DistinctRewrite(number, title, change.kind, details, graph, node, len(change.nodes), sides, finding)
        )
    return Details(tuple(changes), comparison.operators)


def _rewrites(
    before: ModelProto, after: ModelProto, plan: Plan, verification: Verification | None
) -> tuple[DistinctRewrite, ...]:
    """The distinct rewrites, with the result of running each."""
    cuts = _Cuts(before, after, plan)
    finding_by_place: dict[tuple[str, str], int] = {}
    findings = verification.sites if verification is not None else ()
    for at, finding in enumerate(findings):
        finding_by_place.update(dict.fromkeys(finding.nodes, at))
    groups: dict[object, list[Site]] = {}
    regions: dict[object, Region | None] = {}
    for site in plan.sites:
        key: object = finding_by_place.get((site.graph, site.node))
        if key is None or key not in regions:
            region = cuts.of(site)
            key = key if key is not None else region.pair.key if region is not None else (site.op_type, site.rule)
            regions.setdefault(key, region)
        groups.setdefault(key, []).append(site)
    rewrites = []
    for number, (key, members) in enumerate(groups.items(), 1):
        first, region = members[0], regions[key]
        sides = fragments_of(region) if region is not None and number <= _MOST_SIDES else None
        signature = describe(region.pair) if region is not None else first.op_type
        place = first.op_type, first.rule, signature, first.graph, first.node, len(members)
        ran = findings[key] if isinstance(key, int) else None
        rewrites.append(DistinctRewrite(number, *place, sides, ran))
    return tuple(rewrites)


class _Cuts:
    """The sites of a plan, cut out of both models."""

    def __init__(self, before: ModelProto, after: ModelProto, plan: Plan) -> None:
        self._sides = Source.of(before).light(), Source.of(after).light()  # weights are compared without a copy
        self._plan = plan

    @cached_property
    def _claims(self) -> dict[tuple[str, int], Claim]:
        left, right = (side.proto for side in self._sides)
        inferences = Inference(lambda: left), Inference(lambda: right)
        claims = align(left, right, self._plan, dropped=(), inferences=inferences).claims
        return {(claim.site.graph, claim.site.index): claim for claim in claims if claim.site is not None}

    def of(self, site: Site) -> Region | None:
        """The nodes of a site and their replacement; None if there is none or it cannot be cut out."""
        try:
            claim = self._claims.get((site.graph, site.index))
            return None if claim is None else cut_region(claim)
        except CannotRunError:
            return None
