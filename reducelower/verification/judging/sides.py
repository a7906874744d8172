"""Both sides of a region, with what else computes them: in double, as function bodies, in the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from reducelower.model.graph import walk
from reducelower.numerics.measure import Array, identical, is_float, smallest_and_eps
from reducelower.verification.operators import BY_PROBABILITY, RANDOM
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.conditions import CPU, conditions
from reducelower.verification.running.reference import wrong_in_reference
from reducelower.verification.running.runtimes import (
    OnnxRuntime,
    ReferenceRuntime,
    Session,
    runtime_named,
    try_load,
    try_run,
)
from reducelower.verification.running.source import Source
from reducelower.verification.running.wider import in_double, modern, with_bodies

__all__ = ["REDRAWN", "Sides"]

_DRAWS = 4  # one draw may leave an element in place by chance
_STEPS = np.array([-2.0, -1.0, 1.0, 2.0])  # ULP
REDRAWN = 32  # runs until random numbers give another result: with one element, most draws give the same


@dataclass
class Sides:
    """Both sides of a region, loaded, and other sessions of them, which are loaded when they are first asked.

    Attributes:
        pair: the region.
        models: its two sides.
        runtimes: the names of the runtimes in which they are loaded.
        sessions: both loaded.
    """

    pair: Pair
    models: tuple[ModelProto, ModelProto]
    runtimes: tuple[str, str]
    sessions: tuple[Session, Session]
    _others: dict[tuple[str, bool], Session | None] = field(default_factory=dict)

    def given(self, way: str, feeds: Mapping[str, Any], at: int, *, of_result: bool = False) -> Array | None:
        """One output of a side in another way, which is a key of `_WAYS`; None if that is no evidence or fails."""
        key = way, of_result
        if key not in self._others:
            self._others[key] = _WAYS[way](self.models[of_result], self.runtimes)
        results = try_run(self._others[key], feeds)
        return results[at] if results and isinstance(results[at], np.ndarray) else None

    def moved(self, feeds: Mapping[str, Any], at: int, *, of_result: bool = False) -> Iterator[Any]:
        """What a side gives when every float in its inputs moves by one or two last places.

        If no input has floats, those that the side holds move, such as the scales of quantizers.
        """
        has_floats = any(isinstance(value, np.ndarray) and is_float(value) and value.size for value in feeds.values())
        for draw in range(_DRAWS):
            rng = np.random.default_rng([conditions().seed, draw, 1])
            session = self.sessions[of_result] if has_floats else self._holding_moved(draw, of_result)
            results = try_run(session, {name: _moved(value, rng) for name, value in feeds.items()})
            yield from (results or ())[at : at + 1]

    def _holding_moved(self, draw: int, of_result: bool) -> Session | None:
        """A side in which the floats that it holds are moved; None if it holds none."""
        key = f"moved, {draw}", of_result
        if key not in self._others:
            model = _with_moved_floats(self.models[of_result], np.random.default_rng([conditions().seed, draw, 1]))
            runtime = runtime_named(self.runtimes[of_result])
            self._others[key] = None if model is None else try_load(runtime, Source(model))
        return self._others[key]

    def are_random(self, feeds: Mapping[str, Any], at: int, result: Array) -> bool:
        """Whether the source draws random numbers, so that it gives different results for the same inputs.

        Operators that draw by probability may give the same each time on inputs that are no probabilities, so they
        always count as random.
        """
        kinds = {node.op_type for node in walk(self.pair.nodes)}
        if kinds.isdisjoint(RANDOM):
            return False
        again = (self.sessions[0].run(feeds)[at] for _ in range(REDRAWN))
        return not kinds.isdisjoint(BY_PROBABILITY) or not all(identical(value, result) for value in again)


def _with_moved_floats(model: ModelProto, rng: np.random.Generator) -> ModelProto | None:
    """A copy in which the floats that it holds move by one or two last places; None if it holds none."""
    copy, has_floats = deepcopy(model), False
    for tensor in copy.graph.initializer:
        value = numpy_helper.to_array(tensor)
        if is_float(value):
            tensor.CopyFrom(numpy_helper.from_array(_moved(value, rng), tensor.name))
            has_floats = True
    return copy if has_floats else None


def _moved(value: Any, rng: np.random.Generator) -> Any:
    if not (isinstance(value, np.ndarray) and is_float(value)):
        return value
    _, eps, _ = smallest_and_eps(value.dtype)
    wide = value.astype(np.float64 if value.dtype.itemsize < 8 else np.longdouble)
    with np.errstate(all="ignore"):
        return (wide * (1 + eps * rng.choice(_STEPS, value.shape))).astype(value.dtype)


def _in_double(model: ModelProto, runtimes: Sequence[str]) -> Session | None:
    wide = in_double(model) if runtimes[0] == runtimes[1] else None
    return None if wide is None else try_load(ReferenceRuntime(), Source(wide))


def _as_bodies(model: ModelProto, runtimes: Sequence[str]) -> Session | None:
    """A model as function bodies of the specification, in the runtime of the result."""
    body = with_bodies(modern(model))
    if body is None:
        return None
    runtime = OnnxRuntime(CPU) if runtimes[1] == OnnxRuntime.name else ReferenceRuntime()
    return try_load(runtime, Source(body)) or try_load(ReferenceRuntime(), Source(body))


def _in_reference(model: ModelProto, runtimes: Sequence[str]) -> Session | None:
    """A model in the reference evaluator, as a witness of what both gave in onnxruntime."""
    is_evidence = set(runtimes) == {OnnxRuntime.name} and not wrong_in_reference(model)
    return try_load(ReferenceRuntime(), Source(model)) if is_evidence else None


_WAYS: Mapping[str, Callable[[ModelProto, Sequence[str]], Session | None]] = {
    "in double": _in_double,
    "as bodies": _as_bodies,
    "in the reference": _in_reference,
}
