"""Find facts with real models: convert and run each, and find the smallest failing part.

A fact about that part is added, as narrow as its evidence, and the models are converted again. This ends when every
model is right, is refused with a reason, or fails in a part that no fact describes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from onnx import ModelProto

from reducelower.conformance.bisection import Inside, Part, single_nodes, smallest_part
from reducelower.conformance.case import Case, CaseFeatures
from reducelower.conformance.judging import Verdict
from reducelower.conformance.learning import Conditions, common, holds
from reducelower.conformance.mending import Change, corrected
from reducelower.conformance.process import Worker
from reducelower.conformance.running import AS_USUAL, How, Probed, Result, probe
from reducelower.conformance.sentences import sentence
from reducelower.model.schemas import DEFAULT_DOMAINS, since_version, versions
from reducelower.runtimes.facts import Evidence, Fact, When
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.runtime import Runtime

__all__ = ["FromModels", "facts_from_models"]

Look = Callable[[ModelProto, Case], Inside]
"""Computes the values inside a converted model of a case."""


@dataclass(frozen=True)
class FromModels:
    """The facts and failures that real models showed.

    Attributes:
        runtime: with the added facts, and without the untrue ones.
        changes: the result for every model, original and converted.
        added: the facts that were added.
        parts: the smallest failing part of each model, by the model's name.
        untrue: facts that refused a model that is right without conversion, with its name.
    """

    probed: Probed
    runtime: Runtime
    changes: Sequence[Change]
    added: frozenset[Fact]
    parts: dict[str, Part] = field(default_factory=dict)
    untrue: dict[Fact, str] = field(default_factory=dict)

    @property
    def left(self) -> tuple[Case, ...]:
        """The models that fail although no fact says so."""
        return tuple(change.case for change in self.changes if change.is_bad)


def facts_from_models(
    worker: Worker,
    cases: Sequence[Case],
    known: Runtime,
    look: Look,
    on: date,
    how: How = AS_USUAL,
) -> FromModels:
    """Probe whole models (see `case.WHOLE`) on a runtime, and add the facts found to the known ones.

    Raises:
        UnusableError: the runtime cannot be run at all.
    """
    probed = probe(worker, cases, how)
    measured = f"{probed.runtime} {probed.version}".strip()
    parts: dict[tuple[str, bytes], Part | None] = {}
    untrue: dict[Fact, str] = {}

    def run(case: Case) -> Verdict:
        return how.judge(case, worker.run(case.model, case.inputs), worker.tolerance)

    def correct(runtime: Runtime, changes: Sequence[Change]) -> tuple[Fact, ...]:
        facts = dict.fromkeys(runtime.facts)
        for change in changes:
            untrue.update((fact, change.case.name) for fact in change.wrongly_refused_by(facts))
        for whole in _failing(changes):
            key = (whole.name, whole.model)
            if key not in parts:
                inside = look(ModelProto.FromString(whole.model), whole)
                part = parts[key] = smallest_part(whole, inside, run)
                fact = None if part is None else _fact(part, whole, inside, run, measured, on)
                if fact is not None and not any(replace(each, evidence=fact.evidence) == fact for each in facts):
                    facts[fact] = None
        return tuple(fact for fact in facts if fact not in untrue)

    runtime, changes = corrected(worker, probed, known, correct, how)
    failing_parts = {name: part for (name, _), part in parts.items() if part is not None}
    return FromModels(
        probed, runtime, changes, frozenset(runtime.facts) - frozenset(known.facts), failing_parts, untrue
    )


def _failing(changes: Sequence[Change]) -> list[Case]:
    """The converted models that fail without a stated reason."""
    return [replace(change.case, model=change.made.model) for change in changes if change.is_bad and change.made]


def _fact(
    part: Part, whole: Case, inside: Inside, run: Callable[[Case], Verdict], measured: str, on: date
) -> Fact | None:
    """The fact about a part, and about similar nodes of the model."""
    failing, right = [part], []
    if len(part.nodes) == 1:
        others = list(single_nodes(whole, part.nodes[0].op_type, inside, run))
        right = [each for each in others if each.verdict.word == "right"]
        failing += [each for each in others if each.verdict.word == part.verdict.word]
    node = part.nodes[-1]
    evidence = Evidence(measured=f"{measured}, {node.name or node.op_type} of {Path(whole.name).name}", on=on)
    return narrow_fact(failing, right, evidence) or narrow_fact([part], right, evidence)


_FORM = ("element_types", "second_types", "output_types", "rank", "rank_second", "attributes")
"""Features that are always stated if known: the form of a node."""

_IN_SENTENCE = ("element_types", "output_types", "attributes", "after")

_LONGEST = 60
"""The longest condition on an attribute; longer ones contain a tensor, which no two models share."""

_OTHERS = tuple(field.name for field in fields(When) if field.name not in (*_FORM, "made", "after"))


def narrow_fact(failing: Sequence[Part], right: Sequence[Part], evidence: Evidence) -> Fact | None:
    """The fact that is true of all failing parts and of no right one; None if no condition tells them apart.

    A part is a node, possibly preceded by the node that computes its first input. All parts have the same operator and
    opset version.
    """
    first = failing[0]
    if first.nodes[-1].domain not in DEFAULT_DOMAINS:
        return None  # facts are about ONNX's own operators
    node, opset = first.nodes[-1], first.case.opset
    nodes = [part.case.features for part in failing]
    when = {name: value for name in _FORM if (value := _shared(nodes, name)) is not None}
    if len(first.nodes) > 1:
        if len(first.nodes) > 2 or not _reads_first(first):
            return None
        when["after"] = frozenset({first.nodes[0].op_type})
    for name in _OTHERS:
        still_matching = [part.case.features for part in right if holds(when.items(), part.case.features)]
        value = _shared(nodes, name)
        if value is not None and not all(holds([(name, value)], features) for features in still_matching):
            when[name] = value
    if any(holds(when.items(), part.case.features) for part in right):
        return None
    results = [Result.of(part.case, "", "", part.verdict) for part in failing]
    return Fact(
        sentence([node.op_type], _for_sentence(when, nodes[0]), results),
        "wrong" if all(part.verdict.word == "wrong" for part in failing) else "refused",
        evidence,
        frozenset({node.op_type}),
        opsets=_same_operator(node.op_type, opset),
        when=When(**when),
    )


def _for_sentence(when: Mapping[str, Any], first: CaseFeatures) -> Conditions:
    """The conditions for a sentence: without defaults, and without an output type that equals the input type."""
    parts = dict(when)
    if parts.get("output_types") == parts.get("element_types"):
        parts.pop("output_types", None)
    parts["attributes"] = [text for text in when.get("attributes", ()) if text.partition("=")[0] in first.attributes]
    return tuple((name, frozenset(parts[name])) for name in _IN_SENTENCE if parts.get(name))


def _reads_first(part: Part) -> bool:
    """Whether the first input of the last node is an output of the one before."""
    before, last = part.nodes
    return last.input[:1] != [] and last.input[0] in before.output


def _shared(nodes: Sequence[CaseFeatures], name: str) -> Any:
    """The condition on a feature that all nodes share; None if it is unknown, differs, or there is no such input."""
    if name == "rank_second" and not all(features.second_types for features in nodes):
        return None
    if name != "attributes":
        return common(nodes, name)
    shared = frozenset.intersection(*(features.attributes or frozenset() for features in nodes))
    return frozenset(text for text in shared if "=" in text and len(text) <= _LONGEST) or None


def _same_operator(op_type: str, opset: int) -> Ranges:
    """The opset versions with the same definition of an operator: a runtime has one importer for them."""
    since = since_version(op_type, opset)
    later = min((version for version in versions(op_type) if version > since), default=None)
    return Ranges.between(since, None if later is None else later - 1)
