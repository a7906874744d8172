"""Make a runtime target from the results of a probe: the fewest facts that are true of every failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import cast

from reducelower.conformance.case import Case
from reducelower.conformance.conditions import holds
from reducelower.conformance.feature_cases import OF_MODEL
from reducelower.conformance.learning import learn
from reducelower.conformance.results import Result
from reducelower.conformance.running import Probed
from reducelower.conformance.sentences import overflow_sentence, sentence
from reducelower.model.schemas import REDUCTIONS
from reducelower.runtimes.facts import Evidence, Fact, Is, ModelFeature, When
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.runtime import Runtime

__all__ = ["Distilled", "NothingRightError", "distil", "is_told"]

_EXTREME = ("huge", "tiny")


class NothingRightError(ValueError):
    """No case was right, so the results say nothing about forms."""


@dataclass(frozen=True)
class Distilled:
    """The facts, and failing cases without a fact."""

    runtime: Runtime
    untold: tuple[Case, ...]


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
    facts = _of_models(cases, results, evidence)
    for reductions in (True, False):
        of_kind = [case for case in cases if not case.tag and (case.operator in REDUCTIONS) == reductions]
        for word in ("wrong", "refused"):
            facts += _of_nodes(of_kind, results, word, evidence)
    facts += _of_extremes([case for case in cases if case.tag in _EXTREME], results, facts, evidence)
    runtime = Runtime(
        probed.runtime,
        probed.version,
        f"Measured by reducelower probe on {len(probed.cases)} models.",
        Ranges.of(reads),
        _preferred(cases, results),
        tuple(facts),
    )
    failing = [case for case in cases if results[case.name].word != "right" and case.tag != OF_MODEL]
    return Distilled(runtime, tuple(case for case in failing if not is_told(case, facts)))


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


def _of_nodes(cases: Sequence[Case], results: Mapping[str, Result], word: str, evidence: Evidence) -> Iterator[Fact]:
    """The facts about ordinary values."""
    verdicts = {case.name: results[case.name].word for case in cases}
    failing = {name: verdict == word for name, verdict in verdicts.items() if verdict in (word, "right")}
    for pattern in learn(cases, failing):
        probed = sorted({case.opset for case in cases if case.operator in pattern.operators})
        everywhere = not pattern.when and tuple(probed) == pattern.opsets
        outcome: Is = "wrong" if word == "wrong" else "absent" if everywhere else "refused"
        says = sentence(pattern.operators, pattern.when, [results[name] for name in sorted(pattern.explains)])
        opsets, when = _ranges(pattern.opsets, probed), When(**dict(pattern.when))
        yield Fact(says, outcome, evidence, frozenset(pattern.operators), opsets=opsets, when=when)


def _of_extremes(
    cases: Sequence[Case], results: Mapping[str, Result], told: Sequence[Fact], evidence: Evidence
) -> Iterator[Fact]:
    """The facts about values whose result is finite although the obvious computation overflows."""
    failing: dict[tuple[str, int, str], tuple[Case, bool]] = {}
    for case in cases:
        key, word = (case.operator, case.opset, case.features.element_types), results[case.name].word
        if word == "right" or (word == "wrong" and not is_told(case, told)):
            failing[key] = max(failing.get(key, (case, False)), (case, word == "wrong"), key=itemgetter(1))
    for pattern in learn(
        [case for case, _ in failing.values()], {case.name: wrong for case, wrong in failing.values()}
    ):
        kinds = sorted({kind for (_, _, kind), (case, _) in failing.items() if case.name in pattern.explains})
        opsets = _ranges(
            pattern.opsets, sorted({opset for operator, opset, _ in failing if operator in pattern.operators})
        )
        says, when = overflow_sentence(pattern.operators, kinds), When(element_types=frozenset(kinds))
        yield Fact(says, "overflows", evidence, frozenset(pattern.operators), opsets=opsets, when=when)


def is_told(case: Case, facts: Sequence[Fact]) -> bool:
    """Whether a fact is true of a case; one about overflow is so only of extreme values."""
    return any(
        (fact.outcome != "overflows" or case.tag in _EXTREME)
        and fact.concerns(case.operator, case.opset)
        and holds(fact.when.conditions, case.features)
        for fact in facts
    )


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
