"""The outcome of one model: what batches yield and reports show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reducelower.errors import Refusal
from reducelower.failures import BAD_USAGE, DONE, FAULT, REFUSED
from reducelower.model.text import counted
from reducelower.plan import Plan

if TYPE_CHECKING:
    from reducelower.difference import Difference
    from reducelower.report.details import Details
    from reducelower.verification import RuntimeComparison, Verification

__all__ = ["Outcome", "Verdict", "stopped"]

Verdict = Literal[
    "legal",
    "rewrite",
    "converted",
    "kept",
    "equivalent",
    "same",
    "not verified",
    "not shown",
    "different",
    "differs",
    "refused",
    "unreadable",
    "failed",
]

_FINE = ("equal", "improved")
"""What verifying a rewrite may give without a word in the headline."""

_STATUS: Mapping[Verdict, int] = {
    **dict.fromkeys(("legal", "converted", "kept", "equivalent", "same", "not verified"), DONE),
    **dict.fromkeys(("rewrite", "not shown", "different", "differs", "refused"), REFUSED),
    "unreadable": BAD_USAGE,
    "failed": FAULT,
}


def stopped(status: int) -> Verdict:
    """The verdict on a model that was stopped, by the exit status."""
    return "refused" if status == REFUSED else "failed" if status == FAULT else "unreadable"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one model.

    Attributes:
        source: the model as the user named it.
        verdict: ``legal`` (nothing to do), ``rewrite`` (a check found work), ``converted``, ``kept`` (an earlier run
            converted it), ``equivalent``, ``not verified`` (not everything was seen to be the same), ``not shown``
            (the same, where that is a failure), ``different`` (it computes something else), ``same`` or ``differs`` (by
            structure), ``refused``, ``unreadable`` or ``failed`` (a fault of reducelower).
        output: the file that was written, or the second model of a comparison; empty if there is none.
        problems: sentences that say why there is no output, most with the model in front.
        plan: what was or would be done; None when it did not come to that.
        refusals: every node that cannot be converted, and why.
        verification: how the two models compare; None when they were not compared.
        comparisons: the model in other runtimes, compared with a trusted one.
        difference: what differs from the second model by structure; None where that was not asked for.
        external: names of files with external data that the output refers to and that were not copied.
        details: the distinct rewrites as pictures and what happened to each node; None when there was no model.
        seconds: how long it took; 0 where that is not known.
    """

    source: str
    verdict: Verdict = "converted"
    output: str = ""
    problems: tuple[str, ...] = ()
    plan: Plan | None = None
    refusals: tuple[Refusal, ...] = ()
    verification: Verification | None = None
    comparisons: tuple[RuntimeComparison, ...] = ()
    difference: Difference | None = None
    external: tuple[str, ...] = ()
    details: Details | None = None
    seconds: float = 0.0

    @property
    def status(self) -> int:
        """The exit status for this model alone."""
        return _STATUS[self.verdict]

    @property
    def kept(self) -> bool:
        """Whether the output is that of an earlier run, and nothing was done."""
        return self.verdict == "kept"

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.status == DONE

    @property
    def reasons(self) -> tuple[str, ...]:
        """The problems as they stand under the model's name."""
        return tuple(problem.removeprefix(f"{self.source}: ") for problem in self.problems)

    @property
    def sentence(self) -> str:
        """The verdict in words, with what a reader must not miss."""
        return "; ".join([self._verdict_in_words, *self.warnings])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must not miss, regardless of the verdict."""
        if self.verification is not None:
            return self.verification.warnings
        return self.plan.losses if self.plan is not None else ()

    @property
    def _verdict_in_words(self) -> str:
        plan = self.plan
        if self.difference is not None:
            return self.difference.sentence
        if self.verdict == "refused" and self.refusals:
            goal = f" to opset {plan.target.opset}" if plan is not None else ""
            return f"cannot be converted{goal}: {counted(len(self.refusals), 'node')} refused"
        if self.verdict in ("refused", "unreadable", "failed"):
            return "; ".join(self.reasons)
        if self.verdict == "legal" and plan is not None:
            return f"legal as it is (opset {plan.source_opset})"
        if self.verdict == "rewrite" and plan is not None:
            return f"would be converted ({plan.versions}): {counted(len(plan.sites), 'node')} rewritten"
        if self.verdict == "converted" and plan is not None:
            return (
                f"converted ({plan.versions}): {counted(len(plan.sites), 'node')} rewritten, {plan.carried:,} unchanged"
            )
        if self.verdict == "kept":
            return "converted by an earlier run with the same model and options"
        if self.verdict == "different":
            return "computes something else"
        return "gives the same numbers" if self.verdict == "equivalent" else "could not be verified"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What somebody who only reads the headline should know of a model that passed."""
        if not self.passed:
            return ()
        found = list(self.plan.unmended) if self.plan is not None else []
        if self.verdict == "not verified":
            found.append("it could not be verified")
        checked = self.verification
        if checked is None and self.plan is not None and self.plan.losses:
            found.append(f"{counted(len(self.plan.losses), 'rewrite')}: loses range")
        if checked is not None:
            if not checked.ran and self.verdict != "not verified":
                found.append(f"the whole model was not run: {checked.reason or 'no reason is known'}")
            odd = Counter(site.status for site in checked.sites if site.status not in _FINE)
            found += [f"{counted(count, 'rewrite')}: {status}" for status, count in odd.items()]
        return tuple(found)
