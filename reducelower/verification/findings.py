"""What single comparisons found: of one output of the whole models, or of one distinct region by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from reducelower.lines import Tone

__all__ = [
    "DISTANCES",
    "HOLDING",
    "SEVERITY",
    "STATUSES",
    "OutputComparison",
    "OutputVerdict",
    "SiteStatus",
    "SiteVerification",
    "distance",
]

DISTANCES = ("max_ulp", "max_absolute", "max_relative")
"""The fields that say how far apart two sides are."""

OutputVerdict = Literal["equal", "departs", "different", "not compared"]
SiteStatus = Literal["equal", "not run", "improved", "overflow", "departs", "loses range", "different"]

STATUSES: dict[SiteStatus, tuple[str, Tone]] = {
    "equal": ("equal", "good"),
    "not run": ("not run", "warning"),
    "improved": ("more exact", "good"),
    "overflow": ("as exact", "good"),
    "departs": ("runtime at fault", "warning"),
    "loses range": ("smaller range", "warning"),
    "different": ("different", "bad"),
}
"""From what matters least to what matters most: the words for a reader, and how to take it unless it is not ok."""

SEVERITY = {status: at for at, status in enumerate(STATUSES)}

HOLDING: frozenset[SiteStatus] = frozenset({"equal", "improved", "overflow", "departs"})
"""Those of a part that was run and against which nothing speaks."""


@dataclass(frozen=True)
class OutputComparison:
    """One output of the two models, over every set of inputs they were run on.

    Attributes:
        name: name of the graph output; ``name[0]`` for an item of a sequence.
        runtime: where the two sides ran, such as ``onnxruntime`` or ``onnxruntime / reference``.
        element_type: ONNX name of the element type before.
        shape_before, shape_after: shapes in the last set of inputs, or in the one that differs.
        verdict: ``equal`` within the tolerance; ``departs`` if both models give the same by the specification, but not
            in the runtime; ``different``; or ``not compared``.
        reason: one sentence that says what differs, or why there was no comparison; empty when equal.
        max_ulp: the largest ULP distance between finite values.
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
    max_absolute: float = 0.0
    max_relative: float = 0.0
    tells: bool = True
    loses_range: bool = False
    gains_range: bool = False
    limit: str = ""

    def merged(self, other: OutputComparison) -> OutputComparison:
        """The worse of two comparisons of one output, with the largest distances of both."""
        rank = {"equal": 0, "departs": 1, "not compared": 2, "different": 3}
        worse = self if rank[self.verdict] >= rank[other.verdict] else other
        largest = {name: max(getattr(self, name), getattr(other, name)) for name in DISTANCES}
        return replace(worse, **largest, tells=self.tells or other.tells)


@dataclass(frozen=True, repr=False)
class SiteVerification:
    """One distinct rewrite, verified by itself: the original node and its replacement as two small models.

    Attributes:
        op_type: operator type of the source node.
        rule: what rewrote it.
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
        max_ulp: the largest ULP distance between finite values where the source is right.
        max_absolute, max_relative: largest errors over the same values.
        example_inputs: the inputs that show the difference, as text; empty when equal.
        notes: what else a reader should know.
        bound: of a region that loses range, the largest magnitude of inputs that loses nothing; 0 if it is not known.
        is_chosen: whether the form loses range because the caller, or the operator's own definition, has it so, as the
            specification's bodies do.
        limit: what counts as equal, in words; empty where nothing but the same bits was seen.
        is_proved: whether it holds for all values and sizes, by structure or since every value was tried.
    """

    op_type: str
    rule: str
    nodes: tuple[tuple[str, str], ...]
    status: SiteStatus = "equal"
    reason: str = ""
    runtime: str = ""
    cases: int = 0
    values: int = 0
    max_ulp: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    example_inputs: str = ""
    notes: tuple[str, ...] = ()
    bound: float = 0.0
    is_chosen: bool = False
    limit: str = ""
    is_proved: bool = False

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
    def holds_alone(self) -> bool:
        """Whether it was run by itself and nothing speaks against it."""
        return self.ok and self.status != "not run"

    @property
    def said(self) -> str:
        """The status for a reader: what a rewrite is compared with the source."""
        return STATUSES[self.status][0]

    @property
    def tone(self) -> Tone:
        """How a reader should take it."""
        return STATUSES[self.status][1] if self.ok else "bad"

    @property
    def loss(self) -> str:
        """Where it loses range, as a sentence without a full stop."""
        holds = f"equal for magnitudes up to {self.bound:.3g}" if self.bound else "equal for ordinary values"
        chosen = ", as the specification's body is (--rules stable is not)" if self.is_chosen else ""
        return f"{self.place}: {holds}; infinite, NaN or zero beyond{chosen}"

    @property
    def place(self) -> str:
        """Where it stands, for a reader: operator and node, and the graph where it is not the main one."""
        graph, node = self.nodes[0] if self.nodes else ("graph", "")
        more = f" and {len(self.nodes) - 1:,} more" if len(self.nodes) > 1 else ""
        inside = f" in {graph}" if graph != "graph" else ""
        return f"{self.op_type} {node!r}{more}{inside}"


def distance(ulp: int) -> str:
    """How far apart results are at most, in words."""
    return f"at most {ulp:,} ULP apart" if ulp else "0 ULP apart"
