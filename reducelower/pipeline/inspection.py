"""Describe a model: its contents, the opset versions it can reach, and the runtimes that would get it wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from onnx import ModelProto, ValueInfoProto

from reducelower.api import planned
from reducelower.errors import ConversionError
from reducelower.files import LoadedModel, read_model
from reducelower.legalization.refusals import explain_failures, fits
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes, graphs
from reducelower.model.schemas import element_type_name, latest_opset, opset_of
from reducelower.model.spelled import operator_name, type_text
from reducelower.model.text import shape_text
from reducelower.model.value_info import size_of
from reducelower.options import Settings, Target
from reducelower.pipeline.soundness import sound
from reducelower.pipeline.where import OnRuntime, where

__all__ = ["Inspected", "Stated", "inspect_file"]


@dataclass(frozen=True)
class Stated:
    """What a model states of an input or output.

    Attributes:
        name: its name.
        element_type: ONNX name of the element type; of anything but a tensor its type in ONNX's text syntax.
        shape: sizes, the names of symbolic ones, and None for unknown ones; None if the rank is not stated.
    """

    name: str
    element_type: str
    shape: tuple[int | str | None, ...] | None = None

    def __str__(self) -> str:
        """As ONNX's text syntax writes it."""
        return f"{self.element_type}{shape_text(self.shape)} {self.name}"


@dataclass(frozen=True)
class Inspected:
    """What is in a model.

    Attributes:
        opsets: opset versions by domain; the default domain is ``ai.onnx``.
        size: bytes of the model file, without external data.
        external: size in bytes of each file with external data, by location.
        operators: how many nodes of each operator there are, in subgraphs and functions too.
        weights: how many elements initializers have, by element type.
        inputs, outputs: each with name, element type and shape.
        reaches: opset versions that the whole model can be converted to.
        runtimes: what is known of it on each runtime.
        blocked: for the opset versions next to those, the first reason why it cannot be converted to them.
        problem: what the ONNX checker says against it; empty for a valid model.
    """

    path: str
    opsets: Mapping[str, int]
    ir_version: int
    producer: str
    size: int
    external: Mapping[str, int]
    operators: Mapping[str, int]
    weights: Mapping[str, int]
    inputs: tuple[Stated, ...]
    outputs: tuple[Stated, ...]
    reaches: tuple[int, ...] = ()
    blocked: Mapping[int, str] | None = None
    runtimes: tuple[OnRuntime, ...] = ()
    problem: str = ""


def inspect_file(path: str, *, runtimes: Iterable[str] | None = None) -> Inspected:
    """Inspect a model file; its weights are not read.

    `runtimes` names those to look at, such as ``opencv`` or ``opencv@4.12``; by default all.

    Raises:
        UnreadableModelError: it cannot be read.
    """
    source = read_model(path)
    found = _content(path, source, source.model)
    source, _, wrong = sound(source)
    if wrong:
        return replace(found, problem=wrong)
    try:
        with explain_failures(source.document):
            return _on_its_way(found, source.document, runtimes)
    except ConversionError as error:
        return replace(found, problem=error.refusals[0].reason)


def _on_its_way(found: Inspected, document: Document, runtimes: Iterable[str] | None) -> Inspected:
    """What was found, and where the model can go."""
    document = document.for_trials()  # all attempts share the types that inference finds
    opset = opset_of(document.message)
    is_legal = fits(document, Target(), Settings())
    reaches = tuple(filter(is_legal, range(1, latest_opset() + 1))) if opset else ()
    near = {side for number in reaches for side in (number - 1, number + 1)} - set(reaches)
    beyond = {
        number: planned(document, Target(number), Settings()).refusals
        for number in sorted(near)
        if 1 <= number <= latest_opset()
    }
    blocked = {number: str(refusals[0]) if refusals else "" for number, refusals in beyond.items()}
    return replace(found, reaches=reaches, blocked=blocked, runtimes=where(document, runtimes))


def _content(path: str, source: LoadedModel, model: ModelProto) -> Inspected:
    operators = Counter(map(operator_name, all_nodes(model)))
    weights: Counter[str] = Counter()
    for _, graph in graphs(model):
        for tensor in graph.initializer:
            weights[element_type_name(tensor.data_type)] += prod(tensor.dims)
    held = {tensor.name for tensor in model.graph.initializer}
    fed = [value for value in model.graph.input if value.name not in held]
    return Inspected(
        path,
        {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        model.ir_version,
        f"{model.producer_name} {model.producer_version}".strip(),
        Path(path).stat().st_size,
        {file.location: file.size for file in source.external},
        dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        dict(weights.most_common()),
        tuple(map(_stated, fed)),
        tuple(map(_stated, model.graph.output)),
    )


def _stated(value: ValueInfoProto) -> Stated:
    if not value.type.HasField("tensor_type"):
        return Stated(value.name, type_text(value.type))
    tensor = value.type.tensor_type
    dims = tuple(dim.dim_param or size_of(dim) for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    return Stated(value.name, element_type_name(tensor.elem_type), dims)
