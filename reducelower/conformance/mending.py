"""Convert each case by the facts found, run it again, and exclude replacement forms that are no better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from onnx import load_model_from_string

from reducelower.api import legalize
from reducelower.conformance.case import Case, CaseFeatures
from reducelower.conformance.judging import Verdict
from reducelower.conformance.process import Worker
from reducelower.conformance.running import AS_USUAL, How, Probed, Result, probe
from reducelower.errors import ConversionError
from reducelower.options import Target
from reducelower.plan import Site
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.runtime import Runtime

__all__ = ["TOOL_REFUSED", "Change", "Converted", "Transform", "compare", "corrected", "fitting"]

TOOL_REFUSED = "refused by the conversion"
"""The kind of verdict on a case that the conversion refused with a reason."""

_ROUNDS = 16
"""How often facts are corrected and the cases converted again."""


@dataclass(frozen=True)
class Converted:
    """The converted model, the sites where it was rewritten, and problems that no form avoids."""

    model: bytes
    sites: tuple[Site, ...] = ()
    unmended: tuple[str, ...] = ()


Transform = Callable[[bytes], Converted]


@dataclass(frozen=True)
class Change:
    """One case before and after.

    Attributes:
        after: the verdict after conversion; ``refused`` with the kind `TOOL_REFUSED` if the conversion refused it.
        made: the converted model; None if the conversion refused it.
    """

    case: Case
    before: Result
    after: Verdict
    made: Converted | None = None

    def wrongly_refused_by(self, facts: Iterable[Fact]) -> list[Fact]:
        """The facts that refuse the case although the runtime is right on it."""
        if self.after.kind != TOOL_REFUSED or self.before.word != "right":
            return []
        return [fact for fact in facts if fact.sentence in self.after.detail]

    @property
    def is_reported_wrong(self) -> bool:
        """Whether the result is wrong and the conversion said so."""
        return self.made is not None and bool(self.made.unmended) and self.after.word == "wrong"

    @property
    def is_bad(self) -> bool:
        """Whether this is a fault of the conversion: right before and not after, or wrong without a reason given."""
        if self.before.word == "right":
            return self.after.word != "right"
        return self.after.word != "right" and self.after.kind != TOOL_REFUSED and not self.is_reported_wrong


def fitting(runtime: Runtime) -> Transform:
    """The conversion that ``--for`` does for a runtime, without verification."""
    target = Target(runtime=runtime)

    def transform(model: bytes) -> Converted:
        legalized = legalize(load_model_from_string(model), target)
        plan = legalized.plan
        return Converted(legalized.model.SerializeToString(deterministic=True), plan.sites, plan.unmended)

    return transform


def compare(
    worker: Worker,
    probed: Probed,
    transform: Transform,
    how: How = AS_USUAL,
    *,
    known: dict[tuple[str, bytes], Verdict] | None = None,
) -> list[Change]:
    """Convert every case, and run it again if the model changed.

    A ConversionError counts as a refusal. Verdicts in `known`, by name of case and model, are reused, and new ones are
    added.
    """
    known = {} if known is None else known
    converted: dict[str, Converted] = {}
    refused: dict[str, Verdict] = {}
    for case in probed.cases:
        try:
            converted[case.name] = transform(case.model)
        except ConversionError as error:
            refused[case.name] = Verdict("refused", TOOL_REFUSED, " ".join(str(item) for item in error.refusals))
    known |= {(case.name, case.model): result for case, result in zip(probed.cases, probed.results, strict=True)}
    after = [replace(case, model=converted[case.name].model) for case in probed.cases if case.name in converted]
    if new := [case for case in after if (case.name, case.model) not in known]:
        again = probe(worker, new, how)
        known |= {(case.name, case.model): result for case, result in zip(new, again.results, strict=True)}
    return [
        Change(case, result, known[case.name, converted[case.name].model], converted[case.name])
        if case.name in converted
        else Change(case, result, refused[case.name])
        for case, result in zip(probed.cases, probed.results, strict=True)
    ]


def corrected(worker: Worker, probed: Probed, runtime: Runtime, how: How = AS_USUAL) -> tuple[Runtime, list[Change]]:
    """The runtime without the forms that are no better, and the result for every case.

    Every case is converted by the facts and run, and the facts are corrected by the results, until they stay.
    """
    known: dict[tuple[str, bytes], Verdict] = {}
    for _ in range(_ROUNDS):
        changes = compare(worker, probed, fitting(runtime), how, known=known)
        facts = _without_bad_forms(runtime, changes)
        if facts == runtime.facts:
            return runtime, changes
        runtime = replace(runtime, facts=facts)
    return runtime, compare(worker, probed, fitting(runtime), how, known=known)


def _without_bad_forms(runtime: Runtime, changes: Sequence[Change]) -> tuple[Fact, ...]:
    """The facts, excluding forms that are no better: that break a right node, or fail for more nodes than they repair.

    A fact that causes a right node to be refused is dropped.
    """
    balance: Counter[tuple[Fact, str]] = Counter()
    dropped: set[Fact] = set()
    for change in changes:
        dropped.update(change.wrongly_refused_by(runtime.facts))
        for site in change.made.sites if change.made is not None else ():
            fact = _reason(runtime, site, change.case.features)
            if fact is not None:
                form = site.rule.removesuffix(f" for {runtime.name}").split("; ")[-1]
                breaks = change.before.word == "right" != change.after.word
                balance[fact, form] += 1 if change.after.word == "right" else -len(changes) if breaks else -1
    bad = {fact: frozenset(form for of, form in balance if of == fact and balance[of, form] < 0) for fact, _ in balance}
    kept = (fact for fact in runtime.facts if fact not in dropped)
    return tuple(replace(fact, not_by=fact.not_by | bad.get(fact, frozenset())) for fact in kept)


def _reason(runtime: Runtime, site: Site, features: CaseFeatures) -> Fact | None:
    """The fact that a site was rewritten for, or one with the same text if axes are written differently now."""
    candidates = [fact for fact in runtime.facts if fact.sentence == site.because and fact.is_about(site.op_type)]
    return next((fact for fact in candidates if fact.when.matches(features)), candidates[0] if candidates else None)
