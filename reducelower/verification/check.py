"""Checks one distinct rewrite: builds its two small models, runs the battery, gathers the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from reducelower.model.graph import walk
from reducelower.model.spelled import attribute_text
from reducelower.model.text import short
from reducelower.numerics.measure import Array, element_type_of, identical, is_float, percentile_99, smallest_and_eps
from reducelower.numerics.tolerance import Tolerance, element_type_name, tolerance_for
from reducelower.plan import CHOSEN
from reducelower.verification.battery import Case
from reducelower.verification.bounded import RANDOM, moved
from reducelower.verification.compare import compare_outputs
from reducelower.verification.conditioning import DRAWS, Move, moved_by
from reducelower.verification.doubts import is_slight, no_evidence, wrong_in_reference
from reducelower.verification.feeding import is_large, reads_every_row
from reducelower.verification.judge import Sight, are_extreme, judge, judge_raised
from reducelower.verification.limits import Limits, limits_of
from reducelower.verification.oracle import Reduction, evaluate
from reducelower.verification.pairs import SMALL_CONSTANT, Pair, small_models
from reducelower.verification.places import Dims
from reducelower.verification.result import INFINITE, SiteStatus, SiteVerification
from reducelower.verification.runtimes import Session, runtime_named
from reducelower.verification.shapes import gives_nothing, is_ruled_out, leaves_nothing
from reducelower.verification.source import CannotRunError, Source
from reducelower.verification.steps import beside_steps
from reducelower.verification.trials import Definition, cases, input_specs_of, reduction_of
from reducelower.verification.unsteady import Unsteady
from reducelower.verification.wider import float_types
from reducelower.verification.witness import Witness

__all__ = ["check", "describe"]

_SEVERITY: Mapping[SiteStatus, int] = {
    "equal": 0,
    "not run": 1,
    "improved": 2,
    "overflow": 3,
    "departs": 4,
    "loses range": 5,
    "different": 6,
}
_OF_RANGE = ("improved", "overflow", "loses range")
_BY_DEFINITION = "the rounding of a computation by its definition"
_ORDINARY = 100.0  # magnitude of inputs
_MOST_BY_ROUNDING = 1e-3  # share of the largest magnitude
_TAKING = frozenset({"ArrayFeatureExtractor", "Gather", "GatherElements", "GatherND"})
_MIXING = frozenset({"DFT", "GridSample", "Resize", "RoiAlign", "STFT", "Upsample"})
_SHOWN = 400  # characters of inputs in a finding
_LONGEST = 60  # characters of an attribute


@dataclass
class _Tally:
    """What came of the cases so far."""

    status: SiteStatus = "equal"
    reason: str = ""
    example: str = ""
    runtime: str = ""
    cases: int = 0
    values: int = 0
    case_ulps: list[int] = field(default_factory=list)
    ulps: list[Array] = field(default_factory=list)
    identical: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    refused: list[str] = field(default_factory=list)
    kept: list[Case] = field(default_factory=list)
    lost: list[Case] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    limits: dict[str, None] = field(default_factory=dict)
    turns_zeros: bool = False
    varies: bool = False
    first: dict[object, Any] = field(default_factory=dict)

    def see(self, results: Sequence[Any]) -> None:
        """Note whether a result is another one than the first of its shape."""
        for at, value in enumerate(results):
            if not self.varies and isinstance(value, np.ndarray):
                known = self.first.setdefault((at, value.shape), value)
                self.varies = known is not value and not identical(known, value)

    def note(self, status: SiteStatus, reason: str, case: Case | None = None) -> None:
        """Keep the worst status, with the first reason for it."""
        if _SEVERITY[status] > _SEVERITY[self.status]:
            self.status = status
            self.reason = f"{reason} ({case.label})" if case else reason
            self.example = _shown(case) if case else ""


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
        return _finding(pair, _Tally("not run", reason, runtime=tally.runtime))
    if tally.status == "equal" and not tally.values and not _gives_nothing(pair):
        return _finding(pair, _Tally("not run", "it ran on inputs of which nothing is left", runtime=tally.runtime))
    if tally.status == "equal" and (table := _other_table(pair)):
        reason = f"the table {table!r} has other values, of which it was not seen that all were taken"
        return _finding(pair, replace(tally, status="not run", reason=reason))
    if declared:
        tally.notes.setdefault("The replacement rests on the declared sizes, and was run with these only.")
    return _finding(pair, tally)


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


def _finding(pair: Pair, tally: _Tally) -> SiteVerification:
    tally.notes |= dict.fromkeys(limits_of(pair).assumptions if tally.cases else ())
    ulps = np.concatenate([*tally.ulps, np.zeros(tally.identical)]) if any(map(np.any, tally.ulps)) else np.zeros(0)
    return SiteVerification(
        pair.site.op_type,
        pair.site.rule,
        describe(pair),
        ((pair.site.graph, pair.site.node),),
        tally.status,
        tally.reason,
        tally.runtime,
        tally.cases,
        tally.values,
        max(tally.case_ulps, default=0) if any(distance > 0 for distance in tally.case_ulps) else 0,
        percentile_99(ulps),
        float(ulps.mean()) if ulps.size else 0.0,
        tally.max_absolute,
        tally.max_relative,
        tuple(tally.case_ulps),
        tally.example,
        tuple(tally.notes),
        _holds(tally) if tally.status == "loses range" else "",
        CHOSEN in pair.site.rule,
        "; ".join(tally.limits),
        tally.turns_zeros,
        tally.varies,
    )


def _holds(tally: _Tally) -> str:
    """Between which magnitudes of the inputs nothing is lost, as far as it was tried."""
    if not tally.lost or not tally.kept:
        return ""
    lost, kept = [_magnitude(case) for case in tally.lost], [_magnitude(case) for case in tally.kept]
    large = [top for top in lost if top >= 1]
    small = [top for top in lost if 0 < top < 1]
    above = max((top for top in kept if top < min(large)), default=None) if large else None
    below = min((top for top in kept if top > max(small)), default=None) if small else None
    found = [f"holds up to magnitudes of {above:.2g}"] if above is not None else []
    found += [f"holds from magnitudes of {below:.2g}"] if below is not None else []
    return ", ".join(found)


def _magnitude(case: Case) -> float:
    """The largest finite magnitude among the inputs of a case."""
    tops = [0.0]
    for value in case.feeds.values():
        if isinstance(value, np.ndarray) and is_float(value):
            wide = np.abs(value.astype(np.float64))
            tops.append(float(wide[np.isfinite(wide)].max(initial=0)))
    return max(tops)


def describe(pair: Pair) -> str:
    """What the sites of a check have in common, for a reader."""
    inputs = []
    for name in pair.node.input:
        free = next((item for item in pair.inputs if item.name == name), None)
        if free is not None:
            kind = element_type_name(free.element_type) if free.element_type else "float?"
            rank = "rank ?" if free.dims is None else f"rank {len(free.dims)}"
            inputs.append(f"{kind} {rank}")
        elif name in pair.constants[0]:
            value = pair.constants[0][name]
            inputs.append(str(value.tolist()) if value.size <= 8 else f"{element_type_of(value)} {list(value.shape)}")
        else:
            inputs.append("-")
    attributes = [f"{item.name}={short(attribute_text(item), _LONGEST)}" for item in pair.node.attribute]
    text = f"{pair.site.op_type}({', '.join([*inputs, *attributes])})"
    if len(pair.nodes) > 1:
        text += f" and {len(pair.nodes) - 1} more"
    return f"{text} at opset {pair.before.opsets.get('', 1)}"


def _shown(case: Case) -> str:
    with np.printoptions(threshold=40, edgeitems=3):
        text = "; ".join(f"{name} = {np.array2string(np.asarray(value))}" for name, value in case.feeds.items())
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


@dataclass(frozen=True)
class _Setup:
    """What the runs of one check have in common."""

    pair: Pair
    seed: int
    tolerances: Mapping[str, Tolerance] | None
    static: bool
    limits: Limits
    others: Sequence[Sequence[Dims | None]] = ()


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
) -> _Tally:
    tally = _Tally()
    setup = _Setup(pair, seed, tolerances, static, limits_of(pair), others)
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
        found = _Tally()
        for runtimes in _ATTEMPTS[: len(_ATTEMPTS) if pair.is_reduction and not pair.is_raised else 2]:
            refused = found.refused
            found = _run(setup, before, after, runtimes)
            found.refused = refused + found.refused
            if found.cases or found.status == "different":
                break
        apart = found.runtime in ("onnxruntime / reference", "reference / onnxruntime")
        if apart and found.status in ("different", "loses range"):
            found = _again_in_reference(setup, before, after, found)
        hides = _hides_overflow(pair) or _narrows(before, after)
        if found.cases and found.status not in ("different", "loses range") and hides:
            strict = _run(setup, before, after, (_EITHER, ("reference",)))
            found = strict if strict.status == "different" else found
        names = found.runtime.split(" / ")
        doubt = no_evidence([(names[0], before), (names[-1], after)])
        if doubt and found.status in ("different", "loses range"):
            found = _Tally(runtime=found.runtime, refused=[doubt])
        _add(tally, found)
    return tally


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


def _again_in_reference(setup: _Setup, before: ModelProto, after: ModelProto, found: _Tally) -> _Tally:
    """Where the sides ran apart, ask the reference evaluator for both, unless it runs a newer operator for an old."""
    if wrong_in_reference(before) or wrong_in_reference(after):
        return found
    again = _run(setup, before, after, (("reference",), ("reference",)))
    if again.status in ("different", "loses range") or not again.cases:
        return found
    again.notes.setdefault("onnxruntime and the reference evaluator do not agree; the check is within the latter.")
    return again


def _add(tally: _Tally, found: _Tally) -> None:
    tally.note(found.status, found.reason)
    if tally.reason == found.reason:
        tally.example = found.example
    tally.runtime = found.runtime or tally.runtime
    tally.cases += found.cases
    tally.values += found.values
    tally.case_ulps += found.case_ulps
    tally.ulps += found.ulps
    tally.identical += found.identical
    tally.max_absolute = max(tally.max_absolute, found.max_absolute)
    tally.max_relative = max(tally.max_relative, found.max_relative)
    tally.refused += found.refused
    tally.kept += found.kept
    tally.lost += found.lost
    tally.notes |= found.notes
    tally.limits |= found.limits
    tally.turns_zeros |= found.turns_zeros
    tally.varies |= found.varies


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


def _run(setup: _Setup, before: ModelProto, after: ModelProto, runtimes: tuple[Sequence[str], Sequence[str]]) -> _Tally:
    """Run the battery on both sides and judge every case."""
    tally = _Tally()
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
        seen = _Seen(case, settled, left, expected, results, witness, unsteady, left_name != right_name)
        _judge_case(tally, setup, seen)
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


@dataclass(frozen=True)
class _Seen:
    """One run of both sides, and whom to ask where they differ."""

    case: Case
    reduction: Reduction | None
    source: Session
    expected: Sequence[Any]
    results: Sequence[Any]
    witness: Witness
    unsteady: Unsteady
    are_apart: bool


def _judge_case(tally: _Tally, setup: _Setup, seen: _Seen) -> None:
    worst, overflowed = 0, False
    pair, case = setup.pair, seen.case
    moves: dict[int, Mapping[str, Move]] = {}
    for at, (before, after) in enumerate(zip(seen.expected, seen.results, strict=True)):
        if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)):
            _judge_parts(tally, setup, case, before, after)
            continue
        if identical(before, after):
            tally.values += before.size
            tally.identical += before.size
            tally.kept.append(case)
            continue
        tally.turns_zeros |= _turns_zeros(before, after)
        truth = None
        if seen.reduction is not None:
            data = case.feeds.get(pair.node.input[0], pair.constants[0].get(pair.node.input[0]))
            given = element_type_of(before) in (setup.tolerances or {})  # the caller's bounds go before the formula
            if data is not None and not given:
                truth = evaluate(seen.reduction, data)

        def move(draws: int, number: int = at) -> Move | None:
            if draws not in moves:
                moves[draws] = moved_by(seen.source, case.feeds, seen.expected, [setup.seed, number], draws)
            return _rounding(moves[draws].get(str(number)), seen.expected[number], case)

        def inside(number: int = at) -> Move | None:
            found = seen.unsteady.moves(case.feeds, seen.expected).get(str(number))
            # Only elements that move themselves: values that lie on a step would excuse all that are beside one.
            return _rounding(found and replace(found, flipped=0.0), seen.expected[number], case)

        compare = judge_raised if pair.is_raised else judge
        tolerance = tolerance_for(element_type_of(before), setup.tolerances)

        between = partial(_mixed, pair, before, case)
        is_extreme = are_extreme(case.feeds.values(), before.dtype)
        moved = partial(move, 1), partial(move, DRAWS), inside, between  # the cheapest first
        sight = Sight(case.is_special, is_extreme, moved)
        found = compare(before, after, truth, tolerance, sight)
        status, reason = found.status, found.reason
        if _is_carried(pair) and (status == "loses range" or _overflows_elsewhere(case, before, after, found.elements)):
            status, reason = "departs", f"the runtime computes the newer version of the operator otherwise: {reason}"
        elif status == "different" and _is_random(pair, case):
            status, reason = "not run", "it draws random numbers, different ones each time"
        elif status == "different" and pair.is_reduction and _is_carried(pair) and _drops_nan(seen, before, after):
            status, reason = "departs", f"the runtime computes the operator otherwise of NaN: {reason}"
        elif status in ("different", "loses range") and truth is None:
            loss = ""
            if found.elements is not None:
                differing = (case.feeds, before, after, at, found.elements)
                loss = seen.witness.own_loss(*differing) or seen.witness.as_specified(*differing)
            if loss:
                status, reason = "overflow", loss
            elif departure := seen.witness.departure(
                case.feeds, before, after, at, found.elements, pair.before.shape(pair.outputs[at])
            ):
                status, reason = "departs", departure
            elif status == "different" and _is_exact(seen, before, after, at, tolerance, sight):
                status, reason = "departs", f"the source in double is what the replacement gives: {reason}"
        if status == "different" and seen.are_apart and is_slight(before, after):
            status, reason = "not run", f"it ran in two runtimes, which may differ as much: {reason}"
        if status != "equal" and tolerance.absolute and _magnitude(case) > _ORDINARY:
            continue  # an absolute bound is meant for the scale of the caller's outputs
        tally.note(status, reason, case)
        overflowed |= status in _OF_RANGE and is_float(before) and bool((np.isinf(before) | np.isinf(after)).any())
        (tally.lost if status == "loses range" else tally.kept).append(case)
        tally.values += before.size
        tally.max_absolute = max(tally.max_absolute, found.max_absolute)
        tally.max_relative = max(tally.max_relative, found.max_relative)
        if found.ulps.any():
            tally.limits[str(tolerance) if truth is None else _BY_DEFINITION] = None
        if found.ulps.size:
            tally.ulps.append(found.ulps)
            worst = max(worst, int(found.ulps.max()))
    tally.case_ulps.append(INFINITE if overflowed else worst)


def _is_exact(seen: _Seen, before: Array, after: Array, at: int, tolerance: Tolerance, sight: Sight) -> bool:
    """Whether the replacement is what the source is in double, as far as rounding lets it, where a runtime is not."""
    exact = seen.witness.exact(seen.case.feeds, before, after, at)
    with np.errstate(all="ignore"):
        rounded = None if exact is None else exact.astype(before.dtype)
    return rounded is not None and judge(rounded, after, None, tolerance, sight).status == "equal"


def _turns_zeros(before: Array, after: Array) -> bool:
    """Whether zeros of one sign stand where those of the other stood."""
    if not is_float(before) or before.dtype != after.dtype or before.shape != after.shape:
        return False
    return bool(((before == 0) & (after == 0) & (np.signbit(before) != np.signbit(after))).any())


def _rounding(move: Move | None, value: Array, case: Case) -> Move | None:
    """What of a move rounding explains: small against the inputs or the result. A larger one is a jump, as of an If."""
    if move is None or not is_float(value):
        return move
    finite = np.abs(np.where(np.isfinite(value), value, 0).astype(np.float64))
    most = _MOST_BY_ROUNDING * max(_magnitude(case), float(finite.max(initial=0)))
    return replace(move, reach=np.minimum(move.reach, most))


def _mixed(pair: Pair, value: Array, case: Case) -> Move | None:
    """What rounded weights do: a value is taken from beside its place, or a wave adds up to zero, over any values.

    No change of the inputs shows that where a coordinate falls on a value, so that its neighbours have no weight, and
    where values are the same all along a wave.
    """
    if not is_float(value) or not any(node.op_type in _MIXING for node in walk(pair.nodes)):
        return None
    _, eps, _ = smallest_and_eps(value.dtype)
    return Move(np.full(value.shape, eps * _magnitude(case)), flipped=0.0)


def _is_carried(pair: Pair) -> bool:
    """Whether the operator stayed, and what it loses is the doing of the runtime's newer version of it."""
    return len(pair.nodes) == len(pair.replacement) == 1 and pair.node.op_type == pair.replacement[0].op_type


def _drops_nan(seen: _Seen, before: Array, after: Array) -> bool:
    """Whether the sides ran in two runtimes and differ in nothing but where NaN comes out."""
    if not seen.are_apart or not is_float(before) or before.shape != after.shape:
        return False
    is_nan = np.isnan(before) | np.isnan(after)
    return identical(np.where(is_nan, 0, before), np.where(is_nan, 0, after))


def _overflows_elsewhere(case: Case, before: Array, after: Array, elements: Array | None) -> bool:
    """Whether finite inputs overflow on both sides, and what differs does so on one of them, or as another sign."""
    if case.is_special or elements is None or not is_float(before) or before.shape != after.shape:
        return False
    infinite = ~np.isfinite(before), ~np.isfinite(after)
    return all(map(np.any, infinite)) and bool((infinite[0] | infinite[1])[elements].all())


def _is_random(pair: Pair, case: Case) -> bool:
    """Whether the source draws numbers; a Dropout only where it is told that it is training."""
    drawing = [node for node in walk(pair.nodes) if node.op_type in RANDOM]
    told = (node.input[2] if node.op_type == "Dropout" and len(node.input) > 2 else "" for node in drawing)
    values = (case.feeds.get(name, pair.constants[0].get(name)) for name in told if name)
    return any(node.op_type != "Dropout" for node in drawing) or any(value is None or np.any(value) for value in values)


def _judge_parts(tally: _Tally, setup: _Setup, case: Case, before: Any, after: Any) -> None:
    """Compare sequences, maps and optional values part by part."""
    for item in compare_outputs(("value",), [before], [after], runtime="", tolerances=setup.tolerances):
        if item.verdict == "different":
            tally.note("different", f"{item.name}: {item.reason}", case)
        tally.values += int(np.prod(item.shape_before, dtype=np.int64))
