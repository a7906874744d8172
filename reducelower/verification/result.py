"""What verification found about two models: comparisons of outputs, findings on regions, and one verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from reducelower.lines import Line, Tone, as_text
from reducelower.text import counted
from reducelower.verification.findings import OutputComparison, SiteVerification, distance

__all__ = ["Departure", "Verdict", "Verification", "error", "to_plain"]

Verdict = Literal["equivalent", "different", "not shown"]
"""The result of comparing two models; ``not shown`` if something that matters could not be checked."""


@dataclass(frozen=True)
class Departure:
    """The first node, in the order of the graph, whose output is wrong.

    Attributes:
        node: name of the node; ``ReduceL1#4`` (operator and position) if it has no name.
        op_type: its operator.
        index: its position in the main graph.
        output: the output that diverges.
        reason: what differs, by how much and where.
    """

    node: str
    op_type: str
    index: int
    output: str
    reason: str

    def __str__(self) -> str:
        """One clause: which value differs, what computes it, and by how much it is off."""
        return f"first difference: {self.output!r} by {self.op_type} {self.node!r}; {self.reason}"


@dataclass(frozen=True, repr=False)
class Verification:
    """Whether two models give the same numbers, and what that verdict is based on.

    Attributes:
        verdict: ``equivalent`` if every region that differs was run and agreed, and some values of every output were
            compared; ``different`` if an output or a region differs; otherwise ``not shown``.
        ran: whether the whole models were run and at least one output was compared.
        runtime: where they ran, such as ``onnxruntime`` or ``reference``; ``onnxruntime / reference`` if the two sides
            had to run in different runtimes; empty if they did not run.
        outputs: one comparison for each output (and for each runtime, if several were asked for).
        reason: why the whole models did not run; empty if they ran.
        notes: sentences that a reader should see.
        sites: the results of the regions, each run by itself: the rewrites of a plan, and whatever else differs.
        cases: on how many sets of inputs the whole models were run.
        unseen: what could not be checked, each with the reason and what to do.
        departs: how the runtime diverges from the specification, a sentence for each output, or one for all.
        absent: runtimes and sizes in which the models should have been run and were not, as clauses.
        first: if the models differ, the first inner value that differs, on the inputs that show it; None if unknown.
        kept: the folder with the smallest part that shows how the models differ; empty if there is none.
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
    departs: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    first: Departure | None = None
    kept: str = ""

    @property
    def equivalent(self) -> bool:
        """Whether the verdict is ``equivalent``."""
        return self.verdict == "equivalent"

    @property
    def proved(self) -> int:
        """How many of the distinct rewrites and regions are equal for all values, by structure."""
        return sum(site.is_proved for site in self.sites)

    @property
    def tested(self) -> int:
        """How many are equal on all values on which they were run."""
        return sum(site.holds_alone and not site.is_proved for site in self.sites)

    @property
    def sets(self) -> int:
        """On how many sets of values the rewrites and regions were run."""
        return sum(site.cases for site in self.sites)

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
        more = f", infinite for large values at {counted(losses, 'node')}" if losses else ""
        departs = ", the runtime diverges from the specification" if self.departing or self.departs else ""
        return f"{self.verdict}{more}{departs}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must not miss although the model may be good enough, as sentences without a full stop."""
        unseen = [f"not shown to be equivalent: {self.why}"] if self.verdict == "not shown" else []
        return (*self._cautions(), *unseen)

    def _cautions(self) -> Iterator[str]:
        yield from (site.loss for site in self.losing)
        yield from (f"{site.place}: {site.reason}" for site in self.departing)
        if self.departs:
            more = f" ({counted(len(self.departs) - 1, 'more output')} likewise)" if len(self.departs) > 1 else ""
            yield f"{self.departs[0]}{more}"

    def __repr__(self) -> str:
        """One line: the verdict, and how many runs it is based on."""
        ran = f"{len(self.outputs)} outputs on {self.cases} sets of inputs" if self.ran else "the whole was not run"
        return f"Verification({self.label}: {ran}, {len(self.sites)} distinct regions)"

    def __str__(self) -> str:
        """The verdict, what it is based on, and what a reader must not miss, each on its own line."""
        return as_text(self.lines)

    @property
    def lines(self) -> Iterator[Line]:
        """What every output shows about it."""
        label, tone = _SAID[self.verdict]
        for text in self._verdict():
            yield Line(label, text, tone)
            label = ""
        if self.sites:
            yield Line("", self._one_by_one())
        if self.kept:
            yield Line("kept", f"the part that shows it is in {self.kept}")
        yield from (Line("warning", text, "warning") for text in self._cautions())
        yield from (Line("", text.rstrip("."), is_detail=True) for text in (*self.departs[1:], *self.notes))
        yield from (Line("note", text) for text in self.absent)
        yield from (Line("", text, is_detail=True) for text in self._details())

    @property
    def why(self) -> str:
        """The verdict in one sentence, without a full stop."""
        return next(self._verdict())

    def _verdict(self) -> Iterator[str]:
        if self.verdict == "equivalent":
            yield self._equal()
        elif self.verdict == "not shown":
            yield from (text.rstrip(".") for text in self.unseen or (self.reason or "the models could not be run",))
        else:
            yield from (text.rstrip(".") for text in self._mismatches() or ["the models differ"])

    def _equal(self) -> str:
        """On how many sets of inputs both models are equal, and how large the error is."""
        outputs = tuple(item for item in self.outputs if item.verdict != "departs")
        if self.departs and not outputs:
            return f"equal by the specification on {counted(self.cases, 'set')} of inputs{_where(self.runtime)}"
        finite = " where both are finite" if any(item.loses_range or item.gains_range for item in outputs) else ""
        return f"equal on {counted(self.cases, 'set')} of inputs{_where(self.runtime)} ({error(outputs)}{finite})"

    def _mismatches(self) -> list[str]:
        wrong = [item for item in self.outputs if item.verdict == "different"]
        found = [f"output {item.name!r}{_where(item.runtime)}: {item.reason}" for item in wrong]
        found += [str(self.first)] if self.first is not None else []
        found += [self.reason] if self.reason and not self.ran else []
        for site in self.sites:
            if not site.ok:
                found.append(f"{site.place}: {site.reason}")
        return found

    def _one_by_one(self) -> str:
        """How many of the distinct rewrites, or of the parts that differ, hold in isolation."""
        are_rewrites = all(site.rule for site in self.sites)
        count, held = len(self.sites), sum(site.holds_alone for site in self.sites)
        if count == held == 1:
            return f"the {'rewrite' if are_rewrites else 'part that differs'} also holds by itself"
        many = "distinct rewrites" if are_rewrites else "parts that differ"
        if held < count:
            return f"{held:,} of {count:,} {many} hold"
        return f"{'both' if count == 2 else f'all {count:,}'} {many} also hold one by one"

    def _details(self) -> Iterator[str]:
        """Distances in ULP, and findings that do not change the verdict."""
        yield f"outputs are {distance(max((output.max_ulp for output in self.outputs), default=0))}"
        if self.proved or self.tested:
            yield f"{self.proved:,} proved, {self.tested:,} tested on {counted(self.sets, 'set')} of values"
        yield from (
            f"{site.place}: {site.reason}".rstrip(".") for site in self.sites if site.status in ("improved", "overflow")
        )
        if self.verdict == "different":
            yield from (f"{site.place}: shown by {site.example_inputs}" for site in self.sites if site.example_inputs)
            yield from (text.rstrip(".") for text in self.unseen)

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain JSON values; infinities and NaN become strings, because JSON does not have them."""
        names = ("equivalent", "warnings", "proved", "tested", "sets")
        return {name: to_plain(getattr(self, name)) for name in names} | to_plain(self)  # type: ignore[no-any-return]


_SAID: dict[Verdict, tuple[str, Tone]] = {
    "equivalent": ("verified", "good"),
    "different": ("different", "bad"),
    "not shown": ("not shown", "warning"),
}
"""The label of each verdict, and its tone."""


def error(outputs: tuple[OutputComparison, ...]) -> str:
    """The largest error of the outputs, absolute and relative."""
    worst = max(outputs, key=lambda item: (item.max_relative, item.max_absolute), default=None)
    if worst is None or not worst.max_absolute:
        return "no difference"
    return f"largest error {worst.max_absolute:.2g}, {worst.max_relative:.2g} of the output's largest value"


def _where(runtime: str) -> str:
    """The runtime, unless it is the one in which models run by default."""
    return f" in {runtime}" if runtime not in ("", "onnxruntime") else ""


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and floats as values that `json.dumps` writes as standard JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
