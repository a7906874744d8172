"""What a report is about: one run, its models, and the outcome of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reducelower.errors import Refusal
from reducelower.model.text import counted
from reducelower.plan import Plan

if TYPE_CHECKING:
    from reducelower.report.details import Details
    from reducelower.verification import RuntimeComparison, Verification
    from reducelower.verification.difference import Difference

__all__ = ["Command", "ModelReport", "Report", "Verdict"]

Command = Literal["convert", "expand", "check", "verify", "diff", "raise", "repair"]

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

_PASSED: tuple[Verdict, ...] = ("legal", "converted", "kept", "equivalent", "same", "not verified")


@dataclass(frozen=True)
class ModelReport:
    """One model and its outcome.

    Attributes:
        path: the model as the user named it.
        verdict: ``legal`` (nothing to do), ``rewrite`` (a check found work), ``converted``, ``kept`` (an earlier run
            converted it), ``equivalent``, ``not verified`` (not everything was seen to be the same), ``not shown``
            (the same, where that is a failure), ``different`` (it computes something else), ``same`` or ``differs`` (by
            structure), ``refused``, ``unreadable`` or ``failed`` (a fault of reducelower).
        output: the file that was written, or the second model of a comparison; empty when there is none.
        problems: sentences that say why there is no output.
        plan: what was or would be done; None when it did not come to that.
        refusals: every node that cannot be converted, and why.
        verification: how the two models compare; None when they were not compared.
        comparisons: the model in other runtimes, compared with a trusted one.
        difference: what differs from the second model by structure; None where that was not asked for.
        details: the distinct rewrites as pictures and what happened to each node; None when there was no model.
        seconds: how long it took; 0 where that is not known.
    """

    path: str
    verdict: Verdict
    output: str = ""
    problems: tuple[str, ...] = ()
    plan: Plan | None = None
    refusals: tuple[Refusal, ...] = ()
    verification: Verification | None = None
    comparisons: tuple[RuntimeComparison, ...] = ()
    difference: Difference | None = None
    details: Details | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.verdict in _PASSED

    @property
    def sentence(self) -> str:
        """The verdict in words, with what a reader must not miss."""
        return "; ".join([self._verdict_in_words, *self.caveats])

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader must not miss, whatever the verdict."""
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
            return "; ".join(self.problems)
        if self.verdict == "legal" and plan is not None:
            return f"legal as it is (opset {plan.source_opset})"
        if self.verdict == "rewrite" and plan is not None:
            return f"would be converted ({plan.versions}): {counted(len(plan.sites), 'node')} rewritten"
        if self.verdict == "converted" and plan is not None:
            return (
                f"converted ({plan.versions}): {counted(len(plan.sites), 'node')} rewritten, {plan.carried} unchanged"
            )
        if self.verdict == "kept":
            return "converted by an earlier run, of the same model and options"
        if self.verdict == "different":
            return "computes something else"
        return "gives the same numbers" if self.verdict == "equivalent" else "could not be verified"

    @property
    def warnings(self) -> tuple[str, ...]:
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

    @property
    def verified(self) -> str:
        """One paragraph of what the numbers say; empty when nothing was compared."""
        found = [] if self.verification is None else [str(self.verification)]
        return " ".join([*found, *map(str, self.comparisons)])


@dataclass(frozen=True)
class Report:
    """One run of a command.

    Attributes:
        command: the command that ran.
        models: one section per model, in the order they were named.
        run: date, command line and versions, each with its name; empty where the report is not that of a command.
    """

    command: Command
    models: tuple[ModelReport, ...]
    run: tuple[tuple[str, str], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against any model."""
        return all(model.passed for model in self.models)

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """How many models have each verdict."""
        return Counter(model.verdict for model in self.models)
