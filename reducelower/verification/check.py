"""Checks one distinct rewrite: builds its two small models, runs the battery, gathers the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from reducelower.model.graph import walk
from reducelower.numerics.measure import identical
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.battery import Case
from reducelower.verification.bounded import moved
from reducelower.verification.doubts import no_evidence, wrong_in_reference
from reducelower.verification.feeding import is_large, reads_every_row
from reducelower.verification.limits import limits_of
from reducelower.verification.oracle import Reduction
from reducelower.verification.pairs import SMALL_CONSTANT, Pair, small_models
from reducelower.verification.places import Dims
from reducelower.verification.result import SiteVerification
from reducelower.verification.runtimes import Session, runtime_named
from reducelower.verification.seen import Seen, Setup, judge_case
from reducelower.verification.shapes import gives_nothing, is_ruled_out, leaves_nothing
from reducelower.verification.source import CannotRunError, Source
from reducelower.verification.steps import beside_steps
from reducelower.verification.tally import Tally, finding_of
from reducelower.verification.trials import Definition, cases, input_specs_of, reduction_of
from reducelower.verification.unsteady import Unsteady
from reducelower.verification.wider import float_types
from reducelower.verification.witness import Witness

__all__ = ["check"]

_TAKING = frozenset({"ArrayFeatureExtractor", "Gather", "GatherElements", "GatherND"})


def check(
    pair: Pair,
    seed: int,
    tolerances: Mapping[str, Tolerance] | None,
    *,
    declared: bool = False,
    others: Sequence[Pair] = (),
) -> SiteVerification:
    """Verify one rewrite by itself.

    Args:
        pair: the rewrite.
        seed: for the random values.
        tolerances: by ONNX element type, for operators other than Reduce.
        declared: only with the sizes that the model declares, which a replacement may rest on (a count, a shape).
        others: rewrites that are alike but for their sizes, on which this one is run as well, with ordinary values.
    """
    sizes = [dims for dims in map(_sizes, others) if dims != _sizes(pair)]
    tally = _check(pair, seed, tolerances, static=declared, others=sizes)
    if tally.status == "different" and not pair.is_reduction and is_large(input_specs_of(pair)):
        tally = _check(pair, seed, tolerances, static=True, others=sizes)  # the replacement may rest on the sizes
    if not tally.cases and tally.status != "different":
        reason = tally.refused[0] if tally.refused else "there was nothing to run it on"
        return finding_of(pair, Tally("not run", reason, runtime=tally.runtime))
    if tally.status == "equal" and not tally.values and not _gives_nothing(pair):
        return finding_of(pair, Tally("not run", "it ran on inputs of which nothing is left", runtime=tally.runtime))
    if tally.status == "equal" and (table := _other_table(pair)):
        reason = f"the table {table!r} has other values, of which it was not seen that all were taken"
        return finding_of(pair, replace(tally, status="not run", reason=reason))
    if declared:
        tally.notes.setdefault("The replacement rests on the declared sizes, and was run with these only.")
    return finding_of(pair, tally)


def _gives_nothing(pair: Pair) -> bool:
    """Whether both sides give no elements at the sizes that are declared, so that there is nothing to compare.

    Where all sizes are declared, what inference finds of one side the runs show of the other.
    """
    are_known = all(
        isinstance(dim, int) for item in pair.inputs for dim in (item.dims or (None,) * (item.dims is None))
    )
    enough = any if are_known else all
    return all(enough(gives_nothing(side, pair.inputs) for side in sides) for sides in small_models(pair))


def _other_table(pair: Pair) -> str:
    """A large constant whose rows are taken by computed indices, and which the other side holds with other values."""
    limits = limits_of(pair)
    seen = moved(pair.nodes, [spec.name for spec in input_specs_of(pair) if reads_every_row(spec, limits)])
    left, right = pair.constants
    for node in walk(pair.nodes):
        table = left.get(node.input[0]) if node.op_type in _TAKING else None
        if table is None or table.size <= SMALL_CONSTANT or node.input[1] in seen:
            continue
        alike = [other for other in right.values() if (other.shape, other.dtype) == (table.shape, table.dtype)]
        if alike and not any(identical(table, other) for other in alike):
            return node.input[0]
    return ""


def _sizes(pair: Pair) -> list[Dims | None]:
    return [item.dims for item in pair.inputs]


# Where the two sides run, best first: each where it can; both in the reference evaluator, which takes element types
# that onnxruntime takes no arrays of; at last the value that the operator's page gives, for a source that nothing runs.
_EITHER = ("onnxruntime", "reference")
_ATTEMPTS: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
    (_EITHER, _EITHER),
    (("reference",), ("reference",)),
    ((Definition.name,), _EITHER),
    ((Definition.name,), ("reference",)),
)


def _check(
    pair: Pair,
    seed: int,
    tolerances: Mapping[str, Tolerance] | None,
    *,
    static: bool,
    others: Sequence[Sequence[Dims | None]] = (),
) -> Tally:
    tally = Tally()
    setup = Setup(pair, seed, tolerances, static, limits_of(pair), others)
    for before, after in small_models(pair):
        if pair.is_raised:
            before, after = after, before
        if not after.graph.output:
            tally.note("different", f"the replacement computes none of {list(pair.outputs)}")
            continue
        # An unused output may go; what is compared is what both sides have.
        kept = [value.name for value in after.graph.output]
        for value in [value for value in before.graph.output if value.name not in kept]:
            before.graph.output.remove(value)
        found = Tally()
        for runtimes in _ATTEMPTS[: len(_ATTEMPTS) if pair.is_reduction and not pair.is_raised else 2]:
            refused = found.refused
            found = _run(setup, before, after, runtimes)
            found.refused = refused + found.refused
            if found.cases or found.status == "different":
                break
        apart = found.runtime in ("onnxruntime / reference", "reference / onnxruntime")
        if apart and found.status in ("different", "loses range"):
            found = _again_in_reference(setup, before, after, found)
        found = _by_node(setup, before, after, found)
        names = found.runtime.split(" / ")
        doubt = no_evidence([(names[0], before), (names[-1], after)])
        if doubt and found.status in ("different", "loses range"):
            found = Tally(runtime=found.runtime, refused=[doubt])
        tally.add(found)
    return tally


def _by_node(setup: Setup, before: ModelProto, after: ModelProto, found: Tally) -> Tally:
    """Where onnxruntime may hold more than float16 between nodes, run the replacement where each result is rounded."""
    if not found.cases or found.status in _WORST:
        return found
    if _hides_overflow(setup.pair) or _narrows(before, after):
        strict = _run(setup, before, after, (_EITHER, ("reference",)))
        return strict if strict.status == "different" else found
    if _chains_halves(setup.pair, after) and not wrong_in_reference(before) and not wrong_in_reference(after):
        # What the evaluator makes of a single operator in float16 may be far off as well.
        strict = _run(setup, before, after, (_EITHER, ("reference",)))
        if strict.status in _WORST and _run(setup, before, after, (("reference",), ("reference",))).status in _WORST:
            return strict
    return found


_WORST = ("different", "loses range")


def _chains_halves(pair: Pair, after: ModelProto) -> bool:
    """Whether the replacement takes more nodes than the source, and has float16 between them."""
    return len(pair.replacement) > len(pair.nodes) and TensorProto.FLOAT16 in float_types(after)


def _hides_overflow(pair: Pair) -> bool:
    """Whether onnxruntime may hold more than the element type between nodes, where other runtimes overflow.

    On the CPU it has few float16 kernels: it runs chains of the others in float, without a cast back in between.
    """
    data = next((item for item in pair.inputs if item.name == pair.node.input[0]), None)
    narrow = data is not None and data.element_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    return pair.is_reduction and narrow and len(pair.replacement) > 1


def _narrows(before: ModelProto, after: ModelProto) -> bool:
    """Whether the replacement computes in float16 what the source does not; onnxruntime takes out casts to and fro."""
    held, narrow = float_types(before), float_types(after)
    return TensorProto.FLOAT16 in narrow - held or bool(TensorProto.FLOAT16 in narrow and held - narrow)


def _again_in_reference(setup: Setup, before: ModelProto, after: ModelProto, found: Tally) -> Tally:
    """Where the sides ran apart, ask the reference evaluator for both, unless it runs a newer operator for an old."""
    if wrong_in_reference(before) or wrong_in_reference(after):
        return found
    again = _run(setup, before, after, (("reference",), ("reference",)))
    if again.status in ("different", "loses range") or not again.cases:
        return found
    again.notes.setdefault("onnxruntime and the reference evaluator do not agree; the check is within the latter.")
    return again


def _load(model: ModelProto, runtimes: Sequence[str], home: str = "") -> tuple[str, Session]:
    """Load in the first runtime that takes a model; `home` is where the source ran, of a replacement."""
    reasons: list[CannotRunError] = []
    for name in runtimes:
        try:
            return name, runtime_named(name).load(Source(model))
        except CannotRunError as error:
            if name == home and not error.unsupported:
                raise  # a runtime that runs the source and finds the replacement wrong is right, and no other is asked
            reasons.append(error)
    raise CannotRunError(reasons[-1].reason, unsupported=True)


def _run(setup: Setup, before: ModelProto, after: ModelProto, runtimes: tuple[Sequence[str], Sequence[str]]) -> Tally:
    """Run the battery on both sides and judge every case."""
    tally = Tally()
    pair = setup.pair
    reduction = reduction_of(pair, after if pair.is_raised else before) if pair.is_reduction else None
    try:
        left: Session
        if runtimes[0] == (Definition.name,) and reduction is not None:
            left_name, left = Definition.name, Definition(pair, reduction)
        else:
            left_name, left = _load(before, runtimes[0])
    except CannotRunError as error:
        tally.refused.append(error.reason)
        return tally
    try:
        right_name, right = _load(after, runtimes[1], left_name)
    except CannotRunError as error:
        tally.runtime = left_name
        if error.unsupported:
            tally.refused.append(error.reason)
        else:
            tally.note("different", f"the replacement does not load: {error.reason}")
        return tally
    tally.runtime = left_name if left_name == right_name else f"{left_name} / {right_name}"
    witness = Witness(before, after, left_name, right_name)
    unsteady = Unsteady(before, left_name)

    def accepts(feeds: Mapping[str, Any]) -> bool:
        if is_ruled_out(before, feeds):
            tally.refused.append("inputs of these shapes are none that its operators take")
            return False
        if setup.limits.least > 1 and any(leaves_nothing(side, feeds) for side in (before, after)):
            tally.refused.append("a window has nothing to look at on data so small")
            return False
        try:
            ranks = [getattr(value, "ndim", None) for value in left.run(feeds)]
        except CannotRunError as error:
            tally.refused.append(error.reason)
            return False
        if any(None not in both and both[0] != both[1] for both in zip(pair.ranks, ranks, strict=False)):
            tally.refused.append("of inputs of these ranks, it gives other ranks than the model states")
            return False
        if left_name == right_name == "reference":  # which takes sizes that do not fit each other, and broadcasts
            try:
                right.run(feeds)
            except CannotRunError as error:
                tally.refused.append(error.reason)
                return False
        return True

    limits = replace(setup.limits, are_apart=left_name != right_name)

    def suits(feeds: Mapping[str, Any]) -> bool:
        try:
            return accepts(feeds) and bool(right.run(feeds))
        except CannotRunError:
            return False

    smaller = None if setup.static else suits
    fed = cases(pair, limits, reduction, setup.seed, setup.static, accepts, smaller, setup.others)
    for case, settled in _with_steps(fed, left) if limits.has_steps and reduction is None else fed:
        try:
            expected = left.run(case.feeds)
        except CannotRunError as error:
            tally.refused.append(error.reason)
            continue
        try:
            results = right.run(case.feeds)
        except CannotRunError as error:
            if error.unsupported or left_name != right_name:  # another runtime may be stricter about what it is fed
                tally.refused.append(error.reason)
                continue
            if not limits.takes_any and any(np.size(value) == 0 for value in case.feeds.values()):
                tally.notes.setdefault(f"Of values without elements, the replacement fails: {error.reason}.")
                continue
            if witness.refuses(case.feeds):
                tally.refused.append(f"onnx.reference does not take the inputs, of which {error.reason}")
                continue
            tally.cases += 1
            if witness.runs(case.feeds, expected):
                departure = f"the runtime fails on the replacement, which onnx.reference runs: {error.reason}"
                tally.note("departs", departure, case)
            else:
                tally.note("different", f"the replacement fails where the source runs: {error.reason}", case)
            continue
        tally.cases += 1
        tally.see(expected)
        seen = Seen(case, settled, left, expected, results, witness, unsteady, left_name != right_name)
        judge_case(tally, setup, seen)
        if tally.status == "different":
            break  # no other case makes it worse
    return tally


def _with_steps(
    fed: Iterable[tuple[Case, Reduction | None]], source: Session
) -> Iterator[tuple[Case, Reduction | None]]:
    """The same cases, and values beside the steps that are found between them."""
    seen = []
    for case, settled in fed:
        seen.append(case)
        yield case, settled
    yield from ((case, None) for case in beside_steps(source, seen))
