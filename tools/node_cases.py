"""onnx's own node test cases: convert them to other opset versions, and run them again."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper

import reducelower
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from tools.fuzz.comparing import difference
from tools.fuzz.runtimes import RUNTIMES, run

__all__ = ["Case", "Result", "cases", "convert", "runs_as_expected"]

_SMALL = 64
_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


@dataclass(frozen=True)
class Case:
    """A model with inputs and the expected outputs."""

    name: str
    operator: str
    opset: int
    model: ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Result:
    """The outcome of one case at one target: ok, refused, wrong, invalid, crash or not run."""

    case: Case
    target: int
    state: str
    reason: str = ""


def _plain(value: Any) -> Any:
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


@cache
def cases() -> tuple[Case, ...]:
    """Every case of the default domain, and again with its small inputs as constants."""
    from onnx.backend.test.case.node import collect_testcases

    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    single = {case.name: case.model.graph.node[0].op_type for case in collected if len(case.model.graph.node) == 1}
    plain = []
    for case in collected:
        domains = {entry.domain for entry in case.model.opset_import}
        if domains - set(DEFAULT_DOMAINS) or len(case.data_sets) != 1:
            continue
        base = case.name.split("_expanded")[0]
        operator = single.get(base) or case.model.graph.node[0].op_type
        inputs, outputs = (tuple(map(_plain, values)) for values in case.data_sets[0])
        plain.append(Case(case.name, operator, opset_of(case.model), case.model, inputs, outputs, case.rtol, case.atol))
    return (*plain, *filter(None, map(_with_constants, plain)))


def _with_constants(case: Case) -> Case | None:
    """The same case as exporters write it: axes, pads, bounds and similar inputs are initializers."""
    graph = case.model.graph
    names = [value.name for value in graph.input]
    constants = {
        name: value
        for name, value in list(zip(names, case.inputs, strict=False))[1:]
        if isinstance(value, (np.ndarray, np.generic)) and value.ndim <= 1 and value.size <= _SMALL
    }
    if not constants or len(graph.node) != 1:
        return None
    model = ModelProto()
    model.CopyFrom(case.model)
    del model.graph.input[:]
    model.graph.input.extend(value for value in graph.input if value.name not in constants)
    tensors = (numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    model.graph.initializer.extend(tensors)
    inputs = tuple(value for name, value in zip(names, case.inputs, strict=False) if name not in constants)
    return replace(case, name=f"{case.name}_with_constants", model=model, inputs=inputs)


def runs_as_expected(case: Case) -> bool:
    """Whether the unconverted model reproduces the expected outputs, and not by chance."""
    return case.operator not in _RANDOM and _difference(case, case.model)[0] == "ok"


def convert(case: Case, target: int) -> Result:
    """Convert one case, run the result and compare its outputs with the expected ones."""
    try:
        converted = reducelower.convert_version(case.model, target)
    except reducelower.ConversionError as error:
        return Result(case, target, "refused", "; ".join(map(str, error.refusals)))
    except Exception as error:
        return Result(case, target, "crash", f"{type(error).__name__}: {error}")
    try:
        onnx.checker.check_model(converted, full_check=True)
    except Exception as error:
        if not _fails_full_check(case.model):
            return Result(case, target, "invalid", " ".join(str(error).split()))
    return Result(case, target, *_difference(case, converted))


def _fails_full_check(model: ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return True
    return False


def _difference(case: Case, model: ModelProto) -> tuple[str, str]:
    """State and reason. onnxruntime decides; if it has no kernel, the reference evaluator does."""
    feeds = dict(zip((value.name for value in model.graph.input), case.inputs, strict=False))
    reason = ""
    for runtime in RUNTIMES:
        outcome = run(runtime, model, feeds)
        if outcome.values is not None:
            return _compared(case, outcome.values)
        if not outcome.lacks:
            return "invalid", outcome.error
        reason = outcome.error
    return "not run", reason


def _compared(case: Case, got: Sequence[Any]) -> tuple[str, str]:
    for index, (expected, value) in enumerate(zip(case.outputs, got, strict=False)):
        problem = difference(expected, value, relative=case.rtol)
        if problem:
            return "wrong", f"output {index}: {problem}"
    return "ok", ""
