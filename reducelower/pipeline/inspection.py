"""Describe a model: its contents, the opset versions it can reach, and the runtimes that would get it wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from onnx import ModelProto, ValueInfoProto

from reducelower.api import planned
from reducelower.difference.spelled import operator_name, type_text
from reducelower.errors import ConversionError
from reducelower.files import LoadedModel, read_model
from reducelower.legalization.engine import explain_failures, fits
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes, graphs
from reducelower.model.schemas import element_type_name, latest_opset, opset_of
from reducelower.options import Settings, Target
from reducelower.pipeline.diagnosis import sound
from reducelower.pipeline.where import OnRuntime, where
from reducelower.runtimes import Runtime

__all__ = ["Inspected", "inspect_file"]


@dataclass(frozen=True)
class Inspected:
    """The contents of a model.

    Attributes:
        opsets: opset versions by domain; the default domain is ``ai.onnx``.
        size: bytes of the model file, without external data.
        external: size in bytes of each file with external data, by location.
        operators: the number of nodes of each operator, including subgraphs and functions.
        inputs: each in ONNX's text syntax, such as ``float[N,3] x``; values that initializers fill are left out.
        outputs: the same of each output.
        weights: the number of elements of all initializers, by element type.
        reaches: opset versions to which the whole model can be converted.
        runtimes: whether it runs on each runtime.
        blocked: for the opset versions next to those, the first reason why it cannot be converted to them.
        problem: the objection of the ONNX checker; empty for a valid model.
    """

    path: str
    opsets: Mapping[str, int]
    ir_version: int
    producer: str
    size: int
    external: Mapping[str, int]
    operators: Mapping[str, int]
    weights: Mapping[str, int]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reaches: tuple[int, ...] = ()
    blocked: Mapping[int, str] | None = None
    runtimes: tuple[OnRuntime, ...] = ()
    problem: str = ""


def inspect_file(path: str, *, runtimes: Iterable[Runtime] | None = None) -> Inspected:
    """Inspect a model file; its weights are not read.

    `runtimes`: by default the newest version of every shipped one.

    Raises:
        UnreadableModelError: it cannot be read.
    """
    source = read_model(path)
    inspected = _content(path, source, source.model)
    source, _, defect = sound(source)
    if defect:
        return replace(inspected, problem=defect)
    try:
        with explain_failures(source.document):
            return _with_reach(inspected, source.document, runtimes)
    except ConversionError as error:
        return replace(inspected, problem=error.refusals[0].reason)


def _with_reach(inspected: Inspected, document: Document, runtimes: Iterable[Runtime] | None) -> Inspected:
    """Add the reachable opset versions and the runtimes."""
    document = document.bare
    opset = opset_of(document.message)
    is_legal = fits(document, Target(), Settings())
    reaches = tuple(filter(is_legal, range(1, latest_opset() + 1))) if opset else ()
    adjacent = {side for number in reaches for side in (number - 1, number + 1)} - set(reaches)
    adjacent_refusals = {
        number: planned(document, Settings(Target(number))).refusals
        for number in sorted(adjacent)
        if 1 <= number <= latest_opset()
    }
    blocked = {number: str(refusals[0]) if refusals else "" for number, refusals in adjacent_refusals.items()}
    return replace(inspected, reaches=reaches, blocked=blocked, runtimes=where(document, runtimes))


def _content(path: str, source: LoadedModel, model: ModelProto) -> Inspected:
    operators = Counter(map(operator_name, all_nodes(model)))
    weights: Counter[str] = Counter()
    for _, graph in graphs(model):
        for tensor in graph.initializer:
            weights[element_type_name(tensor.data_type)] += prod(tensor.dims)
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initialized]
    return Inspected(
        path,
        {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        model.ir_version,
        f"{model.producer_name} {model.producer_version}".strip(),
        Path(path).stat().st_size,
        {file.location: file.size for file in source.external},
        dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        dict(weights.most_common()),
        tuple(map(_stated, inputs)),
        tuple(map(_stated, model.graph.output)),
    )


def _stated(value: ValueInfoProto) -> str:
    return f"{type_text(value.type)} {value.name}".strip()
