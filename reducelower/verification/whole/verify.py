"""Verifies two models: each region in which they differ by itself, then both whole models on the same inputs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto

from reducelower.files import read_model
from reducelower.given import AnyModel, take
from reducelower.model.attributes import attribute_of, set_attribute
from reducelower.model.graph import all_nodes, rename
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.numerics.tolerance import Tolerance
from reducelower.plan import Plan
from reducelower.verification.checking.cache import Cache
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.sites import verify_regions
from reducelower.verification.feeding.limits import takes_any
from reducelower.verification.inputs.declared import at_sizes, fixed_sizes, input_specs, listed
from reducelower.verification.inputs.testdata import TestDataSet, check_given
from reducelower.verification.result import Verification
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.conditions import (
    DEFAULT_MEMORY,
    conditions,
    provider_named,
    require_onnxruntime,
    under,
)
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import Source
from reducelower.verification.whole.comparison import (
    Comparison,
    runtimes_for,
    verdict_on,
)
from reducelower.verification.whole.explanations import explain
from reducelower.verification.whole.kept import keep_region, note_first
from reducelower.verification.whole.runs import SourceRuns

__all__ = ["verify"]

_FOR_REGIONS = 0.75  # of the budget


def verify(
    before: AnyModel | Source,
    after: AnyModel | Source | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    expected: Sequence[Any] | None = None,
    data_sets: Sequence[TestDataSet] = (),
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    runtimes: Sequence[str] = ("onnxruntime",),
    tolerances: Mapping[str, Tolerance] | None = None,
    budget: float | None = None,
    memory: float | None = DEFAULT_MEMORY,
    plan: Plan | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    strict: bool = False,
    assume_nonempty: bool = False,
    provider: str = "",
    keep_failing: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Verification:
    """Run each region in which two models differ by itself, then both whole models, and compare every output.

    The models are aligned by what they compute; only the names of inputs and outputs matter. Each region that is
    computed differently runs by itself on ordinary and edge values. Both whole models run in onnxruntime with graph
    optimizations off. A side that onnxruntime cannot run, since it lacks a kernel or the opset version, runs in
    ``onnx.reference.ReferenceEvaluator``, and the notes say so.

    Args:
        before: the model that is right by definition, in any form (see `reducelower.legalize`); a path is run from that
            path, so that external data is found.
        after: the model to compare with it; None to compare the first with itself in each of the runtimes, against
            onnxruntime, or against the reference evaluator if onnxruntime cannot run it or is itself in question.
        inputs: values by input name; the others are made.
        expected: outputs that both models should give, in graph order, for the given inputs.
        data_sets: several sets of inputs and expected outputs in place of one, as `load_test_data` reads them.
        seed: seed for the values that are made.
        dims: sizes of symbolic dimensions, by symbol; the others take several sizes.
        runtimes: where `after` runs. `before` runs in onnxruntime, except that ``reference`` runs both sides.
        tolerances: by ONNX element type, replacing `DEFAULT_TOLERANCES`.
        budget: seconds for running regions and whole models; None for no limit. The regions get three quarters of it,
            and each runtime has what they leave for the whole models. Once begun, a run in the reference evaluator is
            not stopped. Reading and aligning the models is not limited, but uses up the budget.
        memory: GB that a run and the comparison of its outputs may use, without weights; None for no limit. A run
            that needs more ends there, and smaller inputs are tried if sizes are free.
        plan: what a conversion did, so that findings name its rewrites.
        base_dir: folder of the external data of models given as ModelProto.
        strict: do not say ``equivalent`` if a runtime diverges from the specification.
        assume_nonempty: feed no inputs without elements, as if no dimension were ever 0.
        provider: execution provider of onnxruntime, such as ``cuda``; the CPU if it is empty.
        keep_failing: a folder for the smallest part of both models that shows their first difference: before.onnx,
            after.onnx, and the inputs in inputs.npz. `Verification.kept` says whether there is one.
        cache: a folder that remembers which regions held, so that no other process runs them again with the same
            versions.

    Returns:
        The verdict, the findings for every region and output, and what was not seen.

    Raises:
        UnreadableModelError: a path is missing or not an ONNX model.
        ValueError: there is no runtime, provider, input or symbolic dimension of a given name, a given value does not
            fit its input, or onnxruntime is not installed.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> found = reducelower.verify(model, reducelower.expand(model, rules="stable"))
        >>> found.equivalent
        True
    """
    source = _source_of(before, "before", base_dir).inlined()
    is_of_one = after is None
    result = source if after is None else _source_of(after, "after", base_dir).inlined()
    if "onnxruntime" in runtimes:
        require_onnxruntime()
    for name in runtimes:
        runtime_named(name)
    dims = dict(dims or {})
    data_sets = data_sets or [TestDataSet("", dict(inputs or {}), () if expected is None else tuple(expected))]
    for data in data_sets:
        check_given(source.proto, data.inputs, dims)
    if dims:
        source = replace(source, proto=at_sizes(source.proto, dims))
        result = source if is_of_one else replace(result, proto=at_sizes(result.proto, dims))
    said: list[str] = []
    if not is_of_one:
        stated = fixed_sizes(result.proto, source.proto)  # free in the second model, and fixed in the first
        if stated:
            dims |= stated
            result = replace(result, proto=at_sizes(result.proto, stated))
        result = _with_outputs_like(source, result, said)
        spare = _overridable(result.proto) - {value.name for value in source.proto.graph.input}
        result = replace(result, proto=_without_inputs(result.proto, spare)) if spare else result
    said += [f"run at {listed(dims)} only"] if dims else []
    ordered = _in_order(source, result)
    left, right = ordered.proto, result.proto
    released = _released(left, right)
    given = sorted(released & {name for data in data_sets for name in data.inputs})
    notes = [f"{name!r} is a constant of the converted model, and was left at its value." for name in given]
    if ordered is not source:
        source = ordered
        notes.append("The source leaves open in which order TopK gives what it finds, and was run with that in order.")
    chosen = provider_named(provider) if provider else conditions().provider
    is_nonempty = assume_nonempty or (plan is not None and plan.assumes_nonempty)
    if is_nonempty:
        notes.append("No inputs without elements were fed, since it is assumed that no dimension is 0.")
    mismatch = _interface_mismatch(left, right)
    if not any(data.inputs for data in data_sets):
        mismatch = mismatch or _sizes_mismatch(left, right)
    if mismatch:
        return Verification("different", ran=False, reason=mismatch, notes=tuple(notes))
    clock, folder = Clock(budget), None if keep_failing is None else Path(keep_failing)
    own = tuple(sorted((tolerances or {}).items()))
    with under(provider=chosen, memory=memory, feeds_empty=not is_nonempty, seed=seed, tolerances=own, clock=clock):
        fed = ({name: data.inputs[name] for name in data.inputs if name not in released} for data in data_sets)
        takes_empty = all(takes_any(all_nodes(model)) for model in (left, right))
        runs = [SourceRuns(source, each, takes_empty) for each in fed]
        seen = partial(runs[0].seen, runtimes_for(runtimes[0], is_of_one=is_of_one)[0])
        kept = Cache() if cache is None else Cache(Path(cache))
        checker = Checker(seen, cache=kept)
        with under(clock=clock.part(_FOR_REGIONS)):
            regions = verify_regions(left, right, plan, checker=checker)
        comparisons: list[Comparison] = []
        for (data, of_source), name in product(zip(data_sets, runs, strict=True), runtimes):
            comparisons.append(comparison := Comparison(of_source, result, name, data.outputs, regions))
            with under(clock=Clock(budget, clock.left)):
                if comparison.run():
                    explain(comparison)
                    if comparison.differing and all(each.first is None for each in comparisons):
                        note_first(comparison, folder)
                    comparison.finish()
        found = verdict_on(comparisons, regions, notes)
        found = replace(found, absent=(*found.absent, *said))
        if folder is not None and not found.kept and found.verdict == "different":
            found = replace(found, kept=keep_region(folder, regions, checker))
    departs = bool(found.departing or found.departs)
    return replace(found, verdict="not shown") if strict and departs and found.equivalent else found


def _source_of(side: AnyModel | Source, name: str, folder: str | os.PathLike[str] | None) -> Source:
    if isinstance(side, Source):
        return side
    if isinstance(side, str | os.PathLike):
        loaded = read_model(side)  # its large weights stay in the file
        return Source.of(loaded.document, loaded.place)
    return Source.of(take(side, name=name).document, folder)


def _interface_mismatch(before: ModelProto, after: ModelProto) -> str:
    """Why the models cannot be compared at all; empty if their inputs and outputs match."""
    outputs = [[value.name for value in model.graph.output] for model in (before, after)]
    if outputs[0] != outputs[1]:
        return f"the outputs are {outputs[0]} before and {outputs[1]} after"
    specs, skipped = input_specs(after)
    extra = {*(spec.name for spec in specs), *skipped} - {value.name for value in before.graph.input}
    extra -= {tensor.name for tensor in before.graph.initializer if extra}
    if fixed := _overridable(before) - {value.name for value in after.graph.input}:
        return (
            f"callers of the first model may give {sorted(fixed)} in place of defaults, and the second does not take it"
        )
    return f"the converted model needs inputs that the source does not have: {sorted(extra)}" if extra else ""


def _with_outputs_like(source: Source, result: Source, said: list[str]) -> Source:
    """The second model with the outputs that it calls otherwise under the names of the first; exporters number them.

    The same if there are more or fewer of them, or if they stand in another order.
    """
    outputs = [[value.name for value in side.proto.graph.output] for side in (source, result)]
    names = {after: before for before, after in zip(*outputs, strict=False) if before != after}
    taken = {value.name for value in result.proto.graph.input} | {*outputs[0]}
    if not names or len(outputs[0]) != len(outputs[1]) or not taken.isdisjoint(names):
        return result
    called = {before: f"{before}/of the second" for before in names.values()} | names
    proto = deepcopy(result.proto)
    for node in proto.graph.node:
        rename(node, lambda name: called.get(name, name))
    named: Iterable[Any] = chain(proto.graph.output, proto.graph.value_info, proto.graph.initializer)
    for value in named:
        value.name = called.get(value.name, value.name)
    said += [f"output {after!r} of the second model was compared with {before!r}" for after, before in names.items()]
    return replace(result, proto=proto)


def _sizes_mismatch(before: ModelProto, after: ModelProto) -> str:
    """That the second model takes one size only where the first takes any; empty if it does not."""
    fixed = fixed_sizes(before, after)
    options = " ".join(f"--dim {shlex.quote(f'{name}={size}')}" for name, size in fixed.items())
    said = f"the second model takes inputs of {listed(fixed)} only; give {options} to compare them there"
    return said if fixed else ""


def _in_order(source: Source, result: Source) -> Source:
    """The source with every TopK sorted, if the result has no TopK that leaves the order open.

    With ``sorted=0`` any order is right; before opset 11 there is no such attribute.
    """
    if not any(map(_is_unordered, all_nodes(source.proto))) or any(map(_is_unordered, all_nodes(result.proto))):
        return source
    proto = deepcopy(source.proto)
    for node in filter(_is_unordered, all_nodes(proto)):
        set_attribute(node, "sorted", 1)
    return replace(source, proto=proto)


def _is_unordered(node: NodeProto) -> bool:
    stated = attribute_of(node, "sorted") if node.op_type == "TopK" and node.domain in DEFAULT_DOMAINS else None
    return stated is not None and not stated.i  # which is 0, too, where a call of the function says it


def _released(before: ModelProto, after: ModelProto) -> set[str]:
    """The constants that were inputs: in a model of IR version 3, every initializer has to be one.

    From IR version 4 on, callers could override it, so it is an input no more.
    """
    if before.ir_version >= DEFAULTS_SINCE:
        return set()
    return {tensor.name for tensor in before.graph.initializer} - {value.name for value in after.graph.input}


def _overridable(model: ModelProto) -> set[str]:
    """The inputs with a default, which callers may give another value."""
    fed = {value.name for value in model.graph.input} if model.ir_version >= DEFAULTS_SINCE else set()
    return fed & {tensor.name for tensor in model.graph.initializer}


def _without_inputs(model: ModelProto, names: Collection[str]) -> ModelProto:
    """A copy in which some initializers are no inputs, and so constants."""
    copy = deepcopy(model)
    kept = [value for value in copy.graph.input if value.name not in names]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    return copy
