"""The parts of a report that need the models: each distinct rewrite, and what happened to every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from onnx import ModelProto

from reducelower.difference import Difference, changed_operators
from reducelower.errors import Refusal
from reducelower.model.graph import bodies
from reducelower.model.spelled import operator_name
from reducelower.plan import Plan, Site
from reducelower.report.fragments import Fragment, fragments_of, region_fragments
from reducelower.types import Inference
from reducelower.verification import SiteVerification, Verification
from reducelower.verification.checking.tally import describe
from reducelower.verification.regions.align import align
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.cut import Region, cut_region
from reducelower.verification.running.source import CannotRunError, Source

__all__ = ["Details", "DistinctRewrite", "Fate", "NodeRow", "describe_difference", "describe_models"]

Fate = Literal["kept", "rewritten", "refused", "not converted"]

_MOST_ROWS = 3_000
_MOST_KEPT = 500
_MOST_SIDES = 60


@dataclass(frozen=True)
class DistinctRewrite:
    """Sites that are equal up to names: what they have in common, how many there are, and the first of them.

    There are no nodes of both sides if there would be too many or they could not be cut out, and no finding if nothing
    was verified.
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
class NodeRow:
    """One node of the source model.

    Attributes:
        node: its name, or operator and position.
        fate: what happened to it; ``not converted`` if another node was refused.
        why: the rule, or the reason of a refusal.
        rewrite: number of the distinct rewrite; 0 for none.
    """

    graph: str
    node: str
    op_type: str
    fate: Fate
    why: str = ""
    rewrite: int = 0


@dataclass(frozen=True)
class Details:
    """What a report shows about one model.

    Attributes:
        rewrites: distinct rewrites, in the order of their first nodes.
        rows: nodes in graph order; for large models not all, and kept nodes are the first to be left out.
        totals: number of nodes per fate.
        left_out: number of nodes without a row, by operator and fate.
        operators: the operators whose number of nodes changed, with both numbers.
        sizes: bytes of the model before and after; 0 if there is none.
    """

    rewrites: tuple[DistinctRewrite, ...]
    rows: tuple[NodeRow, ...]
    totals: dict[Fate, int]
    left_out: dict[tuple[str, Fate], int]
    operators: tuple[tuple[str, int, int], ...] = ()
    sizes: tuple[int, int] = (0, 0)


def describe_models(
    before: ModelProto,
    after: ModelProto | None,
    plan: Plan | None,
    refusals: Sequence[Refusal],
    verification: Verification | None,
) -> Details:
    """Collect the details while the models are loaded; their size is bounded, unlike that of the models."""
    sites = plan.sites if plan is not None and after is not None else ()
    made = None if after is None or plan is None else _rewrites(before, after, plan, verification)
    rewrites, numbers = made or ((), {})
    table = _table(before, sites, numbers, refusals, rewrites)
    if after is None:
        return replace(table, sizes=(before.ByteSize(), 0))
    return replace(table, operators=changed_operators(before, after), sizes=(before.ByteSize(), after.ByteSize()))


def describe_difference(
    before: ModelProto, after: ModelProto, found: Difference, verification: Verification | None = None
) -> Details:
    """What a report shows about two models that differ: each distinct change once, with what running it gave."""
    changes = []
    findings = {place: item for item in (verification.sites if verification else ()) for place in item.nodes}
    for number, (change, region) in enumerate(zip(found.changes, found.regions, strict=True), 1):
        sides = region_fragments(region) if any(region.nodes) and number <= _MOST_SIDES else None
        kinds = [dict.fromkeys(text.partition(" ")[0] for text in texts) for texts in (change.before, change.after)]
        title = " → ".join(dict.fromkeys(", ".join(kind) or "nothing" for kind in kinds)) if any(kinds) else "Output"
        graph, node = change.nodes[0]
        told = "; ".join(change.details)
        ran = next((findings[place] for place in change.nodes if place in findings), None)
        changes.append(DistinctRewrite(number, title, change.kind, told, graph, node, len(change.nodes), sides, ran))
    sizes = before.ByteSize(), after.ByteSize()
    return Details(tuple(changes), (), {}, {}, found.operators, sizes)


def _rewrites(
    before: ModelProto, after: ModelProto, plan: Plan, verification: Verification | None
) -> tuple[tuple[DistinctRewrite, ...], dict[Site, int]]:
    """The distinct rewrites, and to which one each site belongs."""
    cuts = _Cuts(before, after, plan)
    shared: dict[tuple[str, str], int] = {}
    findings = verification.sites if verification is not None else ()
    for at, finding in enumerate(findings):
        shared.update(dict.fromkeys(finding.nodes, at))
    groups: dict[object, list[Site]] = {}
    found: dict[object, Region | None] = {}
    for site in plan.sites:
        key: object = shared.get((site.graph, site.node))
        if key is None or key not in found:
            region = cuts.of(site)
            key = key if key is not None else region.pair.key if region is not None else (site.op_type, site.rule)
            found.setdefault(key, region)
        groups.setdefault(key, []).append(site)
    rewrites = []
    numbers: dict[Site, int] = {}
    for number, (key, members) in enumerate(groups.items(), 1):
        first, region = members[0], found[key]
        sides = fragments_of(region) if region is not None and number <= _MOST_SIDES else None
        signature = describe(region.pair) if region is not None else first.op_type
        place = first.op_type, first.rule, signature, first.graph, first.node, len(members)
        ran = findings[key] if isinstance(key, int) else None
        rewrites.append(DistinctRewrite(number, *place, sides, ran))
        numbers.update(dict.fromkeys(members, number))
    return tuple(rewrites), numbers


class _Cuts:
    """The sites of a plan, cut out of both models."""

    def __init__(self, before: ModelProto, after: ModelProto, plan: Plan) -> None:
        self._sides = Source.of(before).light(), Source.of(after).light()  # whose weights are compared without a copy
        self._plan = plan

    @cached_property
    def _claims(self) -> dict[tuple[str, int], Claim]:
        left, right = (side.proto for side in self._sides)
        inferences = Inference(lambda: left), Inference(lambda: right)
        claims = align(left, right, self._plan, dropped=(), inferences=inferences).claims
        return {(claim.site.graph, claim.site.index): claim for claim in claims if claim.site is not None}

    def of(self, site: Site) -> Region | None:
        """The nodes of a site and what replaces them; None where nothing does, or that cannot be cut out."""
        try:
            claim = self._claims.get((site.graph, site.index))
            return None if claim is None else cut_region(claim)
        except CannotRunError:
            return None


def _table(
    before: ModelProto,
    sites: Sequence[Site],
    numbers: dict[Site, int],
    refusals: Sequence[Refusal],
    rewrites: tuple[DistinctRewrite, ...],
) -> Details:
    rewritten = {(site.graph, index): site for site in sites for index in site.raised_from or (site.index,)}
    refused: dict[tuple[str, str], str] = {}
    for refusal in refusals:
        refused.setdefault((refusal.graph, refusal.node), refusal.reason)
    rest: Fate = "not converted" if refusals else "kept"
    limits = {"kept": _MOST_KEPT, "not converted": _MOST_KEPT, "rewritten": _MOST_ROWS, "refused": _MOST_ROWS}
    totals: Counter[Fate] = Counter()
    left_out: Counter[tuple[str, Fate]] = Counter()
    rows: list[NodeRow] = []
    placed = ((path, index, node) for path, body in bodies(before) for index, node in enumerate(body.node))
    for graph, index, node in placed:
        label = node.name or f"{node.op_type}#{index}"
        kind = operator_name(node)
        row = NodeRow(graph, label, kind, rest)
        if (site := rewritten.get((graph, index))) is not None:
            row = NodeRow(graph, label, kind, "rewritten", site.rule, numbers.get(site, 0))
        elif (graph, label) in refused:
            row = NodeRow(graph, label, kind, "refused", refused[graph, label])
        totals[row.fate] += 1
        if totals[row.fate] <= limits[row.fate]:
            rows.append(row)
        else:
            left_out[kind, row.fate] += 1
    return Details(rewrites, tuple(rows), dict(totals), dict(left_out))
