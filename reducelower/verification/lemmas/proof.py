"""The proof of a conversion: its lemmas settled, and the source with all of them applied equal to the result.

What no entry describes, what a lemma does not show, and a result that is not what the rewrites make of the source are
left to the regions (`checking.sites`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from reducelower.model.rewrites import Step
from reducelower.plan import Plan
from reducelower.types import Inference
from reducelower.verification.checking.remembered import Checker
from reducelower.verification.checking.sites import Regions, verify_regions
from reducelower.verification.lemmas.lemma import lemmas_of
from reducelower.verification.lemmas.settle import settle, wanted
from reducelower.verification.lemmas.substitution import Substituted, is_same, substituted
from reducelower.verification.regions.align import align
from reducelower.verification.running.weights import held_array, is_held

__all__ = ["values_of", "verify_rewrites"]


def verify_rewrites(
    before: ModelProto,
    after: ModelProto,
    plan: Plan | None,
    checker: Checker,
    on_progress: Callable[[int, int], None] | None,
) -> Regions:
    """What the rewrites of a conversion gave, and whatever else differs; of models without a plan, the regions.

    Args:
        before, after: both models.
        plan: what the conversion did, where it was one.
        checker: settles lemmas and regions, and gives values of the source.
        on_progress: called with (done, total) distinct rewrites.
    """
    made = _made(before, after, plan)
    if plan is None or made is None:
        return verify_regions(before, after, plan, checker=checker, on_progress=on_progress)
    lemmas = lemmas_of(before, plan.steps[0].applied or (), made.stayed, plan.target.opset or 0)
    values = checker.values(wanted(lemmas)) if lemmas else {}
    settled = settle(lemmas, values, before, checker, on_progress)
    if all((place.graph, place.index) in settled.places for lemma in lemmas for place in lemma.places):
        inferences = Inference(lambda: before), Inference(lambda: after)
        return Regions(
            settled.findings,
            lambda: align(before, after, plan, dropped=(), by_name=True, inferences=inferences),
            shared=len(before.graph.node) - sum(path == "graph" for path, _ in settled.places),
        )
    rest = verify_regions(before, after, plan, checker=checker, on_progress=on_progress, settled=settled.places)
    return replace(rest, findings=(*settled.findings, *rest.findings))


def values_of(
    before: ModelProto, seen: Callable[[Sequence[str]], Mapping[str, Any]], names: Collection[str]
) -> dict[str, Any]:
    """Values of the main graph by name: those of initializers as they are, others in a run of the source."""
    held = {tensor.name: tensor for tensor in before.graph.initializer if tensor.name in names}
    produced = [name for node in before.graph.node for name in node.output if name in names]
    # numpy gives numbers of rank 0 where arrays are meant
    values = {
        name: np.asarray(value) if isinstance(value, np.generic) else value for name, value in seen(produced).items()
    }
    for name, tensor in held.items():
        with suppress(Exception):  # data in another file, and element types that numpy lacks
            values.setdefault(name, held_array(tensor) if is_held(tensor) else numpy_helper.to_array(tensor))
    return values


def _made(before: ModelProto, after: ModelProto, plan: Plan | None) -> Substituted | None:
    """The source with the rewrites of a plan in place, if that is the result; None otherwise."""
    if plan is None or len(plan.steps) != 1 or not _is_of(plan.steps[0], before):
        return None
    made = substituted(before, plan.steps[0].applied or (), plan.target.opset or 0)
    return None if made.left_out or not is_same(made.model, after) else made


def _is_of(step: Step, before: ModelProto) -> bool:
    """Whether a step was made of the model itself, and not of one that was changed as a whole."""
    if step.applied is None:
        return False
    source = step.source.message
    return source is before or (
        source.graph.node == before.graph.node
        and source.functions == before.functions
        and [tensor.name for tensor in source.graph.initializer] == [tensor.name for tensor in before.graph.initializer]
    )
