"""Whether two whole models differ so clearly that neither a runtime nor rounding can be why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reducelower.numerics.measure import is_float
from reducelower.verification.inputs.made import beyond_making, bindings, input_specs, make_feeds
from reducelower.verification.judging.conditioning import disturbed
from reducelower.verification.judging.runs import Clock, Request
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import CannotRunError, Source, has_external_data

__all__ = ["clearly_differ"]

_FAR = 0.1  # of the larger of two results, by the root of the sum of their squares
_NEAR = 1e-3


def clearly_differ(before: Source, after: Source, request: Request, clock: Clock) -> bool:
    """Whether an output is far off on ordinary values, and nothing but the models can be the reason.

    Both runtimes agree on each model, so that neither diverges from the specification, and changes in the last places
    of the inputs change nothing to speak of. Models with large weights are not asked: the reference evaluator takes
    long for them.
    """
    if any(source.weights or has_external_data(source.proto) for source in (before, after)):
        return False
    try:
        return _differ(before, after, request, clock)
    except CannotRunError:
        return False


def _differ(before: Source, after: Source, request: Request, clock: Clock) -> bool:
    feeds = _ordinary(before, request)
    accepted = {value.name for value in after.proto.graph.input}
    given = {name: value for name, value in feeds.items() if name in accepted}
    run = runtime_named("onnxruntime").load(before)
    left = run.run(feeds, clock.left)
    right = _run(after, "onnxruntime", given, clock)
    if not any(_is_far(one, other) for one, other in zip(left, right, strict=True)):
        return False
    for moved in disturbed(feeds, [request.seed]):
        clock.check()
        if not _are_near(left, run.run(moved, clock.left)):
            return False
    return _are_near(left, _run(before, "reference", feeds, clock)) and _are_near(
        right, _run(after, "reference", given, clock)
    )


def _run(source: Source, runtime: str, feeds: Mapping[str, Any], clock: Clock) -> list[Any]:
    clock.check()
    return runtime_named(runtime).load(source).run(feeds, clock.left)


def _ordinary(source: Source, request: Request) -> dict[str, Any]:
    """One set of inputs as given, and as made where they are not."""
    specs, skipped = input_specs(source.proto)
    open_specs = [spec for spec in specs if spec.name not in request.given]
    if skipped.keys() - request.given.keys() or beyond_making(open_specs, request.dims):
        raise CannotRunError("no values are made for its inputs")
    made: dict[str, Any] = {}
    if open_specs:
        sizes = next(bindings(open_specs, request.dims))
        made = make_feeds(open_specs, sizes, "random", np.random.default_rng([request.seed, 0]))
    return {**request.given, **made}


def _is_far(one: Any, other: Any) -> bool:
    distance = _distance(one, other)
    return distance is not None and distance > _FAR


def _are_near(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    distances = [_distance(one, other) for one, other in zip(ones, others, strict=True)]
    return all(distance is not None and distance < _NEAR for distance in distances)


def _distance(one: Any, other: Any) -> float | None:
    """How far apart two results are, as a share of the larger one; None where these are not alike and all finite."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and is_float(one)):
        return None
    if one.dtype != other.dtype or one.shape != other.shape:
        return None
    wide, far = one.astype(np.float64), other.astype(np.float64)
    size = max(float(np.linalg.norm(wide)), float(np.linalg.norm(far)))
    with np.errstate(all="ignore"):
        distance = float(np.linalg.norm(wide - far)) / size if size else 0.0
    return distance if np.isfinite(distance) else None
