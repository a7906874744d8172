"""Checks distinct regions, each once: one that held is not checked again under the same conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.checking.cache import Cache
from reducelower.verification.checking.check import check
from reducelower.verification.checking.tally import Tally, finding_of
from reducelower.verification.feeding.limits import limits_of
from reducelower.verification.feeding.sets import Sets
from reducelower.verification.findings import HOLDING, SiteVerification
from reducelower.verification.inputs.made import may_have
from reducelower.verification.regions.keys import keyed
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.regions.places import Dims
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.conditions import conditions

__all__ = ["Checker"]


@dataclass(frozen=True)
class Checker:
    """Checks regions with one seed, and with tolerances by element type for operators other than Reduce.

    What held is kept in a cache. Once the clock is over, a check ends in an OutOfTimeError.
    """

    seed: int = 0
    tolerances: Mapping[str, Tolerance] | None = None
    clock: Clock = field(default_factory=lambda: Clock(None))
    values: Callable[[Collection[str]], Mapping[str, Any]] = lambda names: {}
    seen: dict[str, Any] = field(default_factory=dict)
    cache: Cache = field(default_factory=Cache)

    def watch(self, names: Collection[str]) -> None:
        """Take values of the main graph from a run of the source."""
        new = set(names) - self.seen.keys()
        if new:
            self.seen.update(dict.fromkeys(new) | dict(self.values(new)))

    def _samples(self, pair: Pair) -> list[dict[str, Array]]:
        """What a region was given there, if all of it is known."""
        found: dict[str, Any] = {item.name: self.seen.get(item.name) for item in pair.inputs}
        return [found] if _is_sample(pair, found) else []

    def check(self, pair: Pair, others: Sequence[Pair] = ()) -> SiteVerification:
        """What a region gives by itself, with ordinary values at the sizes of `others` that are alike but for these."""
        sizes = [_sizes(each) for each in others if _sizes(each) != _sizes(pair)]
        return self.settle(pair, self._samples(pair), others=sizes)

    def failing(self, pair: Pair) -> Mapping[str, Array] | None:
        """A set of values on which both sides differ."""
        case = self._tally(pair, self._sets(pair, self._samples(pair))).failing
        return None if case is None else case.feeds

    def settle(self, pair: Pair, samples: Sequence[Mapping[str, Array]], **more: Any) -> SiteVerification:
        """What both sides give on sets of values that begin with samples; `more` is what else `Sets` takes."""
        sets = self._sets(pair, samples, **more)
        return finding_of(pair, self._tally(pair, sets), sets.limits)

    def _sets(self, pair: Pair, samples: Sequence[Mapping[str, Array]], **more: Any) -> Sets:
        # What is of no known type is taken for floats.
        specs = [replace(item, element_type=item.element_type or TensorProto.FLOAT) for item in pair.inputs]
        return Sets(specs, limits_of(pair), self.seed, samples, **more)

    def _tally(self, pair: Pair, sets: Sets) -> Tally:
        conditions = None if sets.alone else self._conditions(pair, sets)
        found = None if conditions is None else self.cache.get(conditions)
        if found is None:
            self.clock.check()
            found = check(pair, self.tolerances, sets, self.clock)
            if conditions is not None and found.status in HOLDING:
                self.cache.put(conditions, found)
        return found

    def _conditions(self, pair: Pair, sets: Sets) -> object:
        """Everything that a check depends on except names; None where it goes by functions of its model too."""
        in_function = pair.before.function is not None or pair.after.function is not None
        if in_function or any(node.domain not in DEFAULT_DOMAINS for node in (*pair.nodes, *pair.replacement)):
            return None
        versions = pair.before.model.ir_version, pair.after.model.ir_version
        sizes = tuple(tuple(each) for each in (_sizes(pair), *sets.others))
        shapes = tuple(tuple(value.shape for value in sample.values()) for sample in sets.samples)
        rests = tuple(sorted(sets.fixed)), sets.rests_on_names
        tolerances = tuple(sorted((self.tolerances or {}).items()))
        key = pair.key or keyed(pair).key
        return conditions(), key, sizes, shapes, rests, pair.is_raised, versions, self.seed, tolerances


def _is_sample(pair: Pair, values: Mapping[str, Any]) -> bool:
    """Whether these are tensors of the types and sizes that the inputs of a region have."""
    return all(
        isinstance(value := values[item.name], np.ndarray)
        and value.dtype.kind in "biufOSU"
        and (value.dtype.kind in "OSU" or helper.np_dtype_to_tensor_dtype(value.dtype) == item.element_type)
        and may_have(item.dims, value.shape)
        for item in pair.inputs
    )


def _sizes(pair: Pair) -> list[Dims | None]:
    return [item.dims for item in pair.inputs]
