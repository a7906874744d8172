"""What verification found: one comparison per output, one finding per distinct site, one verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from reducelower.model.text import counted
from reducelower.notebook import InNotebooks

__all__ = [
    "DISTANCES",
    "INFINITE",
    "Coverage",
    "OutputComparison",
    "SiteStatus",
    "SiteVerification",
    "Verdict",
    "Verification",
    "distance",
    "to_plain",
]

Verdict = Literal["equivalent", "different", "not shown"]
"""What a comparison of two models came to; ``not shown`` where something that matters was not seen."""

_INTERNAL = "internal"  # fields that are left out of reports

DISTANCES = ("max_ulp", "p99_ulp", "mean_ulp", "max_absolute", "max_relative")
"""The fields that say how far apart two sides are."""

INFINITE = -1
"""Stands for a distance where one side, or both against the definition, came out infinite."""

OutputVerdict = Literal["equal", "different", "not compared"]
SiteStatus = Literal["equal", "improved", "overflow", "departs", "loses range", "different", "not run"]


@dataclass(frozen=True)
class OutputComparison:
    """One output of the two models, over every set of inputs they were run on.

    Attributes:
        name: name of the graph output; ``name[0]`` for an item of a sequence.
        runtime: where the two sides ran, such as ``onnxruntime`` or ``onnxruntime / reference``.
        element_type: ONNX name of the element type before.
        shape_before, shape_after: shapes in the last set of inputs, or in the one that differs.
        verdict: ``equal`` within the tolerance, ``different``, or ``not compared``.
        reason: one sentence that says what differs, or why there was no comparison; empty when equal.
        max_ulp, p99_ulp, mean_ulp: ULP distances between finite values (mean and 99th percentile: the largest of all
            sets of inputs).
        max_absolute, max_relative: largest errors; relative to the largest magnitude of the expected tensor.
        tells: whether anything was there to compare: a value that is neither NaN nor infinite.
        loses_range: whether all that differs is finite before, and infinite, NaN or zero after.
        gains_range: whether all that differs is infinite or NaN before, and finite after, or NaN and infinite.
        limit: what counts as equal, in words; rounding that the source amplifies is allowed for besides.
    """

    name: str
    runtime: str
    element_type: str
    shape_before: tuple[int, ...]
    shape_after: tuple[int, ...]
    verdict: OutputVerdict = "equal"
    reason: str = ""
    max_ulp: int = 0
    p99_ulp: float = 0.0
    mean_ulp: float = 0.0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    tells: bool = True
    loses_range: bool = False
    gains_range: bool = False
    limit: str = ""

    def merged(self, other: OutputComparison) -> OutputComparison:
        """The worse of two comparisons of one output, with the largest distances of both."""
        rank = {"equal": 0, "not compared": 1, "different": 2}
        worse = self if rank[self.verdict] >= rank[other.verdict] else other
        largest = {name: max(getattr(self, name), getattr(other, name)) for name in DISTANCES}
        return replace(worse, **largest, tells=self.tells or other.tells)


@dataclass(frozen=True, repr=False)
class SiteVerification(InNotebooks):
    """One distinct rewrite, verified by itself: the original node and its replacement as two small models.

    Attributes:
        op_type: operator type of the source node.
        rule: what rewrote it.
        signature: what the sites of this check have in common, for a reader: operator, types, ranks, attributes.
        nodes: graph path and node name of every site that shares this check, in graph order.
        status: ``equal``; ``improved`` where the source overflows or is imprecise and the replacement is right;
            ``overflow`` where both lose digits or overflow, or where the order of a sum decides whether it
            overflows; ``departs`` where the sides are the same by the specification, but not in the runtime;
            ``loses range`` where values are finite before and infinite, NaN or zero after; ``different``; or
            ``not run``.
        reason: a sentence for every status but ``equal``.
        runtime: where the two sides ran.
        cases: how many sets of inputs both sides were run on.
        values: how many values were compared.
        max_ulp, p99_ulp, mean_ulp: ULP distances between finite values where the source is right.
        max_absolute, max_relative: largest errors over the same values.
        ulps: largest ULP distance of each case, for a plot; `INFINITE` where a result overflowed that need not.
        example_inputs: the inputs that show the difference, as text; empty when equal.
        notes: what else a reader should know.
        holds: of a region that loses range, the magnitudes between which it does not.
        is_chosen: whether the caller chose a form that loses range, such as the specification's own body.
        limit: what counts as equal, in words; empty where nothing but the same bits was seen.
        turns_zeros: whether a zero has the other sign after, which is the same number; what divides by it tells.
        varies: whether any of its results was another one of the same shape in another set of values.
    """

    op_type: str
    rule: str
    signature: str
    nodes: tuple[tuple[str, str], ...]
    status: SiteStatus = "equal"
    reason: str = ""
    runtime: str = ""
    cases: int = 0
    values: int = 0
    max_ulp: int = 0
    p99_ulp: float = 0.0
    mean_ulp: float = 0.0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    ulps: tuple[int, ...] = ()
    example_inputs: str = ""
    notes: tuple[str, ...] = ()
    holds: str = ""
    is_chosen: bool = False
    limit: str = ""
    turns_zeros: bool = field(default=False, metadata={_INTERNAL: True})
    varies: bool = field(default=False, metadata={_INTERNAL: True})

    def __repr__(self) -> str:
        """One line: where it stands, and the result."""
        return f"SiteVerification({self})"

    def __str__(self) -> str:
        """One sentence: where it stands, the result, and why."""
        ran = f" on {self.cases} sets of values, {distance(self.max_ulp)}" if self.cases else ""
        return f"{self.place}: {self.status}{ran}{': ' * bool(self.reason)}{self.reason}"

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against this rewrite; a check that did not run says nothing against it."""
        return self.status != "different" and (self.status != "loses range" or self.is_chosen)

    @property
    def loss(self) -> str:
        """That it loses range, as a sentence without a full stop."""
        holds = f"; {self.holds}" if self.holds else ""
        return f"{self.place} loses range: what is finite before is infinite, NaN or zero after{holds}"

    @property
    def place(self) -> str:
        """Where it stands, for a reader: graph path, operator, node, and what rewrote it."""
        graph, node = self.nodes[0] if self.nodes else ("graph", "")
        more = f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else ""
        by = f" ({self.rule})" if self.rule else ""
        return f"{graph}: {self.op_type} {node!r}{more}{by}"


@dataclass(frozen=True)
class Coverage:
    """What a verdict rests on.

    Attributes:
        regions: how many distinct regions differ between the models and were run by themselves.
        nodes: how many nodes of the first model these regions have, with all that are alike.
        shared: how many values both models compute by the same operators from the same values.
        sets: on how many sets of values the regions were run.
        branches: the branches of If and bodies of Loop and Scan of the first model, with whether a run of the whole
            model took them, such as ``graph/pick.then_branch: ran``; ``by itself`` where what differs inside was
            run as a region, ``the same`` where nothing differs inside.
        outputs: the outputs of which values were compared.
    """

    regions: int = 0
    nodes: int = 0
    shared: int = 0
    sets: int = 0
    branches: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Verification(InNotebooks):
    """Whether two models give the same numbers, and what that rests on.

    Attributes:
        verdict: ``equivalent`` where every region that differs was run and agreed and something was compared of every
            output; ``different`` where an output or a region differs; else ``not shown``.
        ran: whether the whole models were run and at least one output was compared.
        runtime: where they ran, such as ``onnxruntime``, ``reference`` or ``onnxruntime / reference`` when the two
            sides had to run in different ones; empty when they did not run.
        outputs: one comparison per output (and per runtime, where several were asked for).
        reason: why the whole models did not run; empty when they did.
        notes: sentences a reader should see.
        sites: what the regions gave by themselves: the rewrites of a plan, and whatever else differs.
        cases: how many sets of inputs the whole models were run on.
        unseen: what was not seen, each with why and what to do.
        coverage: what the verdict rests on.
        departs: outputs that differ in the runtime alone: by the specification both models give the same.
    """

    verdict: Verdict
    ran: bool
    runtime: str = ""
    outputs: tuple[OutputComparison, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    sites: tuple[SiteVerification, ...] = ()
    cases: int = 0
    unseen: tuple[str, ...] = ()
    coverage: Coverage = Coverage()
    departs: tuple[str, ...] = ()

    @property
    def equivalent(self) -> bool:
        """Whether the verdict is ``equivalent``."""
        return self.verdict == "equivalent"

    @property
    def complete(self) -> bool:
        """Whether everything could be run: the whole models and every site."""
        return self.ran and not self.unseen and all(site.status != "not run" for site in self.sites)

    @property
    def losing(self) -> tuple[SiteVerification, ...]:
        """The regions in which values that are finite before are infinite, NaN or zero after."""
        return tuple(site for site in self.sites if site.status == "loses range")

    @property
    def departing(self) -> tuple[SiteVerification, ...]:
        """The regions in which the runtime diverges from the specification."""
        return tuple(site for site in self.sites if site.status == "departs")

    @property
    def label(self) -> str:
        """The verdict in a few words, with what a reader must not miss."""
        losses = sum(len(site.nodes) for site in self.losing)
        more = f", loses range at {counted(losses, 'node')}" if losses else ""
        departs = ", the runtime diverges from the specification" if self.departing or self.departs else ""
        return f"{self.verdict}{more}{departs}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must not miss though the model may be good enough, as sentences without a full stop."""
        found = [site.loss for site in self.losing]
        found += [f"{site.place}: {site.reason}" for site in self.departing]
        if self.departs:
            names = ", ".join(map(repr, self.departs))
            found.append(f"the runtime diverges from the specification on the source, of output {names}")
        if self.verdict == "not shown":
            found.append(f"not shown to be equivalent: {self._why()}")
        return tuple(found)

    def __repr__(self) -> str:
        """One line: the verdict, and how much it rests on."""
        ran = f"{len(self.outputs)} outputs on {self.cases} sets of inputs" if self.ran else "the whole was not run"
        return f"Verification({self.label}: {ran}, {len(self.sites)} distinct regions)"

    def __str__(self) -> str:
        """One paragraph: the verdict, what it rests on, and every mismatch."""
        return " ".join([self._headline(), *self._mismatches(), *self._improvements(), *self._unseen(), *self.notes])

    def _headline(self) -> str:
        if self.verdict == "different":
            headline = (
                f"Not equivalent (in {self.runtime})." if self.ran else _sentence("Not equivalent: ", self._why())
            )
        elif self.verdict == "not shown":
            headline = _sentence("Not shown to be equivalent: ", self._why())
        else:
            worst = max((output.max_ulp for output in self.outputs), default=0)
            compared = sum(output.verdict == "equal" for output in self.outputs)
            differ = any(output.reason for output in self.outputs)  # where one side is infinite
            apart = f"at most {worst:,} ULP apart where both are finite" if differ else distance(worst)
            headline = (
                f"Equivalent: {counted(compared, 'output')} equal on {counted(self.cases, 'set')} "
                f"of inputs in {self.runtime}, {apart}."
            )
        for site in self.losing:
            headline = f"Loses range at {site.place}{': ' + site.holds if site.holds else ''}. {headline}"
        if self.sites:
            nodes = sum(len(site.nodes) for site in self.sites)
            passed = sum(site.ok and site.status != "not run" for site in self.sites)
            headline += (
                f" {passed} of {len(self.sites)} distinct regions that differ ({counted(nodes, 'node')}) were "
                f"verified in isolation, on {self.coverage.sets} sets of values."
            )
        return headline

    def _why(self) -> str:
        if self.verdict == "not shown" and self.unseen:
            return self.unseen[0].rstrip(".")
        if self.reason:
            return self.reason
        failing = next((site for site in self.sites if not site.ok), None)
        if failing is not None:
            return f"{failing.place} differs"
        return "the models could not be run"

    def _mismatches(self) -> list[str]:
        different = [item for item in self.outputs if item.verdict == "different"]
        lines = [_sentence(f"Output {item.name!r}: ", item.reason) for item in different]
        # What decides comes first: a text may be cut.
        for site in sorted(self.sites, key=lambda site: site.ok):
            if site.status not in ("equal", "improved", "not run"):  # which are told in other sentences
                lines.append(_sentence(f"{site.place}: {site.status}: ", site.reason))
                lines += [_sentence("On ", site.example_inputs)] if not site.ok and site.example_inputs else []
        return lines

    def _improvements(self) -> list[str]:
        better = [site for site in self.sites if site.status == "improved"]
        nodes = counted(sum(len(site.nodes) for site in better), "node")
        return [_sentence(f"Better than the source at {nodes}: {site.place}: ", site.reason) for site in better[:1]]

    def _unseen(self) -> list[str]:
        return [_sentence("Not seen: ", item) for item in self.unseen if item.rstrip(".") != self._why()]

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain JSON values; infinities and NaN become strings, as JSON has none."""
        more = {"equivalent": self.equivalent, "warnings": list(self.warnings)}
        plain: dict[str, Any] = {**more, **to_plain(self)}
        return plain


def _sentence(start: str, rest: str) -> str:
    """Both with one full stop, or what was cut with its three."""
    return start + (rest if rest.endswith("...") else f"{rest.rstrip('.')}.")


def distance(ulp: int) -> str:
    """How far apart results are at most, in words."""
    return f"at most {ulp:,} ULP apart" if ulp else "0 ULP apart"


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and floats as values that `json.dumps` writes as standard JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        told = (item.name for item in fields(value) if not item.metadata.get(_INTERNAL))
        return {name: to_plain(getattr(value, name)) for name in told}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
