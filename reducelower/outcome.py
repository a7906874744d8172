"""The outcome of one model: what batches return and reports show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reducelower.errors import BAD_USAGE, DONE, FAULT, REFUSED, Refusal
from reducelower.lines import Line, Tone
from reducelower.plan import Plan
from reducelower.text import counted

if TYPE_CHECKING:
    from reducelower.difference import Difference
    from reducelower.report.details import Details
    from reducelower.verification import Verification

__all__ = ["Outcome", "Verdict", "stopped"]

Verdict = Literal[
    "fits",
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

_STATUS: Mapping[Verdict, int] = {
    **dict.fromkeys(("fits", "converted", "kept", "equivalent", "same", "not verified"), DONE),
    **dict.fromkeys(("rewrite", "not shown", "different", "differs", "refused"), REFUSED),
    "unreadable": BAD_USAGE,
    "failed": FAULT,
}


def stopped(status: int) -> Verdict:
    """The verdict on a model whose processing stopped, by the exit status."""
    return "refused" if status == REFUSED else "failed" if status == FAULT else "unreadable"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one model.

    Attributes:
        source: the model as the user named it.
        verdict: ``fits`` (nothing to do), ``rewrite`` (a check found something to do), ``converted``, ``kept`` (an
            earlier run converted it), ``equivalent``, ``not verified`` (not everything was shown to be the same),
            ``not shown`` (like ``not verified``, but a failure), ``different`` (it computes something else),
            ``same`` or ``differs`` (by structure), ``refused``, ``unreadable`` or ``failed`` (a fault in reducelower).
        output: the file that was written, or the second model of a comparison; empty if there is none.
        problems: sentences about why there is no output; most begin with the model.
        plan: what was or would be done, if there is a plan.
        refusals: every node that cannot be converted, and why.
        verification: the result of running both models; None if they were not compared.
        difference: the structural difference; None if it was not requested.
        external: names of files with external data that the output refers to and that were not copied.
        details: the distinct rewrites with their nodes, for a report; None without a report or result.
        seconds: the time that it took; 0 if unknown.
    """

    source: str
    verdict: Verdict = "converted"
    output: str = ""
    problems: tuple[str, ...] = ()
    plan: Plan | None = None
    refusals: tuple[Refusal, ...] = ()
    verification: Verification | None = None
    difference: Difference | None = None
    external: tuple[str, ...] = ()
    details: Details | None = None
    seconds: float = 0.0

    @property
    def status(self) -> int:
        """The exit status for this model alone."""
        return _STATUS[self.verdict]

    @property
    def passed(self) -> bool:
        """Whether the model passed: its exit status is 0."""
        return self.status == DONE

    @property
    def tone(self) -> Tone:
        """How serious the outcome is for a reader; a model that needs a conversion has not failed."""
        if self.verdict == "rewrite" or self.remarks:
            return "warning"
        return "good" if self.passed else "bad"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The problems without the model's name, to show below it."""
        return tuple(problem.removeprefix(f"{self.source}: ") for problem in self.problems)

    @property
    def sentence(self) -> str:
        """The verdict and the warnings in one sentence."""
        return "; ".join(dict.fromkeys([self.verdict_in_words, *self.warnings]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that a reader must not miss, regardless of the verdict."""
        if self.verification is not None:
            return self.verification.warnings
        return self.plan.cautions if self.plan is not None else ()

    @property
    def lines(self) -> Iterator[Line]:
        """The lines for every output: what was rewritten, how it was verified, what was written."""
        if self.plan is not None and not self.refusals and self.verdict not in ("fits", "kept"):
            yield from self.plan.lines
        elif self.plan is not None:
            yield from self.plan.remarks
        if self.verification is not None:
            yield from self.verification.lines
        else:
            yield from (Line("warning", text, "warning") for text in self.warnings)
        if self.difference is not None:
            yield from self.difference.lines
        is_unchanged = self.verdict == "fits" and self.output == self.source
        if self.plan is not None and self.output and not is_unchanged:
            yield Line("written", self.output)
        if self.external:
            yield Line("needs", f"{', '.join(self.external)} beside it (external data, not copied)")

    @property
    def verdict_in_words(self) -> str:
        """The verdict in one sentence, without warnings."""
        plan = self.plan
        if self.difference is not None:
            return self.difference.sentence
        if self.refusals:
            goal = f" to {plan.goal}" if plan is not None else ""
            return f"cannot be converted{goal}: {counted(len(self.refusals), 'node')} refused"
        if self.verdict in ("refused", "unreadable", "failed"):
            return "; ".join(self.reasons)
        if self.verdict == "kept":
            return "kept, converted by an earlier run"
        if self.verdict == "fits" and plan is not None:
            return plan.nothing_to_do if self.output else plan.fits
        if self.verdict == "rewrite" and plan is not None:
            return f"does not fit {plan.goal}: {plan.to_do}"
        if self.verification is not None:
            return self.verification.why
        if self.verdict == "converted" and plan is not None:
            return f"{plan.journey}, {counted(len(plan.sites), 'node')} rewritten"
        return self.verdict

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about a model that passed, for readers who only see the headline."""
        if not self.passed:
            return ()
        unmended = self.plan.unmended if self.plan is not None else ()
        return tuple(dict.fromkeys([*unmended, *self.warnings]))
