"""Checks one distinct rewrite: builds its two small models, runs the battery, gathers the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from onnx import ModelProto, TensorProto

from reducelower.numerics.measure import identical
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.checking.seen import Setup
from reducelower.verification.checking.tally import Tally
from reducelower.verification.checking.two_sides import run_both
from reducelower.verification.feeding.sets import Sets
from reducelower.verification.feeding.shapes import gives_nothing
from reducelower.verification.regions.pairs import SMALL_CONSTANT, Pair, compared_models, small_models
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.reference_gaps import float_types, no_evidence, wrong_in_reference

__all__ = ["check"]


def check(pair: Pair, tolerances: Mapping[str, Tolerance] | None, sets: Sets, clock: Clock | None = None) -> Tally:
    """Verify one rewrite or region by itself; an OutOfTimeError where the clock is over before that is done.

    Args:
        pair: both sides.
        tolerances: by ONNX element type, for operators other than Reduce.
        sets: what both are run on.
        clock: how long that may take.
    """
    setup = Setup(pair, tolerances, sets, clock or Clock(None))
    tally = _check(setup)
    if not tally.cases and tally.status != "different":
        reason = tally.refused[0] if tally.refused else "there was nothing to run it on"
        return Tally("not run", reason, runtime=tally.runtime)
    if tally.status == "equal" and not tally.values and not _gives_nothing(pair):
        return Tally("not run", "it ran on inputs of which nothing is left", runtime=tally.runtime)
    if tally.status == "equal" and (table := _unread(pair, sets)):
        reason = f"the table {table!r} has other values, of which it was not seen that all were taken"
        return replace(tally, status="not run", reason=reason)
    return tally


def _unread(pair: Pair, sets: Sets) -> str:
    """A large table that the other side holds with other values, and of which not every row was read."""
    left, right = pair.constants
    for name, role in sets.limits.roles.items():
        table = left.get(role.data)
        if table is None or table.size <= SMALL_CONSTANT or role.kind not in _READING or name in sets.reached:
            continue
        alike = [other for other in right.values() if (other.shape, other.dtype) == (table.shape, table.dtype)]
        if alike and not any(identical(table, other) for other in alike):
            return role.data
    return ""


def _gives_nothing(pair: Pair) -> bool:
    """Whether both sides give no elements at the sizes that are declared, so that there is nothing to compare.

    Where all sizes are declared, what inference finds of one side the runs show of the other.
    """
    are_known = all(
        isinstance(dim, int) for item in pair.inputs for dim in (item.dims or (None,) * (item.dims is None))
    )
    enough = any if are_known else all
    return all(enough(gives_nothing(side, pair.inputs) for side in sides) for sides in small_models(pair))


# Where both sides run, best first; the reference evaluator takes element types that onnxruntime takes no arrays of.
_NATIVE, _REFERENCE = "onnxruntime", "reference"
_READING = frozenset({"class", "index", "index of elements", "places"})
_WORST = ("different", "loses range")


def _check(setup: Setup) -> Tally:
    tally, pair = Tally(), setup.pair
    for before, after in compared_models(pair):
        if not after.graph.output:
            tally.note("different", f"the replacement computes none of {list(pair.outputs)}")
            continue
        found = Tally()
        for name in (_NATIVE, _REFERENCE):
            refused = found.refused
            found = run_both(setup, before, after, (name, name))
            found.refused = refused + found.refused
            if found.cases or found.status == "different":
                break
        found = _by_node(setup, before, after, found)
        doubt = no_evidence([(found.runtime, side) for side in (before, after)])
        if doubt and found.status in _WORST:
            found = Tally(runtime=found.runtime, refused=[doubt])
        tally.add(found)
    return tally


def _by_node(setup: Setup, before: ModelProto, after: ModelProto, found: Tally) -> Tally:
    """Where onnxruntime may hold more than float16 between nodes, run the replacement where each result is rounded.

    On the CPU it has few kernels for float16: it runs chains of the others in float, without casts back in between, and
    takes out casts to and fro. What the evaluator makes of a single operator in float16 may be far off as well, so both
    sides are to differ there, too.
    """
    if not found.cases or found.status in _WORST or len(setup.pair.replacement) < 2:
        return found
    if TensorProto.FLOAT16 not in float_types(after) or any(map(wrong_in_reference, (before, after))):
        return found
    strict = run_both(setup, before, after, (_NATIVE, _REFERENCE))
    if strict.status in _WORST and run_both(setup, before, after, (_REFERENCE, _REFERENCE)).status in _WORST:
        return strict
    return found
