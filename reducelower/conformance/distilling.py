"""Make a runtime target from the results of a probe: the fewest facts that are true of every failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import cast

from reducelower.conformance.case import Case
from reducelower.conformance.learning import holds, learn
from reducelower.conformance.running import Probed, Result
from reducelower.conformance.sentences import overflow_sentence, sentence
from reducelower.conformance.whole_models import OF_MODEL
from reducelower.model.schemas import REDUCTIONS
from reducelower.runtimes.facts import Evidence, Fact, Is, ModelFeature, When
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.runtime import Runtime

__all__ = ["Distilled", "NothingRightError", "distil", "is_described"]

_EXTREME = ("huge", "tiny")


class NothingRightError(ValueError):
    """No case was right, so the results say nothing about forms."""


@dataclass(frozen=True)
class Distilled:
    """The runtime with its facts, and the failing cases that no fact describes."""

    runtime: Runtime
    undescribed: tuple[Case, ...]


def distil(probed: Probed, on: date) -> Distilled:
    """Find the facts. The date goes into their evidence.

    Raises:
        NothingRightError: no Reduce operator was ever right or, if none was tried, no operator.
    """
    results = dict(zip((case.name for case in probed.cases), probed.results, strict=True))
    opsets = _readable_opsets(probed.cases, results)
    if not opsets:
        first = next((result.detail for result in probed.results if result.detail), "no detail")
        raise NothingRightError(f"not one case came out right on {probed.runtime}; the first said: {first}")
    cases = [case for case in probed.cases if case.opset in opsets]
    evidence = Evidence(measured=f"{probed.runtime} {probed.version}".strip(), on=on)
    facts = _model_facts(cases, results, evidence)
    for reductions in (True, False):
        ordinary = [case for case in cases if not case.tag and (case.operator in REDUCTIONS) == reductions]
        for word in ("wrong", "refused"):
            facts += _node_facts(ordinary, results, word, evidence)
    facts += _overflow_facts([case for case in cases if case.tag in _EXTREME], results, facts, evidence)
    runtime = Runtime(
        probed.runtime,
        probed.version,
        f"Measured by reducelower probe on {len(probed.cases)} models.",
        Ranges.of(opsets),
        _preferred(cases, results),
        tuple(facts),
    )
    failing = [case for case in cases if results[case.name].word != "right" and case.tag != OF_MODEL]
    return Distilled(runtime, tuple(case for case in failing if not is_described(case, facts)))


def _model_facts(cases: Sequence[Case], results: Mapping[str, Result], evidence: Evidence) -> list[Fact]:
    """Facts about model features: those that were right at no opset version."""
    by_feature: dict[str, list[Result]] = {}
    for case in cases:
        if case.tag == OF_MODEL:
            by_feature.setdefault(case.operator, []).append(results[case.name])
    facts = []
    for feature, feature_results in by_feature.items():
        if not any(result.word == "right" for result in feature_results):
            outcome: Is = "wrong" if any(result.word == "wrong" for result in feature_results) else "refused"
            says = f"{feature.capitalize()} {'give wrong values' if outcome == 'wrong' else 'are not supported'}."
            facts.append(Fact(says, outcome, evidence, model=frozenset({cast(ModelFeature, feature)})))
    return facts


def _node_facts(cases: Sequence[Case], results: Mapping[str, Result], word: str, evidence: Evidence) -> Iterator[Fact]:
    """Facts about nodes with ordinary values."""
    verdicts = {case.name: results[case.name].word for case in cases}
    failing = {name: verdict == word for name, verdict in verdicts.items() if verdict in (word, "right")}
    for pattern in learn(cases, failing):
        probed = sorted({case.opset for case in cases if case.operator in pattern.operators})
        everywhere = not pattern.when and tuple(probed) == pattern.opsets
        outcome: Is = "wrong" if word == "wrong" else "absent" if everywhere else "refused"
        says = sentence(pattern.operators, pattern.when, [results[name] for name in sorted(pattern.explains)])
        opsets, when = _ranges(pattern.opsets, probed), When(**dict(pattern.when))
        yield Fact(says, outcome, evidence, frozenset(pattern.operators), opsets=opsets, when=when)


def _overflow_facts(
    cases: Sequence[Case], results: Mapping[str, Result], known_facts: Sequence[Fact], evidence: Evidence
) -> Iterator[Fact]:
    """Facts about values for which the plain computation overflows although the result is finite."""
    failing: dict[tuple[str, int, str], tuple[Case, bool]] = {}
    for case in cases:
        key, word = (case.operator, case.opset, case.features.element_types), results[case.name].word
        if word == "right" or (word == "wrong" and not is_described(case, known_facts)):
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


def is_described(case: Case, facts: Sequence[Fact]) -> bool:
    """Whether a fact describes a case; overflow facts describe only extreme values."""
    return any(
        (fact.outcome != "overflows" or case.tag in _EXTREME)
        and fact.concerns(case.operator, case.opset)
        and holds(fact.when.conditions, case.features)
        for fact in facts
    )


def _readable_opsets(cases: Sequence[Case], results: Mapping[str, Result]) -> tuple[int, ...]:
    """The opset versions at which a reduction is right, or any operator if no reduction was tried."""
    telling = [case for case in cases if case.operator in REDUCTIONS] or list(cases)
    return tuple(sorted({case.opset for case in telling if results[case.name].word == "right"}))


def _preferred(cases: Sequence[Case], results: Mapping[str, Result]) -> int:
    """The newest opset version at which most plain reductions are right.

    Plain means as conversions write them: axes as an attribute or initializer, none negative, and keepdims written.
    Versions at which few forms were tried do not count. If no reduction was tried, any operator counts.
    """
    counts: dict[int, list[bool]] = {}
    for case in cases:
        plain = case.features.axes in ("attribute", "initializer") and not case.features.negative_axes
        if case.operator in REDUCTIONS and not case.tag and plain and case.features.keepdims != "unset":
            counts.setdefault(case.opset, []).append(results[case.name].word == "right")
    if not counts:
        return max(_readable_opsets(cases, results))
    most = max(len(flags) for flags in counts.values())
    tried = {opset: flags for opset, flags in counts.items() if len(flags) > most / 4}
    return max(tried, key=lambda opset: (round(sum(tried[opset]) / len(tried[opset]), 3), opset))


def _ranges(opsets: Sequence[int], probed: Sequence[int]) -> Ranges | None:
    """Opset versions as ranges, open at the first and last one probed; None for all of them."""
    if len(opsets) == len(probed):
        return None
    ranges: list[Ranges] = []
    runs = groupby(enumerate(probed), key=lambda item: item[1] in opsets)
    for is_included, run in runs:
        if is_included:
            places = [at for at, _ in run]
            first, last = places[0], places[-1]
            # A version between two that were probed counts as the older one.
            high = probed[last + 1] - 1 if last + 1 < len(probed) else None
            ranges.append(Ranges.between(probed[first] if first else None, high))
    return Ranges(tuple(pair for each in ranges for pair in each.pairs))
