"""Make a runtime target from the results of a probe: the fewest facts that are true of every failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import cast

from reducelower.conformance.case import Case
from reducelower.conformance.conditions import Condition, holds
from reducelower.conformance.feature_cases import OF_MODEL
from reducelower.conformance.learning import carried, learn
from reducelower.conformance.patterns import Pattern
from reducelower.conformance.results import Result
from reducelower.conformance.running import Probed
from reducelower.conformance.sentences import overflow_sentence, sentence
from reducelower.model.schemas import REDUCTIONS
from reducelower.runtimes.facts import Evidence, Fact, Is, ModelFeature, When
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.runtime import Runtime

__all__ = ["Distilled", "NothingRightError", "distil"]

_EXTREME = ("huge", "tiny")


class NothingRightError(ValueError):
    """No case was right, so the results say nothing about forms."""


@dataclass(frozen=True)
class Distilled:
    """The facts, failing cases without a fact, and right cases for which a fact is true."""

    runtime: Runtime
    untold: tuple[Case, ...]
    overcast: tuple[Case, ...]


def distil(probed: Probed, on: date) -> Distilled:
    """Find the facts; the date is for the evidence.

    Raises:
        NothingRightError: no Reduce operator was right anywhere, or no operator at all if none was tried.
    """
    results = dict(zip((case.name for case in probed.cases), probed.results, strict=True))
    reads = _read(probed.cases, results)
    if not reads:
        first = next((result.detail for result in probed.results if result.detail), "no detail")
        raise NothingRightError(f"not one case came out right on {probed.runtime}; the first said: {first}")
    cases = [case for case in probed.cases if case.opset in reads]
    evidence = Evidence(measured=f"{probed.runtime} {probed.version}".strip(), on=on)
    drafts = _Drafts(cases, results, reads, evidence)
    for reductions in (True, False):
        of_kind = [case for case in cases if not case.tag and (case.operator in REDUCTIONS) == reductions]
        drafts.add_failures(of_kind, "wrong", exact=not reductions)
        drafts.add_failures(of_kind, "refused", exact=not reductions)
        if reductions:
            drafts.add_overflows()
    runtime = Runtime(
        probed.runtime,
        probed.version,
        f"Measured by reducelower probe on {len(probed.cases)} models.",
        Ranges.of(reads),
        _preferred(cases, results),
        (*_of_models(cases, results, evidence), *drafts.facts),
    )
    failing = [case for case in cases if results[case.name].word != "right" and case.tag != OF_MODEL]
    told = {name for pattern in drafts.patterns for name in pattern.explains}
    return Distilled(
        runtime,
        tuple(case for case in failing if case.name not in told and not drafts.is_told(case)),
        tuple(case for case in cases if not case.tag and results[case.name].word == "right" and drafts.is_told(case)),
    )


def _of_models(cases: Sequence[Case], results: Mapping[str, Result], evidence: Evidence) -> list[Fact]:
    """The facts about what models as a whole have: what came out right at no opset version."""
    found: dict[str, list[Result]] = {}
    for case in cases:
        if case.tag == OF_MODEL:
            found.setdefault(case.operator, []).append(results[case.name])
    facts = []
    for feature, each in found.items():
        if not any(result.word == "right" for result in each):
            outcome: Is = "wrong" if any(result.word == "wrong" for result in each) else "refused"
            says = f"{feature.capitalize()} {'give wrong values' if outcome == 'wrong' else 'are not supported'}."
            facts.append(Fact(says, outcome, evidence, model=frozenset({cast(ModelFeature, feature)})))
    return facts


class _Drafts:
    """The facts found so far."""

    def __init__(
        self, cases: Sequence[Case], results: Mapping[str, Result], reads: Sequence[int], evidence: Evidence
    ) -> None:
        self._cases = cases
        self._results = results
        self._reads = reads
        self._evidence = evidence
        self.facts: list[Fact] = []
        self.patterns: list[Pattern] = []

    def add_failures(self, cases: Sequence[Case], word: str, *, exact: bool) -> None:
        """Add the facts about ordinary values."""
        verdicts = {case.name: self._results[case.name].word for case in cases}
        failing = {name: verdict == word for name, verdict in verdicts.items() if verdict in (word, "right")}
        for pattern in learn(cases, failing, exact=exact):
            shown = [self._results[name] for name in sorted(pattern.explains)]
            probed = sorted({case.opset for case in cases if case.operator in pattern.operators})
            everywhere = not pattern.when and tuple(probed) == pattern.opsets
            outcome: Is = "wrong" if word == "wrong" else "absent" if everywhere else "refused"
            says = sentence(pattern.operators, pattern.when, shown)
            self._add(pattern, outcome, says, _ranges(pattern.opsets, probed))

    def add_overflows(self) -> None:
        """Add the facts about values whose result is finite although the obvious computation overflows."""
        spans: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        extremes = [case for case in self._cases if case.tag in _EXTREME]
        explained: dict[str, set[str]] = {}
        kind = attrgetter("operator", "features.element_types")
        for (operator, element_type), group in groupby(sorted(extremes, key=kind), kind):
            opsets, names = self._overflowing(operator, list(group))
            if opsets:
                spans.setdefault((operator, opsets), []).append(element_type)
                explained.setdefault(operator, set()).update(names)
        together: dict[tuple[tuple[str, ...], tuple[int, ...]], list[str]] = {}
        for (operator, where), failing in spans.items():
            together.setdefault((tuple(failing), where), []).append(operator)
        for (types, where), operators in sorted(together.items(), key=lambda item: (item[1], item[0])):
            found = frozenset(name for operator in operators for name in explained[operator])
            pattern = Pattern(tuple(operators), where, (Condition("element_types", types),), found)
            self._add(pattern, "overflows", overflow_sentence(operators, types), _ranges(where, self._reads))

    def _overflowing(self, operator: str, cases: Sequence[Case]) -> tuple[tuple[int, ...], list[str]]:
        """The opset versions at which extreme values of an operator and element type are wrong, and the cases."""
        known: dict[int, bool] = {}
        names = []
        for case in cases:
            word = self._results[case.name].word
            if word == "wrong" and not self.is_told(case):
                known[case.opset] = True
                names.append(case.name)
            elif word == "right":
                known.setdefault(case.opset, False)
        if not names:
            return (), []
        return carried(operator, {opset: known.get(opset) for opset in self._reads}), names

    def _add(self, pattern: Pattern, outcome: Is, says: str, opsets: Ranges | None) -> None:
        self.patterns.append(pattern)
        when = When(**{condition.name: _value(condition) for condition in pattern.when})  # type: ignore[arg-type]
        self.facts.append(Fact(says, outcome, self._evidence, frozenset(pattern.operators), opsets=opsets, when=when))

    def is_told(self, case: Case) -> bool:
        """Whether a fact about how nodes are written is true of a case."""
        return any(
            fact.outcome != "overflows"
            and fact.concerns(case.operator, case.opset)
            and holds(pattern.when, case.features)
            for fact, pattern in zip(self.facts, self.patterns, strict=True)
        )


def _value(condition: Condition) -> object:
    value = condition.value
    if isinstance(value, str):
        return Ranges.parse(value)
    return frozenset(value) if isinstance(value, tuple) else value


def _read(cases: Sequence[Case], results: Mapping[str, Result]) -> tuple[int, ...]:
    """The opset versions at which a reduction is right, or any operator if no reduction was tried."""
    telling = [case for case in cases if case.operator in REDUCTIONS] or list(cases)
    return tuple(sorted({case.opset for case in telling if results[case.name].word == "right"}))


def _preferred(cases: Sequence[Case], results: Mapping[str, Result]) -> int:
    """The newest opset version at which most plain reductions are right.

    These have axes as an attribute or initializer, none negative, and keepdims written, as conversions write them.
    Versions with only one form tried do not count. If no reduction was tried, it is the newest at which
    anything is right.
    """
    counts: dict[int, list[bool]] = {}
    for case in cases:
        plain = case.features.axes in ("attribute", "initializer") and not case.features.negative_axes
        if case.operator in REDUCTIONS and not case.tag and plain and case.features.keepdims != "unset":
            counts.setdefault(case.opset, []).append(results[case.name].word == "right")
    if not counts:
        return max(_read(cases, results))
    most = max(len(flags) for flags in counts.values())
    tried = {opset: flags for opset, flags in counts.items() if len(flags) > most / 4}
    return max(tried, key=lambda opset: (round(sum(tried[opset]) / len(tried[opset]), 3), opset))


def _ranges(opsets: Sequence[int], probed: Sequence[int]) -> Ranges | None:
    """Opset versions as ranges, open at the first and last one probed; None for all of them."""
    if len(opsets) == len(probed):
        return None
    pairs: list[tuple[int, int | None]] = []
    runs = groupby(enumerate(probed), key=lambda item: item[1] in opsets)
    for wanted, run in runs:
        if wanted:
            places = [at for at, _ in run]
            first, last = places[0], places[-1]
            # A version between two that were probed counts as the older one.
            high = probed[last + 1] - 1 if last + 1 < len(probed) else None
            pairs.append((probed[first] if first else 0, high))
    return Ranges(tuple(pairs))
