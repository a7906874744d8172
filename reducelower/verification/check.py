"""Checks one distinct rewrite: builds its two small models, runs the battery, gathers what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from reducelower.verification.battery import Case, other_cases, reduction_cases
from reducelower.verification.doubts import old_in_reference
from reducelower.verification.inputs import InputSpec
from reducelower.verification.judge import judge
from reducelower.verification.measure import Array, element_type_of
from reducelower.verification.oracle import Reduction, evaluate
from reducelower.verification.pairs import FreeInput, Pair, small_models
from reducelower.verification.result import SiteStatus, SiteVerification
from reducelower.verification.runtimes import Session, runtime_named
from reducelower.verification.source import CannotRunError, Source, default_opset
from reducelower.verification.tolerance import Tolerance, element_type_name, tolerance_for

__all__ = ["check", "describe"]

_RANKS = (2, 3, 1, 0, 4)  # for data of unknown rank
_SEVERITY: Mapping[SiteStatus, int] = {"equal": 0, "not run": 1, "improved": 2, "overflow": 3, "different": 4}
_SHOWN = 400  # characters of inputs in a finding


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
    max_absolute: float = 0.0
    max_relative: float = 0.0
    refused: list[str] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def note(self, status: SiteStatus, reason: str, case: Case | None = None) -> None:
        """Keep the worst status, with the first reason for it."""
        if _SEVERITY[status] > _SEVERITY[self.status]:
            self.status = status
            self.reason = f"{reason} ({case.label})" if case else reason
            self.example = _shown(case) if case else ""


def check(
    pair: Pair, seed: int, tolerances: Mapping[str, Tolerance] | None, *, declared: bool = False
) -> SiteVerification:
    """Verify one rewrite by itself.

    Args:
        pair: the rewrite.
        seed: for the random values.
        tolerances: by ONNX element type, for operators other than Reduce.
        declared: only with the sizes that the model declares, which a replacement may rest on (a count, a shape).
    """
    tally = _check(pair, seed, tolerances, static=declared)
    if not tally.cases and tally.status != "different":
        reason = tally.refused[0] if tally.refused else "there was nothing to run it on"
        return _finding(pair, _Tally("not run", reason, runtime=tally.runtime))
    if declared:
        tally.notes.setdefault("The replacement rests on the declared sizes, and was run with these only.")
    return _finding(pair, tally)


def _finding(pair: Pair, tally: _Tally) -> SiteVerification:
    ulps = np.concatenate(tally.ulps).astype(np.float64) if tally.ulps else np.zeros(0)
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
        max(tally.case_ulps, default=0),
        float(np.percentile(ulps, 99)) if ulps.size else 0.0,
        float(ulps.mean()) if ulps.size else 0.0,
        tally.max_absolute,
        tally.max_relative,
        tuple(tally.case_ulps),
        tally.example,
        tuple(tally.notes),
    )


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
    attributes = [
        f"{item.name}=@{item.ref_attr_name}" if item.ref_attr_name else f"{item.name}={_attribute_text(item)}"
        for item in pair.node.attribute
    ]
    text = f"{pair.site.op_type}({', '.join([*inputs, *attributes])})"
    return f"{text} at opset {pair.before.opsets.get('', 1)}"


def _attribute_text(attribute: Any) -> str:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    text = str(list(value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
    return text if len(text) <= 60 else "..."


def _shown(case: Case) -> str:
    with np.printoptions(threshold=40, edgeitems=3):
        text = "; ".join(f"{name} = {np.array2string(np.asarray(value))}" for name, value in case.feeds.items())
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _check(pair: Pair, seed: int, tolerances: Mapping[str, Tolerance] | None, *, static: bool) -> _Tally:
    tally = _Tally()
    for before, after in small_models(pair):
        if not after.graph.output:
            tally.note("different", f"the replacement computes none of {list(pair.node.output)}")
            continue
        # An unused output may go; what is compared is what both sides have.
        kept = [value.name for value in after.graph.output]
        for value in [value for value in before.graph.output if value.name not in kept]:
            before.graph.output.remove(value)
        found = _run(pair, before, after, seed, tolerances, static, ("onnxruntime", "reference"))
        if found.status == "different" and " / " in found.runtime:
            found = _again_in_reference(pair, before, after, seed, tolerances, static, found)
        _add(tally, found)
    return tally


def _again_in_reference(
    pair: Pair,
    before: ModelProto,
    after: ModelProto,
    seed: int,
    tolerances: Mapping[str, Tolerance] | None,
    static: bool,
    found: _Tally,
) -> _Tally:
    """Where the sides ran apart, ask the reference evaluator for both, unless it runs a newer operator for an old."""
    if old_in_reference(before) or old_in_reference(after):
        return found
    again = _run(pair, before, after, seed, tolerances, static, ("reference",))
    if again.status == "different" or not again.cases:
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
    tally.max_absolute = max(tally.max_absolute, found.max_absolute)
    tally.max_relative = max(tally.max_relative, found.max_relative)
    tally.refused += found.refused
    tally.notes |= found.notes


def _load(model: ModelProto, runtimes: Sequence[str], *, is_result: bool) -> tuple[str, Session]:
    reasons: list[CannotRunError] = []
    for name in runtimes:
        try:
            return name, runtime_named(name).load(Source(model))
        except CannotRunError as error:
            reasons.append(error)
            if is_result and not error.unsupported:
                break  # a runtime that finds the replacement wrong is right, and no other is asked
    raise reasons[-1]


def _run(
    pair: Pair,
    before: ModelProto,
    after: ModelProto,
    seed: int,
    tolerances: Mapping[str, Tolerance] | None,
    static: bool,
    runtimes: Sequence[str],
) -> _Tally:
    """Run the battery on both sides and judge every case."""
    tally = _Tally()
    try:
        left_name, left = _load(before, runtimes, is_result=False)
    except CannotRunError as error:
        tally.refused.append(error.reason)
        return tally
    try:
        right_name, right = _load(after, runtimes, is_result=True)
    except CannotRunError as error:
        tally.runtime = left_name
        if error.unsupported:
            tally.refused.append(error.reason)
        else:
            tally.note("different", f"the replacement does not load: {error.reason}")
        return tally
    tally.runtime = left_name if left_name == right_name else f"{left_name} / {right_name}"
    reduction = _reduction(pair, before) if pair.is_reduction else None
    for case, settled in _cases(pair, before, reduction, seed, static):
        try:
            expected = left.run(case.feeds)
        except CannotRunError as error:
            tally.refused.append(error.reason)
            continue
        try:
            results = right.run(case.feeds)
        except CannotRunError as error:
            if error.unsupported:
                tally.refused.append(error.reason)
                continue
            tally.cases += 1
            tally.note("different", f"the replacement fails where the source runs: {error.reason}", case)
            continue
        tally.cases += 1
        _judge_case(tally, pair, case, settled, expected, results, tolerances)
    return tally


def _judge_case(
    tally: _Tally,
    pair: Pair,
    case: Case,
    reduction: Reduction | None,
    expected: Sequence[Any],
    results: Sequence[Any],
    tolerances: Mapping[str, Tolerance] | None,
) -> None:
    worst = 0
    for before, after in zip(expected, results, strict=True):
        if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)):
            continue
        truth = None
        if reduction is not None:
            data = case.feeds.get(pair.node.input[0], pair.constants[0].get(pair.node.input[0]))
            # The formula costs more than both runs, so it is asked only where the sides are not the same at once.
            if data is not None and before.tobytes() != after.tobytes():
                truth = evaluate(reduction, data)
        found = judge(before, after, truth, tolerance_for(element_type_of(before), tolerances))
        tally.note(found.status, found.reason, case)
        tally.values += before.size
        tally.max_absolute = max(tally.max_absolute, found.max_absolute)
        tally.max_relative = max(tally.max_relative, found.max_relative)
        if found.ulps.size:
            tally.ulps.append(found.ulps)
            worst = max(worst, int(found.ulps.max()))
    tally.case_ulps.append(worst)


def _reduction(pair: Pair, model: ModelProto) -> Reduction:
    """Attributes and constant axes of the original node; axes that are an input are filled in per case."""
    (node,) = model.graph.node
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    axes = attributes.get("axes")
    if len(node.input) > 1 and node.input[1] in pair.constants[0]:
        axes = pair.constants[0][node.input[1]].ravel().tolist()
    return Reduction(
        node.op_type,
        tuple(int(axis) for axis in axes) if axes is not None else None,
        bool(attributes.get("keepdims", 1)),
        bool(attributes.get("noop_with_empty_axes", 0)),
    )


def _cases(
    pair: Pair, model: ModelProto, reduction: Reduction | None, seed: int, static: bool
) -> Iterator[tuple[Case, Reduction | None]]:
    specs = [InputSpec(item.name, item.element_type or TensorProto.FLOAT, item.dims) for item in pair.inputs]
    data = next((spec for spec in specs if pair.node.input and spec.name == pair.node.input[0]), None)
    if reduction is None or data is None:
        for case in other_cases(tuple(specs), pair.node.op_type, seed):
            yield case, reduction
        return
    axes_input = pair.node.input[1] if len(pair.node.input) > 1 else ""
    dynamic = next((item for item in pair.inputs if item.name == axes_input), None)
    others = [spec for spec in specs if spec.name not in (data.name, axes_input)]
    for rank in _ranks(data, reduction):
        for axes in _axes(dynamic, rank, default_opset(model)):
            settled = (
                reduction if axes is None else Reduction(reduction.op_type, axes, reduction.keepdims, reduction.noop)
            )
            for case in reduction_cases(data, settled, rank, seed, static=static):
                feeds = dict(case.feeds)
                if axes is not None:
                    feeds[axes_input] = np.array(axes, np.int64)
                if others:
                    feeds |= next(iter(other_cases(tuple(others), "", seed))).feeds
                label = case.label if axes is None else f"{case.label}, axes {list(axes)}"
                yield Case(label, feeds), settled


def _ranks(data: InputSpec, reduction: Reduction) -> Sequence[int]:
    least = max((axis + 1 if axis >= 0 else -axis for axis in reduction.axes or ()), default=0)
    if data.dims is not None:
        return (len(data.dims),)
    return tuple(rank for rank in _RANKS if rank >= least) or (least,)


def _axes(dynamic: FreeInput | None, rank: int, opset: int) -> Iterator[tuple[int, ...] | None]:
    """Values for axes that are an input: each form that the rank and the declared length allow."""
    if dynamic is None:
        yield None
        return
    length = dynamic.dims[0] if dynamic.dims and isinstance(dynamic.dims[0], int) else None
    forms: list[tuple[int, ...]] = [()]
    if rank:
        forms += [(0,), (-1,), (rank - 1,)]
    if rank > 1:
        forms += [(0, rank - 1), (-1, 0)]
    forms += [tuple(range(rank))]
    for axes in dict.fromkeys(forms):
        if length is None or len(axes) == length:
            yield axes
