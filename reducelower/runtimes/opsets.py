"""Choose the opset version for a runtime that reads several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from reducelower.errors import RuleError
from reducelower.model.schemas import latest_opset, since_version
from reducelower.options import Target
from reducelower.plan import Plan
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.runtime import Runtime

__all__ = ["opset_for"]


def opset_for(
    target: Target,
    source_opset: int,
    attempt: Callable[[Target], Plan],
) -> Target:
    """The target with the opset version at which the model needs the fewest rewrites for the runtime.

    The candidates are the model's own opset version and the one that the runtime prefers; the model's own wins a tie.
    Other versions are tried only if both are refused, those nearest to the preferred one first. A version is skipped if
    a refused operator has the same schema and facts there as where it was refused. If all versions are refused, the
    better one of the two candidates is returned. A target without a runtime, or with an opset version, is returned
    unchanged. `attempt` converts the model for a target with an opset version.

    Raises:
        ValueError: the target asks for an opset version that the runtime does not read.
    """
    runtime = target.runtime
    if runtime is None:
        return target
    if target.opset is not None:
        if target.opset not in runtime.reads:
            raise ValueError(f"{runtime} reads opsets {runtime.reads}, not {target.opset}")
        return target
    candidates = [replace(target, opset=opset) for opset in _candidates(runtime, source_opset)]
    plans: list[Plan] = []
    for candidate in candidates:
        plans.append(attempt(candidate))
        if not (plans[-1].refusals or plans[-1].unmended or plans[-1].sites):
            return candidate  # none can be better
    if all(plan.refusals for plan in plans):
        refused = set().union(*(_refused_forms(plan, runtime) for plan in plans))
        for opset in _others(runtime, source_opset):
            if not refused.isdisjoint(_forms({operator for operator, *_ in refused}, runtime, opset)):
                continue
            candidate = replace(target, opset=opset)
            try:
                plan = attempt(candidate)
            except RuleError:  # from a rule that is needed only at an opset version the user did not ask for
                continue
            if not plan.refusals:
                return candidate
            refused |= _refused_forms(plan, runtime)
    costs = [(len(plan.refusals), len(plan.unmended), len(plan.sites), at) for at, plan in enumerate(plans)]
    return candidates[min(costs)[-1]]


_Form: TypeAlias = tuple[str, int, tuple[Fact, ...]]
"""An operator at an opset version: its name, the version of its schema, and the facts about it there."""


def _forms(operators: Iterable[str], runtime: Runtime, opset: int) -> set[_Form]:
    return {(name, since_version(name, opset), runtime.facts_about(name, opset)) for name in operators}


def _refused_forms(plan: Plan, runtime: Runtime) -> set[_Form]:
    operators = {refusal.operator for refusal in plan.refusals if refusal.operator}
    return _forms(operators, runtime, plan.target.opset or plan.source_opset)


def _candidates(runtime: Runtime, source_opset: int) -> Iterator[int]:
    if source_opset in runtime.reads:
        yield source_opset
    if runtime.prefer != source_opset or source_opset not in runtime.reads:
        yield min(runtime.prefer, latest_opset())


def _others(runtime: Runtime, source_opset: int) -> list[int]:
    tried = {source_opset, runtime.prefer}
    opsets = [opset for opset in range(1, latest_opset() + 1) if opset in runtime.reads and opset not in tried]
    return sorted(opsets, key=lambda opset: (abs(opset - runtime.prefer), opset))
