"""The parts of a report that need the models: what differs between them, with the nodes before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import ModelProto

from reducelower.difference import Difference, difference
from reducelower.lines import Tone
from reducelower.plan import Plan
from reducelower.report.fragments import Fragment, fragment
from reducelower.verification import SiteVerification, Verification
from reducelower.verification.running.source import Source

__all__ = ["Details", "DistinctChange", "describe_conversion", "describe_difference"]

_MOST_SIDES = 60

Places = Sequence[tuple[str, str]]
Sides = tuple[Fragment, Fragment] | None


@dataclass(frozen=True)
class DistinctChange:
    """Places with the same change and the same finding: their number, and the first of them.

    Attributes:
        title: the operators before and after.
        how: the rule that rewrote the nodes; without one, whether they were changed, replaced, removed or added.
        summary: what changed, in one line.
        sides: the nodes before and after; None beyond a number of changes.
        finding: the result of running both sides; None if they were not run.
    """

    number: int
    title: str
    how: str
    summary: str
    graph: str
    node: str
    count: int
    sides: Sides = None
    finding: SiteVerification | None = None

    @property
    def tone(self) -> Tone:
        """How serious the finding is; empty if there is none."""
        return self.finding.tone if self.finding is not None else ""

    @property
    def verified(self) -> str:
        """The finding in a few words."""
        return self.finding.said if self.finding is not None else ""

    @property
    def remark(self) -> str:
        """Why the finding is not simply equal, or else what changed."""
        return (self.finding.reason if self.finding is not None else "") or self.summary


@dataclass(frozen=True)
class Details:
    """The details of one model in a report.

    Attributes:
        changes: distinct changes, in the order of their first nodes.
        sizes: bytes of the model before and after; 0 if they do not matter.
    """

    changes: tuple[DistinctChange, ...]
    sizes: tuple[int, int] = (0, 0)

    @property
    def worst_first(self) -> list[DistinctChange]:
        """Wrong changes first, then those with a warning, then right ones, then those not run."""
        return sorted(self.changes, key=lambda change: ("bad", "warning", "good", "").index(change.tone))


def describe_conversion(
    before: ModelProto, after: ModelProto, plan: Plan, verification: Verification | None
) -> Details:
    """The details of a conversion; their size is bounded, unlike that of the models."""
    left, right = Source.of(before), Source.of(after)  # weights are compared without a copy
    found = difference(left.proto, right.proto, keeps_names=True)
    return describe_difference(found, verification, plan, sizes=(before.ByteSize(), after.ByteSize()))


def describe_difference(
    found: Difference,
    verification: Verification | None = None,
    plan: Plan | None = None,
    sizes: tuple[int, int] = (0, 0),
) -> Details:
    """The details of a comparison: each distinct change once, with the result of running it."""
    rules = {(site.graph, site.node): site.rule for site in (plan.sites if plan is not None else ())}
    findings = verification.sites if verification is not None else ()
    of_places = {place: finding for finding in findings for place in finding.nodes}
    changes: list[DistinctChange] = []

    def add(title: str, how: str, summary: str, places: Places, sides: Sides, finding: SiteVerification | None) -> None:
        number = len(changes) + 1
        changes.append(DistinctChange(number, title, how, summary, *places[0], len(places), sides, finding))

    for change in found.changes:
        sides = None
        if (change.before or change.after) and len(changes) < _MOST_SIDES:
            sides = fragment(change.parts[0]), fragment(change.parts[1])
        groups: dict[tuple[str, int], list[tuple[str, str]]] = {}
        for place in change.nodes:
            groups.setdefault((rules.get(place, ""), id(of_places.get(place))), []).append(place)
        for (rule, _), places in groups.items():
            finding = of_places.get(places[0])
            summary = "; ".join(change.details)
            add(change.title or "Output", f"by {rule}" if rule else change.kind, summary, places, sides, finding)
    shown = {id(change.finding) for change in changes}
    for finding in (finding for finding in findings if id(finding) not in shown and finding.nodes):
        add(finding.op_type, f"by {finding.rule}", "", finding.nodes, None, finding)
    return Details(tuple(changes), sizes)
