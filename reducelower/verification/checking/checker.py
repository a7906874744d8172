"""Checks distinct regions: builds their two small models, runs both sides, and remembers which regions held."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from onnx import ModelProto, TensorProto, helper

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.verification.checking.cache import Cache
from reducelower.verification.checking.tally import Tally, finding_of
from reducelower.verification.checking.two_sides import run_both
from reducelower.verification.feeding.limits import limits_of
from reducelower.verification.feeding.sets import Sets
from reducelower.verification.findings import HOLDING, SiteVerification
from reducelower.verification.inputs.declared import may_have
from reducelower.verification.regions.pairs import SMALL_CONSTANT, Pair, small_models
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.reference import float_types, no_evidence, wrong_in_reference

__all__ = ["Checker", "some"]

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Checker:
    """Checks regions, and remembers in a cache which held.

    Attributes:
        values: gives values of the main graph by name, from a run of the source.
        seen: the values that it gave so far; None for those it could not give.
        cache: what held before.
    """

    values: Callable[[Collection[str]], Mapping[str, Any]] = lambda names: {}
    seen: dict[str, Any] = field(default_factory=dict)
    cache: Cache = field(default_factory=Cache)

    def watch(self, names: Collection[str]) -> None:
        """Get values of the main graph from a run of the source."""
        new = set(names) - self.seen.keys()
        if new:
            self.seen.update(dict.fromkeys(new) | dict(self.values(new)))

    def _samples(self, pairs: Sequence[Pair]) -> list[dict[str, Array]]:
        """The inputs of some regions in that run, as far as they are known, by the names of the first one's."""
        names = pairs[0].input_names
        found: list[tuple[Pair, list[Any]]]
        found = [(pair, [self.seen.get(pair.real(name)) for name in pair.input_names]) for pair in some(pairs)]
        return [dict(zip(names, values, strict=True)) for pair, values in found if _is_sample(pair, values)]

    def check(self, pairs: Sequence[Pair]) -> SiteVerification:
        """The finding for regions that are the same up to names and sizes, at the sizes of each."""
        first = pairs[0]
        others = dict.fromkeys(pair.sizes for pair in pairs if pair.sizes != first.sizes)
        told = frozenset[int]().union(*(pair.told for pair in pairs))
        return self.settle(first, self._samples(pairs), others=list(others), fixed=told)

    def failing(self, pair: Pair) -> Mapping[str, Array] | None:
        """A set of values on which both sides differ."""
        case = self._tally(pair, self._sets(pair, self._samples([pair]))).failing
        return None if case is None else case.feeds

    def settle(self, pair: Pair, samples: Sequence[Mapping[str, Array]], **more: Any) -> SiteVerification:
        """The finding for a region on sets of values that begin with `samples`; `more` are arguments of `Sets`."""
        sets = self._sets(pair, samples, **more)
        return finding_of(pair, self._tally(pair, sets), sets.limits)

    def _sets(self, pair: Pair, samples: Sequence[Mapping[str, Array]], **more: Any) -> Sets:
        # Inputs of unknown type are fed floats.
        specs = [replace(item, element_type=item.element_type or TensorProto.FLOAT) for item in pair.inputs]
        return Sets(specs, limits_of(pair), samples, rests_on_names=pair.rests_on_names, **more)

    def _tally(self, pair: Pair, sets: Sets) -> Tally:
        conditions = None if sets.only_samples else self._conditions(pair, sets)
        found = None if conditions is None else self.cache.get(conditions)
        if found is None:
            models = small_models(pair)
            run = partial(run_both, pair, models, sets=sets)
            found = _tried(pair, sets, run, models)
            if conditions is not None and found.status in HOLDING:
                self.cache.put(conditions, found)
        return found

    def _conditions(self, pair: Pair, sets: Sets) -> object:
        """Everything that a check depends on, except names; None if it also depends on functions of the model."""
        if any(node.domain not in DEFAULT_DOMAINS for node in (*pair.nodes, *pair.replacement)):
            return None
        versions = pair.before.model.ir_version, pair.after.model.ir_version
        sizes = (pair.sizes, *sets.others)
        shapes = tuple(tuple(value.shape for value in sample.values()) for sample in sets.samples)
        rests = tuple(sorted(sets.fixed)), sets.rests_on_names
        return conditions(), pair.key, sizes, shapes, rests, pair.is_raised, versions


def some(items: Sequence[_Item]) -> Sequence[_Item]:
    """The first two and the last."""
    return [*items[:2], *items[2:][-1:]]


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor of a type that numpy itself has."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufOSU"


def _is_sample(pair: Pair, values: Sequence[Any]) -> bool:
    """Whether these are tensors with the types and sizes of the region's inputs."""
    return all(
        _is_plain(value)
        and (value.dtype.kind in "OSU" or helper.np_dtype_to_tensor_dtype(value.dtype) == item.element_type)
        and may_have(item.dims, value.shape)
        for item, value in zip(pair.inputs, values, strict=True)
    )


_Runner = Callable[[tuple[str, str]], Tally]
"""Runs the two sides of a region, each in a runtime."""

# Where both sides run, best first. The reference evaluator takes element types that onnxruntime does not.
_NATIVE, _REFERENCE = "onnxruntime", "reference"
_WORST = ("different", "loses range")


def _tried(pair: Pair, sets: Sets, run: _Runner, models: tuple[ModelProto, ModelProto]) -> Tally:
    """What came of both sides in the first runtime that takes them; not run if that says nothing."""
    found = Tally()
    for name in (_NATIVE, _REFERENCE):
        refused = found.refused
        found = run((name, name))
        found.refused = refused + found.refused
        if found.cases or found.status == "different":
            break
    if len(pair.replacement) > 1 or len(pair.nodes) > 1:
        found = _by_node(run, models, found)
    doubt = no_evidence([(found.runtime, side) for side in models]) if found.status in _WORST else ""
    if doubt or (not found.cases and found.status != "different"):
        doubt = doubt or next(iter(found.refused), "there was nothing to run it on")
    elif found.status == "equal" and not found.values and not _gives_nothing(pair):
        doubt = "it ran on inputs of which nothing is left"
    elif found.status == "equal" and (table := _unread(pair, sets)):
        doubt = f"the table {table!r} has other values, and it was not seen that none of these is taken"
    return Tally("not run", doubt, runtime=found.runtime) if doubt else found


def _gives_nothing(pair: Pair) -> bool:
    """Whether all outputs are known to be empty, so that there is nothing to compare."""
    return all(0 in (pair.before.type_of(name)[1] or ()) for name in pair.outputs)


def _unread(pair: Pair, sets: Sets) -> str:
    """A large table that has other values on the other side, beyond rounding; empty if none."""
    return next((table for table in sets.limits.changed if pair.constants[0][table].size > SMALL_CONSTANT), "")


def _by_node(run: _Runner, models: tuple[ModelProto, ModelProto], found: Tally) -> Tally:
    """Run float16 in the evaluator too, which rounds each result, and return that if it differs.

    onnxruntime has few kernels for float16 on the CPU. It runs chains of other operators in float, and removes casts to
    float16 and back. A single operator of float16 may be far off in the evaluator as well, so it counts only if both
    sides differ there too. If both have float16, only the replacement runs there.
    """
    if not found.cases or found.status in _WORST:
        return found
    before, after = (TensorProto.FLOAT16 in float_types(model) for model in models)
    if not (before or after) or any(map(wrong_in_reference, models)):
        return found
    strict = run((_NATIVE, _REFERENCE) if after else (_REFERENCE, _NATIVE))
    is_wrong = strict.status in _WORST and run((_REFERENCE, _REFERENCE)).status in _WORST
    return strict if is_wrong else found
