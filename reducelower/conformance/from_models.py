"""Find facts with real models: convert and run each, and find the smallest failing part.

A fact about that part is added, as narrow as its evidence, and the models are converted again. This ends when every
model is right, is refused with a reason, or fails in a part that no fact describes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from onnx import ModelProto

from reducelower.conformance.bisection import Inside, Part, single_nodes, smallest_part
from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict
from reducelower.conformance.mending import Change, corrected
from reducelower.conformance.narrow_facts import narrow_fact
from reducelower.conformance.process import Worker
from reducelower.conformance.running import AS_USUAL, How, Probed, probe
from reducelower.runtimes.facts import Evidence, Fact
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
