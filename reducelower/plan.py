"""What a run did, or would do: every rewritten site, every refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from reducelower.errors import Refusal, sentences
from reducelower.lines import Line, enumerated
from reducelower.options import Target
from reducelower.rewrites import Step
from reducelower.text import counted

__all__ = ["CHOSEN", "Label", "Plan", "Site", "joined"]

CHOSEN = "spec/"
"""The prefix of rules with the specification's own bodies, which may lose range; the caller chose that book."""

_LOSING = frozenset({"ReduceL2", "ReduceLogSumExp"})
"""The operators of which the specification's body overflows where the result does not: it takes squares or powers."""


class Label(str):
    """The rule that rewrote a site, with the reason if it was a runtime.

    Attributes:
        because: the sentence of the fact about the runtime.
    """

    __slots__ = ("because",)
    because: str

    def __new__(cls, text: str, because: str) -> Label:
        """Make a label from a text and a reason."""
        label = super().__new__(cls, text)
        label.because = because
        return label


def joined(label: str, further: str) -> str:
    """Both labels as one, with the reason of the second."""
    if not label:
        return further
    return Label(f"{label}; {further}", further.because) if isinstance(further, Label) else f"{label}; {further}"


@dataclass(frozen=True)
class Site:
    """One source node and the nodes that replace it.

    Attributes:
        graph: graph path of the node, such as ``graph/If_3.then_branch``.
        node: name of the node, or ``ReduceSum#4`` (operator and position) if it has no name.
        op_type: operator type of the source node.
        rule: name of the rule that rewrote the node, such as ``axes attribute to input`` or ``stable/ReduceL2``.
        index: position of the source node among the nodes of its graph.
        first: position, in the converted graph, of the first node that replaces it.
        count: the number of nodes that replace it.
        because: what the target runtime does wrong with the node; empty without a runtime.
        raised_from: positions of all source nodes, if several nodes became one (see `reducelower.raise_reductions`).
            `node` and `index` are then those of the last one, and `op_type` is the operator that they became.
    """

    graph: str
    node: str
    op_type: str
    rule: str
    index: int
    first: int
    count: int
    because: str = ""
    raised_from: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class Plan:
    """What happened to a model: rewritten sites, the number of unchanged nodes, and refusals.

    Attributes:
        source_opset: opset version of the default domain before.
        target: what the model was made to fit; its opset is never None here.
        sites: every rewritten node, in graph order.
        refusals: every reason why there is no output; empty if there is an output.
        carried: the number of unchanged nodes.
        ir_version: IR version before and after.
        fitted: sentences about changes of the whole model to fit the target.
        notes: sentences about the model as a whole that a user should act on; every output shows each as a ``note``.
        unmended: sentences about unavoidable problems on the runtime: wrong results for some values, such as very large
            ones, or other shapes.
        caveats: those of them that are about forms that were written in place of nodes.
        unmeasured: operators of other domains, of which nothing is known on the runtime.
        as_it_is: if another opset version was chosen for a runtime, the plan for the model's own opset version. Its
            sites and refusals are the nodes that the runtime computes wrongly in the unchanged model.
        assumes_nonempty: whether the result is right only if no dimension is zero when the model runs.
        is_stale: whether new nodes read a value of which the model states a stale size.
        steps: the applied rewrites and their places, for verification. Copies in other processes do not have them.
    """

    source_opset: int
    target: Target
    sites: tuple[Site, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    carried: int = 0
    ir_version: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = field(default=())
    fitted: tuple[str, ...] = ()
    unmended: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    as_it_is: Plan | None = None
    assumes_nonempty: bool = False
    is_stale: bool = False
    steps: tuple[Step, ...] = field(default=(), repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the steps, which hold models that another process does not need."""
        return {**self.__dict__, "steps": ()}

    def __repr__(self) -> str:
        """One line: versions, and the numbers of rewritten, unchanged and refused nodes."""
        refused = f", {counted(len(self.refusals), 'node')} refused" if self.refusals else ""
        return (
            f"Plan({self.versions}: {counted(len(self.sites), 'node')} rewritten, {self.carried:,} unchanged{refused})"
        )

    def __str__(self) -> str:
        """The content of `repr`, and below it a line for each operator and rule, and for each refusal."""
        rewritten = sorted(self.rewritten.items())
        lines = [f"{count}  {operator}  by {rule}" for (operator, rule), count in rewritten]
        lines += [f"refused: {sentence}" for sentence in sentences(self.refusals)]
        return "\n  ".join([repr(self).removeprefix("Plan(").removesuffix(")"), *lines, *self.notes])

    @property
    def versions(self) -> str:
        """The opset and IR versions before and after."""
        opset = _change("opset", self.source_opset, self.target.opset or self.source_opset)
        return f"{opset}, {_change('IR version', *self.ir_version)}"

    @property
    def journey(self) -> str:
        """The opset version before and after; the IR version as well if only that changes."""
        before, after = self.source_opset, self.target.opset or self.source_opset
        opset = _change("opset", before, after)
        changes = before == after and self.ir_version[0] != self.ir_version[1]
        return f"{opset}, {_change('IR version', *self.ir_version)}" if changes else opset

    @property
    def goal(self) -> str:
        """The target in words, such as ``opset 13`` or ``opset 18 on openvino without ReduceL1``."""
        parts = [f"opset {self.target.opset or self.source_opset}"]
        parts += [f"on {self.target.runtime}"] if self.target.runtime is not None else []
        parts += [f"without {enumerated(sorted(self.target.without), 3)}"] if self.target.without else []
        return " ".join(parts)

    @property
    def fits(self) -> str:
        """That the model fits; where the operators of a runtime were not measured, that nothing is known against it."""
        return f"fits {self.goal}" if self._is_measured else f"nothing known against it at {self.goal}"

    @property
    def nothing_to_do(self) -> str:
        """A sentence that says why there is nothing to do."""
        is_more = self.target.without or self.target.runtime is not None
        already = "already " if self._is_measured else ""
        return f"{already}{self.fits if is_more else f'at {self.goal}'}; nothing to do"

    @property
    def _is_measured(self) -> bool:
        runtime = self.target.runtime
        return runtime is None or (runtime.measures_operators and not self.unmeasured)

    @property
    def to_do(self) -> str:
        """What a conversion would do."""
        if self.sites:
            return f"{counted(len(self.sites), 'node')} to rewrite ({_by_operator(self.sites)})"
        if self.fitted:
            return "the model as a whole would change"
        before, after = self.source_opset, self.target.opset or self.source_opset
        is_at = (before, self.ir_version[0]) == (after, self.ir_version[1])
        return (
            "it states types that its nodes do not yield"
            if is_at
            else f"only its version would change ({self.journey})"
        )

    @property
    def lines(self) -> Iterator[Line]:
        """The lines for every output about what was rewritten, and why."""
        raised = [site for site in self.sites if site.raised_from]
        folded = sum(len(site.raised_from) for site in raised)
        if raised:
            yield Line("raised", f"{counted(folded, 'node')} to {_by_operator(raised)}")
        rewritten = [site for site in self.sites if not site.raised_from]
        if rewritten or not raised:
            operators = f": {_by_operator(rewritten)}" if rewritten else ""
            yield Line("rewritten", f"{counted(len(rewritten), 'node')}{operators}")
        runtime = self.target.runtime
        for reason, count in sorted(self.reasons.items()):
            yield Line("because", f"on {runtime}: {reason.rstrip('.')} ({counted(count, 'node')})")
        if self.as_it_is is not None:
            reasons = [f"{reason.rstrip('.')} ({counted(n, 'node')})" for reason, n in self.as_it_is.reasons.items()]
            for reason in [*sorted(reasons), *sentences(self.as_it_is.refusals)]:
                yield Line("because", f"on {runtime}, at its own opset {self.source_opset}: {reason}")
        yield Line("unchanged", counted(self.carried, "node"), is_detail=True)
        yield Line("versions", self.versions, is_detail=True)
        yield from self.remarks

    @property
    def remarks(self) -> Iterator[Line]:
        """The lines for every output that do not depend on whether anything was rewritten."""
        yield from (Line("note", note.rstrip(".")) for note in self.notes)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must not miss if nothing is verified: forms that the caller chose and that lose range."""
        chosen = [site for site in self.sites if site.rule.startswith(CHOSEN) and not site.because]
        losing = [site for site in chosen if site.op_type in _LOSING]
        if not losing:
            return ()
        does = f"{_by_operator(losing)}: infinite for large values, as the specification's body is"
        return (f"{does} (--rules stable is not)",)

    @property
    def changes_nothing(self) -> bool:
        """Whether the model fits as it is."""
        return not (
            self.sites
            or self.fitted
            or self.refusals
            or self.source_opset != self.target.opset
            or self.ir_version[0] != self.ir_version[1]
        )

    @property
    def rewritten(self) -> Counter[tuple[str, str]]:
        """The number of sites for each (operator type, rule)."""
        return Counter((site.op_type, site.rule) for site in self.sites)

    @property
    def reasons(self) -> Counter[str]:
        """The number of sites for each reason, a fact about the runtime."""
        return Counter(site.because for site in self.sites if site.because)


def _change(name: str, before: int, after: int) -> str:
    return f"{name} {before}" if before == after else f"{name} {before} -> {after}"


def _by_operator(sites: Iterable[Site]) -> str:
    """The operators with their numbers of nodes; for a single node, only the operator."""
    counts = Counter(site.op_type for site in sites)
    if counts.total() == 1:
        return next(iter(counts))
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
