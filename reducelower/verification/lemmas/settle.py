"""Settles the lemmas behind a conversion, each once, and tells which of the rewritten nodes need no other look."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from reducelower.model.graph import bodies
from reducelower.numerics.measure import Array
from reducelower.verification.checking.remembered import Checker
from reducelower.verification.checking.tally import describe
from reducelower.verification.lemmas.lemma import Lemma, named_sizes, sizes_told, told
from reducelower.verification.lemmas.substitution import is_same
from reducelower.verification.regions.pairs import Pair, small_models
from reducelower.verification.regions.places import Dims
from reducelower.verification.result import SiteVerification
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["Settled", "settle", "wanted"]

_SAMPLES = 3  # places of a lemma that are looked at
_LEAST = 3  # sets of values, unless nothing is fed
_GOOD = frozenset({"equal", "improved", "overflow", "departs"})


@dataclass(frozen=True)
class Settled:
    """What came of lemmas.

    Attributes:
        findings: one for each that was settled.
        places: graph path and position of the nodes that these are about.
    """

    findings: tuple[SiteVerification, ...]
    places: frozenset[tuple[str, int]]


def wanted(lemmas: Sequence[Lemma]) -> set[str]:
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
    values: Mapping[str, Any],
    source: ModelProto,
    checker: Checker,
    on_progress: Callable[[int, int], None] | None,
) -> Settled:
    """Settle each lemma by structure, or by values for operands like those in the model; others are left.

    Args:
        lemmas: the lemmas.
        values: what the operands are in a run of the model, by name.
        source: the model.
        checker: settles each of them.
        on_progress: called with (done, total) lemmas.
    """
    names = _Names(source)
    findings: list[SiteVerification] = []
    places: set[tuple[str, int]] = set()
    for done, lemma in enumerate(lemmas):
        found = None
        if not checker.clock.over:
            try:
                found = _settled(lemma, values, names, checker)
            except OutOfTimeError:
                found = None
        if found is not None:
            nodes = tuple((place.graph, names.of(place.graph, place.index)) for place in lemma.places)
            findings.append(replace(found, nodes=nodes))
            places |= {(place.graph, place.index) for place in lemma.places}
        if on_progress is not None:
            on_progress(done + 1, len(lemmas))
    return Settled(tuple(findings), frozenset(places))


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
    known, never_zero = named_sizes(lemma.entry)
    by_name = {names[name]: each for name, each in known.items() if name in lemma.operands}
    named = [{names[name]: value for name, value in sample.items()} for sample in samples]
    found = checker.settle(pair, named, fixed=fixed, known=by_name, never_zero=never_zero)
    too_few = pair.inputs and found.cases < _LEAST
    if found.status not in _GOOD or not found.cases or too_few or (pair.is_reduction and found.status == "departs"):
        return None
    return found


def _joined(one: SiteVerification, other: SiteVerification) -> SiteVerification:
    """The worse of two findings about one lemma, with the sets of values of both."""
    worse = one if one.status != "equal" else other
    return replace(
        worse,
        cases=one.cases + other.cases,
        values=one.values + other.values,
        max_ulp=max(one.max_ulp, other.max_ulp),
        max_absolute=max(one.max_absolute, other.max_absolute),
        is_proved=one.is_proved and other.is_proved,
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
