"""Compares the results of two runs, output by output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from reducelower.numerics.measure import Array, element_type_of, is_float, measure
from reducelower.numerics.tolerance import Tolerance, tolerance_for
from reducelower.verification.findings import DISTANCES, OutputComparison
from reducelower.verification.running.conditions import conditions

__all__ = ["compare_outputs", "tells", "unlike", "worst_of"]


def _tensors(name: str, value: Any) -> Iterator[tuple[str, Array | None]]:
    """The tensors in an output: itself, items of a sequence, keys and values of a map; None for an absent one."""
    if value is None:
        yield name, None
    elif isinstance(value, Mapping):
        yield f"{name}.keys", np.array(list(value.keys()))
        yield f"{name}.values", np.array(list(value.values()), dtype=_map_type(value))
    elif isinstance(value, (list, tuple)):
        yield f"{name}.length", np.array(len(value))
        for at, item in enumerate(value):
            yield from _tensors(f"{name}[{at}]", item)
    else:
        yield name, np.asarray(value)


def _map_type(value: Mapping[Any, Any]) -> Any:
    """onnxruntime hands out map values as Python floats; ONNX-ML's maps hold 32-bit ones."""
    return np.float32 if any(isinstance(item, float) for item in value.values()) else None


def compare_outputs(
    names: Sequence[str],
    before: Sequence[Any],
    after: Sequence[Any],
    *,
    runtime: str,
    tolerances: Mapping[str, Tolerance] | None = None,
    widen: float = 1.0,
    by_tensor: bool = False,
) -> list[OutputComparison]:
    """One comparison per tensor that two runs on the same inputs returned.

    Args:
        tolerances: by element type, in place of the caller's.
        widen: factor on the default tolerances; above 1 when the sides ran in different runtimes.
        by_tensor: compare by the largest magnitude of each tensor, since two runtimes may compute differently.
    """
    found, own = [], dict(conditions().tolerances) if tolerances is None else tolerances
    for name, left, right in zip(names, before, after, strict=True):
        here, there = dict(_tensors(name, left)), dict(_tensors(name, right))
        for part in [*here, *(extra for extra in there if extra not in here)]:
            found.append(_compare(part, here.get(part), there.get(part), runtime, own, widen, by_tensor))
    return found


def worst_of(compared: Iterable[OutputComparison]) -> list[OutputComparison]:
    """The worst comparison of each output in each runtime, in the order of the first of each."""
    merged: dict[tuple[str, str], OutputComparison] = {}
    for item in compared:
        key = item.name, item.runtime
        merged[key] = merged[key].merged(item) if key in merged else item
    return list(merged.values())


def _compare(
    name: str,
    before: Array | None,
    after: Array | None,
    runtime: str,
    tolerances: Mapping[str, Tolerance],
    widen: float,
    by_tensor: bool,
) -> OutputComparison:
    if before is None or after is None:
        same = before is None and after is None
        reason = "" if same else f"is absent {'before' if before is None else 'after'} and present on the other side"
        return OutputComparison(name, runtime, "", (), (), "equal" if same else "different", reason)
    type_before = element_type_of(before)
    facts = (name, runtime, type_before, before.shape, after.shape)
    if reason := unlike(before, after):
        return OutputComparison(*facts, "different", reason)
    tolerance = tolerance_for(type_before, tolerances)
    if widen != 1.0 and type_before not in tolerances:
        tolerance = Tolerance(int(tolerance.ulp * widen), tolerance.relative * widen, tolerance.absolute)
    difference = measure(before, after, tolerance, by_tensor=by_tensor)
    return OutputComparison(
        *facts,
        "different" if difference.mismatch else "equal",
        difference.mismatch,
        **{name: getattr(difference, name) for name in DISTANCES},
        tells=tells(before),
        loses_range=difference.loses_range,
        gains_range=difference.gains_range,
        limit=str(tolerance),
    )


def unlike(before: Array, after: Array) -> str:
    """How two tensors differ in element type or shape, as a clause; empty if they do not."""
    types = element_type_of(before), element_type_of(after)
    if types[0] != types[1]:
        return f"element type {types[0]} before, {types[1]} after"
    return "" if before.shape == after.shape else f"shape {list(before.shape)} before, {list(after.shape)} after"


def tells(value: Any) -> bool:
    """Whether a value has anything to compare; a tensor does if it has elements that are not all NaN or infinite."""
    if not isinstance(value, np.ndarray):
        return True
    if not value.size:
        return False
    return not is_float(value) or bool(np.isfinite(value.astype(np.float64)).any())
