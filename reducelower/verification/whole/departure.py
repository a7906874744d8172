"""Compares one model in two runtimes and names the first operator whose output diverges."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto, NodeProto, ValueInfoProto, shape_inference

from reducelower.model.inference.protected import infer_shapes
from reducelower.model.skeleton import skeleton
from reducelower.numerics.tolerance import APART, Tolerance
from reducelower.verification.judging.compare import compare_outputs, worst_of
from reducelower.verification.judging.runs import Clock, Request, Run, run_result, run_source
from reducelower.verification.result import Departure, OutputComparison, to_plain
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import CannotRunError, Source, giving, has_external_data
from reducelower.verification.whole.first import error_of

__all__ = ["RuntimeComparison", "compare_runtimes"]


@dataclass(frozen=True)
class RuntimeComparison:
    """One model in a runtime, compared with the same model in a trusted one.

    Attributes:
        agrees: every output is the same within the tolerance; True too when nothing could be compared.
        ran: whether both runtimes ran the model.
        runtime: the runtime in question.
        trusted: the runtime it is compared with.
        outputs: one comparison per graph output.
        first: the first operator that diverges; None when the runtimes agree, or no single node shows it.
        reason: why there was no comparison; empty when there was one.
        notes: sentences a reader should see.
    """

    agrees: bool
    ran: bool
    runtime: str
    trusted: str = ""
    outputs: tuple[OutputComparison, ...] = ()
    first: Departure | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One paragraph: the verdict and where it begins to differ."""
        if not self.ran:
            text = f"Not compared in {self.runtime}: {self.reason}."
        elif self.agrees:
            text = f"{self.runtime} agrees with {self.trusted} on every output."
        elif self.first is None:
            wrong = next(item for item in self.outputs if item.verdict == "different")
            text = f"{self.runtime} diverges from {self.trusted}: output {wrong.name!r}: {wrong.reason}."
        else:
            text = f"{self.runtime} diverges from {self.trusted}; {self.first}."
        return " ".join([text, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain JSON values."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def compare_runtimes(
    model: ModelProto | str | os.PathLike[str],
    runtime: str = "openvino",
    *,
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    tolerances: Mapping[str, Tolerance] | None = None,
    trusted: Sequence[str] = ("onnxruntime", "reference"),
    budget: float | None = None,
) -> RuntimeComparison:
    """Run one model in a runtime and in a trusted one on the same inputs.

    Where an output differs, the intermediate values are made outputs too, and the first node in graph order whose
    value diverges is named.

    Args:
        model: the model; one with external data is given by its path.
        runtime: the runtime in question, one of `RUNTIMES`.
        inputs: values by input name; those not given are made.
        seed: seed for the values that are made.
        dims: sizes of symbolic dimensions, by symbol.
        tolerances: by ONNX element type; the defaults, widened for two runtimes, where missing.
        trusted: what to compare with: the first of these that runs the model.
        budget: seconds for the runs; None for no limit.

    Raises:
        UnreadableModelError: the path is missing or not an ONNX model.
        ValueError: no runtime has that name.
    """
    source = Source.of(model).light()
    runtime_named(runtime)
    clock = Clock(budget)
    notes: list[str] = []
    others = tuple(name for name in trusted if name != runtime)
    try:
        left = run_source(source, others, Request(dict(inputs or {}), seed, dict(dims or {})), clock, notes)
        right = run_result(source, (runtime,), left, clock, notes)
    except CannotRunError as error:
        return RuntimeComparison(True, False, runtime, reason=error.reason, notes=tuple(notes))
    names = [value.name for value in source.proto.graph.output]
    outputs, case = _worst(names, left, right, tolerances)
    agrees = all(item.verdict != "different" for item in outputs)
    first = None if agrees else _first(source, left, runtime, case, tolerances, clock, notes)
    return RuntimeComparison(agrees, True, runtime, left.runtime, tuple(outputs), first, notes=tuple(notes))


def _worst(
    names: Sequence[str], left: Run, right: Run, tolerances: Mapping[str, Tolerance] | None
) -> tuple[list[OutputComparison], int]:
    """The worst comparison of each output, and the first set of inputs that shows a difference.

    The budget may have ended before the last sets of inputs on the right.
    """
    where = f"{left.runtime} / {right.runtime}"
    found = [
        (at, item)
        for at, (before, after) in enumerate(zip(left.results, right.results, strict=False))
        for item in _compared(names, before, after, tolerances, where)
    ]
    differs = next((at for at, item in found if item.verdict == "different"), 0)
    return worst_of(item for _, item in found), differs


def _compared(
    names: Sequence[str],
    before: Sequence[Any],
    after: Sequence[Any],
    tolerances: Mapping[str, Tolerance] | None,
    runtime: str = "",
) -> list[OutputComparison]:
    return compare_outputs(names, before, after, runtime=runtime, tolerances=tolerances, widen=APART, by_tensor=True)


def _first(
    source: Source,
    left: Run,
    runtime: str,
    case: int,
    tolerances: Mapping[str, Tolerance] | None,
    clock: Clock,
    notes: list[str],
) -> Departure | None:
    """Compare every node's outputs in graph order."""
    try:
        model = source.proto
        if has_external_data(model):
            raise CannotRunError("its external data is in files beside it")
        feeds = left.cases[case]
        for nodes, exposed in _exposed(model, (left.runtime, runtime)):
            names = [value.name for value in exposed.graph.output]
            before, after = (_run_once(exposed, name, feeds, clock) for name in (left.runtime, runtime))
            found = {item.name: item for item in _compared(names, before, after, tolerances)}
            values = dict(zip(names, zip(before, after, strict=True), strict=True))
            for index, node in nodes:
                for name in node.output:
                    if name in found and found[name].verdict == "different":
                        label = node.name or f"{node.op_type}#{index}"
                        reason = error_of(*values[name]) or found[name].reason
                        return Departure(label, node.op_type, index, name, reason)
    except CannotRunError as error:
        notes.append(f"The intermediate values could not be compared: {error.reason}.")
    return None


def _run_once(model: ModelProto, runtime: str, feeds: Mapping[str, Any], clock: Clock) -> list[Any]:
    clock.check()
    return runtime_named(runtime).load(Source(model)).run(feeds, clock.left)


def _exposed(model: ModelProto, runtimes: Sequence[str]) -> Iterator[tuple[list[tuple[int, NodeProto]], ModelProto]]:
    """The model with more outputs: all at once where both runtimes take that, else node by node."""
    types = _types(model)
    nodes = [(index, node) for index, node in enumerate(model.graph.node) if any(name in types for name in node.output)]
    everything = _with_outputs(model, [node for _, node in nodes], types)
    try:
        for name in runtimes:
            runtime_named(name).load(Source(everything))
    except CannotRunError:
        for index, node in nodes:
            yield [(index, node)], _with_outputs(model, [node], types)
    else:
        yield nodes, everything


def _types(model: ModelProto) -> dict[str, ValueInfoProto]:
    """Types of the tensors that the main graph computes, as declared or inferred."""
    try:
        graph = infer_shapes(skeleton(model)).graph
    except shape_inference.InferenceError:
        graph = model.graph
    return {value.name: value for value in [*graph.value_info, *graph.output] if value.type.HasField("tensor_type")}


def _with_outputs(model: ModelProto, nodes: Sequence[NodeProto], types: Mapping[str, ValueInfoProto]) -> ModelProto:
    exposed = giving(model, ())
    exposed.graph.output.extend(types[name] for node in nodes for name in node.output if name in types)
    return exposed
