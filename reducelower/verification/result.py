"""What verification found: one comparison per output, one finding per distinct site, one verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

__all__ = ["OutputComparison", "SiteStatus", "SiteVerification", "Verification", "to_plain"]

OutputVerdict = Literal["equal", "different", "not compared"]
SiteStatus = Literal["equal", "improved", "overflow", "different", "not run"]


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

    def merged(self, other: OutputComparison) -> OutputComparison:
        """The worse of two comparisons of one output, with the largest distances of both."""
        rank = {"equal": 0, "not compared": 1, "different": 2}
        worse = self if rank[self.verdict] >= rank[other.verdict] else other
        return replace(
            worse,
            max_ulp=max(self.max_ulp, other.max_ulp),
            p99_ulp=max(self.p99_ulp, other.p99_ulp),
            mean_ulp=max(self.mean_ulp, other.mean_ulp),
            max_absolute=max(self.max_absolute, other.max_absolute),
            max_relative=max(self.max_relative, other.max_relative),
        )


@dataclass(frozen=True)
class SiteVerification:
    """One distinct rewrite, verified by itself: the original node and its replacement as two small models.

    Attributes:
        op_type: operator type of the source node.
        rule: what rewrote it.
        signature: what the sites of this check have in common, for a reader: operator, types, ranks, attributes.
        nodes: graph path and node name of every site that shares this check, in graph order.
        status: ``equal``; ``improved`` where the source overflows or is imprecise and the replacement is right;
            ``overflow`` where the replacement overflows or loses digits exactly as the operator's own definition
            does, or where the order of a sum decides whether it overflows; ``different``; or ``not run``.
        reason: a sentence for every status but ``equal``.
        runtime: where the two sides ran.
        cases: how many sets of inputs both sides were run on.
        values: how many values were compared.
        max_ulp, p99_ulp, mean_ulp: ULP distances between finite values where the source is right.
        max_absolute, max_relative: largest errors over the same values.
        ulps: largest ULP distance of each case, for a plot.
        example_inputs: the inputs that show the difference, as text; empty when equal.
        notes: what else a reader should know.
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

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against this rewrite; a check that did not run says nothing against it."""
        return self.status != "different"


@dataclass(frozen=True)
class Verification:
    """Whether two models give the same numbers, and what that rests on.

    Attributes:
        equivalent: no output and no site differs. With ``strict``, also: everything could be run.
        ran: whether the whole models were run and at least one output was compared.
        runtime: where they ran, such as ``onnxruntime``, ``reference`` or ``onnxruntime / reference`` when the two
            sides had to run in different ones; empty when they did not run.
        outputs: one comparison per output (and per runtime, where several were asked for).
        reason: why the whole models did not run; empty when they did.
        notes: sentences a reader should see.
        sites: what the rewrites gave by themselves; empty when no plan was given.
        cases: how many sets of inputs the whole models were run on.
    """

    equivalent: bool
    ran: bool
    runtime: str = ""
    outputs: tuple[OutputComparison, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    sites: tuple[SiteVerification, ...] = ()
    cases: int = 0

    @property
    def complete(self) -> bool:
        """Whether everything could be run: the whole models and every site."""
        return self.ran and all(site.status != "not run" for site in self.sites)

    def __str__(self) -> str:
        """One paragraph: the verdict, what it rests on, and every mismatch."""
        return " ".join([self._headline(), *self._mismatches(), *self.notes])

    def _headline(self) -> str:
        if not self.ran:
            verdict = "Not equivalent" if not self.equivalent else "Not verified as a whole"
            headline = f"{verdict}: {self.reason or 'the models could not be run'}."
        elif self.equivalent:
            worst = max((output.max_ulp for output in self.outputs), default=0)
            compared = sum(output.verdict == "equal" for output in self.outputs)
            headline = (
                f"Equivalent: {compared} output{'s' * (compared != 1)} equal on {self.cases} "
                f"set{'s' * (self.cases != 1)} of inputs in {self.runtime}, at most {worst} ULP apart."
            )
        else:
            headline = f"Not equivalent (in {self.runtime})."
        if self.sites:
            nodes = sum(len(site.nodes) for site in self.sites)
            passed = sum(site.ok and site.status != "not run" for site in self.sites)
            headline += f" {passed} of {len(self.sites)} distinct rewrites ({nodes} nodes) hold by themselves."
        return headline

    def _mismatches(self) -> list[str]:
        lines = [f"Output {item.name!r}: {item.reason}." for item in self.outputs if item.verdict == "different"]
        for site in self.sites:
            if site.status != "equal":
                graph, node = site.nodes[0]
                more = f" and {len(site.nodes) - 1} more" if len(site.nodes) > 1 else ""
                lines.append(f"{graph}: {site.op_type} {node!r}{more} ({site.rule}): {site.status}: {site.reason}.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain JSON values; infinities and NaN become strings, as JSON has none."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and floats as values that `json.dumps` writes as standard JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
