"""The proof of a conversion: its lemmas settled, and the source with all of them applied equal to the result.

Each lemma is settled once. What no entry describes, what a lemma does not show, and a result that is not what the
rewrites make of the source are left to the regions (`checking.sites`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from reducelower.model.graph import bodies
from reducelower.model.rewrites import Step
from reducelower.numerics.measure import Array
from reducelower.plan import Plan
from reducelower.types import Inference
from reducelower.verification.checking.remembered import Checker
from reducelower.verification.checking.sites import Regions, verify_regions
from reducelower.verification.checking.tally import describe
from reducelower.verification.lemmas.lemma import Lemma, lemmas_of, rests_on_names, sizes_told, told
from reducelower.verification.lemmas.substitution import Substituted, is_same, substituted
from reducelower.verification.regions.align import align
from reducelower.verification.regions.pairs import Pair, small_models
from reducelower.verification.regions.places import Dims
from reducelower.verification.result import DISTANCES, HOLDING, SiteVerification
from reducelower.verification.running.source import OutOfTimeError
from reducelower.verification.running.weights import held_array, is_held

__all__ = ["settle", "values_of", "verify_rewrites"]

_SAMPLES = 3  # places of a lemma that are looked at
_LEAST = 3  # sets of values, unless nothing is fed


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
    findings, places = settle(lemmas, before, checker, on_progress)
    if all((place.graph, place.index) in places for lemma in lemmas for place in lemma.places):
        inferences = Inference(lambda: before), Inference(lambda: after)
        return Regions(
            tuple(findings),
            lambda: align(before, after, plan, dropped=(), inferences=inferences),
            shared=len(before.graph.node) - sum(path == "graph" for path, _ in places),
        )
    rest = verify_regions(before, after, plan, checker=checker, on_progress=on_progress, settled=places)
    return replace(rest, findings=(*findings, *rest.findings))


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


def _wanted(lemmas: Sequence[Lemma]) -> set[str]:
    """The values of the main graph that say of what type and size the operands of lemmas are."""
    return {(place.names or {})[name] for lemma in lemmas for place in _samples(lemma) for name in lemma.operands}


def _samples(lemma: Lemma) -> list[Any]:
    """Some of its places in the main graph, from both ends."""
    if not lemma.stands_alone:
        return []
    inside = [place for place in lemma.places if place.graph == "graph"]
    return [*inside[: _SAMPLES - 1], *inside[_SAMPLES - 1 :][-1:]]


def settle(
    lemmas: Sequence[Lemma],
    source: ModelProto,
    checker: Checker,
    on_progress: Callable[[int, int], None] | None,
) -> tuple[list[SiteVerification], set[tuple[str, int]]]:
    """Settle each lemma by structure, or by values for operands like those in the model; others are left.

    Returns:
        A finding for each that was settled, and the graph path and position of the nodes that these are about.
    """
    values = checker.values(_wanted(lemmas)) if lemmas else {}
    names = _Names(source)
    findings: list[SiteVerification] = []
    places: set[tuple[str, int]] = set()
    for done, lemma in enumerate(lemmas):
        found = None
        with suppress(OutOfTimeError):
            checker.clock.check()
            found = _settled(lemma, values, names, checker)
        if found is not None:
            nodes = tuple((place.graph, names.of(place.graph, place.index)) for place in lemma.places)
            findings.append(replace(found, nodes=nodes))
            places |= {(place.graph, place.index) for place in lemma.places}
        if on_progress is not None:
            on_progress(done + 1, len(lemmas))
    return findings, places


def _settled(
    lemma: Lemma,
    values: Mapping[str, Any],
    names: _Names,
    checker: Checker,
) -> SiteVerification | None:
    if not lemma.stands_alone:
        return None
    samples = [(place, _sample(lemma, place.names or {}, values)) for place in _samples(lemma)]
    usable = [(place, sample) for place, sample in samples if sample is not None]
    if not usable or len(usable) < len(samples):
        return None
    first = lemma.places[0]
    node = names.of(first.graph, first.index)
    kinds: dict[Hashable, list[Any]] = {}
    for place, sample in usable:
        assert sample is not None
        kinds.setdefault(tuple((value.dtype.name, value.ndim) for value in sample.values()), []).append((place, sample))
    found: SiteVerification | None = None
    for alike in kinds.values():
        sample = alike[0][1]
        asked = [told(place.entry) for place, _ in alike]
        types: dict[str, tuple[int, Dims | None]] = {
            name: (helper.np_dtype_to_tensor_dtype(value.dtype), _dims(value, [each.get(name) for each in asked]))
            for name, value in sample.items()
        }
        pair = lemma.pair(types, node)
        if _is_same(pair):
            again: SiteVerification | None = _proved(pair)
        else:
            again = _run(lemma, pair, [each for _, each in alike], checker)
        if again is None:
            return None
        found = again if found is None else _joined(found, again)
    return found


def _sample(lemma: Lemma, names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Array] | None:
    found = {}
    for name in lemma.operands:
        value = values.get(names[name])
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufOSU":
            return None
        found[name] = value
    return found


def _dims(value: Array, asked: Sequence[tuple[int, Dims | None] | None]) -> Dims:
    """The sizes of an operand: numbers where a rewrite may rest on them, symbols for those that are equal elsewhere."""
    known = [dims for _, dims in filter(None, asked) if dims is not None and len(dims) == value.ndim]
    return tuple(
        size if any(isinstance(dims[at], int) for dims in known) or size == 1 else f"size {size}"
        for at, size in enumerate(value.shape)
    )


def _is_same(pair: Pair) -> bool:
    """Whether both sides are equal by numbering, operators taken by what their pages say."""
    before, after = next(small_models(pair))
    return is_same(before, after) and len(after.graph.output) == len(pair.outputs)


def _proved(pair: Pair) -> SiteVerification:
    site = pair.site
    return SiteVerification(site.op_type, site.rule, describe(pair), (), is_proved=True)


def _run(
    lemma: Lemma,
    pair: Pair,
    samples: Sequence[Mapping[str, Array]],
    checker: Checker,
) -> SiteVerification | None:
    names = lemma.places[0].names or {}
    fixed = {size for place in lemma.places if place.entry for size in sizes_told(place.entry)}
    named = [{names[name]: value for name, value in sample.items()} for sample in samples]
    found = checker.settle(pair, named, fixed=fixed, rests_on_names=rests_on_names(lemma.entry))
    too_few = pair.inputs and found.cases < _LEAST
    if found.status not in HOLDING or not found.cases or too_few or (pair.is_reduction and found.status == "departs"):
        return None
    return found


def _joined(one: SiteVerification, other: SiteVerification) -> SiteVerification:
    """The worse of two findings about one lemma, with the sets of values of both."""
    worse = one if one.status != "equal" else other
    return replace(
        worse,
        cases=one.cases + other.cases,
        values=one.values + other.values,
        is_proved=one.is_proved and other.is_proved,
        **{name: max(getattr(one, name), getattr(other, name)) for name in DISTANCES},
    )


class _Names:
    """Names of nodes by graph path and position."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._holders: dict[str, Any] = {"graph": model.graph}

    def of(self, graph: str, index: int) -> str:
        if graph not in self._holders:
            self._holders = dict(bodies(self._model))
        node = self._holders[graph].node[index]
        return node.name or f"{node.op_type}#{index}"
