"""Models as conformance cases: generated inputs, and the outputs that a trusted runtime computes from them."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto

from reducelower.conformance.bisection import Inside
from reducelower.conformance.case import WHOLE, Case
from reducelower.conformance.whole_models import exporter_models
from reducelower.files import read_model
from reducelower.model.schemas import opset_of
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.runtimes import OnnxRuntime
from reducelower.verification.running.source import CannotRunError, Source, with_outputs
from reducelower.verification.whole.runs import Request, run_source

__all__ = ["case_of", "exporter_cases", "inside", "read_case"]

_TRUSTED = ("onnxruntime", "reference")
_SECONDS = 60.0


def read_case(path: str) -> Case:
    """The case of a model file, with its external data.

    Raises:
        UnreadableModelError: it cannot be read.
        CannotRunError: it is larger than 2 GiB, no accepted inputs were found, or an output is not a tensor.
    """
    loaded = read_model(path)
    return case_of(path, Source.of(loaded.document, loaded.place))


def case_of(name: str, source: Source) -> Case:
    """The case of a model.

    Raises:
        CannotRunError: as `read_case`.
    """
    data = source.serialized()
    run = run_source(source, _TRUSTED, Request({}, 0, {}), Clock(_SECONDS), [])
    feeds, results = run.cases[0], run.results[0]
    if not all(isinstance(value, np.ndarray) for value in (*feeds.values(), *results)):
        raise CannotRunError("it takes or gives what is no tensor")
    return Case(name, WHOLE, opset_of(source.proto, default=1), data, feeds, tuple(results), WHOLE)


def exporter_cases() -> list[Case]:
    """The cases of the models that come with the suite."""
    return [case_of(name, Source.of(model)) for name, model in exporter_models()]


def inside(model: ModelProto, case: Case) -> Inside:
    """Values inside a model for the inputs of a case, computed by onnxruntime; none if it cannot run the model."""
    names = dict.fromkeys(name for node in model.graph.node for name in node.output if name)
    input_names = {value.name for value in model.graph.input}
    feeds = {name: value for name, value in case.inputs.items() if name in input_names}
    try:
        results = OnnxRuntime().load(Source(with_outputs(model, names))).run(feeds, _SECONDS)
    except CannotRunError:
        return {}
    return dict(zip(names, results, strict=True))
