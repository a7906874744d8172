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
import onnxruntime
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.verification.running.evaluator import Evaluator
from tools.sessions import unoptimized

__all__ = ["Case", "Result", "cases", "convert", "runs_as_expected"]

_LACKS_KERNEL = (
    "NOT_IMPLEMENTED",
    "is under development",
    "only *guarantees* support",
    "Could not find an implementation",
    "InsertedPrecisionFreeCast_",  # onnxruntime 1.30 gives wrong types to the casts that it adds for float16
)
_NEWEST_FOR_ONNXRUNTIME = 25
# onnx's evaluator of 1.20 stacks the numbers that Scan yields as rows; before onnx 1.23, the corrected one is used.
_REFERENCE = ReferenceEvaluator if onnx.defs.onnx_opset_version() >= 28 else Evaluator
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
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


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
    names = [value.name for value in model.graph.input]
    feeds = dict(zip(names, case.inputs, strict=False))
    try:
        got = _run_onnxruntime(model, feeds)
    except Exception as error:
        if any(mark in str(error) for mark in _LACKS_KERNEL) or "ONNXRuntimeError" not in str(error):
            return _difference_in_reference(case, model, feeds)
        return "invalid", " ".join(str(error).split())
    return _compare(case, got)


def _difference_in_reference(case: Case, model: ModelProto, feeds: dict[str, Any]) -> tuple[str, str]:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = _REFERENCE(model).run(None, feeds)
    except Exception as error:
        return "not run", f"{type(error).__name__}: {' '.join(str(error).split())}"
    return _compare(case, got)


def _run_onnxruntime(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    if opset_of(model) > _NEWEST_FOR_ONNXRUNTIME:
        raise RuntimeError("NOT_IMPLEMENTED: newer than onnxruntime")
    quiet = onnxruntime.RunOptions()
    quiet.log_severity_level = 4
    return list(unoptimized(model).run(None, feeds, quiet))


def _compare(case: Case, got: Sequence[Any]) -> tuple[str, str]:
    for index, (expected, value) in enumerate(zip(case.outputs, got, strict=False)):
        problem = _mismatch(expected, value, case)
        if problem:
            return "wrong", f"output {index}: {problem}"
    return "ok", ""


def _mismatch(expected: Any, value: Any, case: Case) -> str:
    if expected is None or value is None:
        return "" if expected is value else "one is None"
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(value):
            return f"{len(value)} elements, expected {len(expected)}"
        return next(
            (found for one, other in zip(expected, value, strict=True) if (found := _mismatch(one, other, case))), ""
        )
    expected, value = np.asarray(expected), np.asarray(value)
    if expected.shape != value.shape:
        return f"shape {value.shape}, expected {expected.shape}"
    if value.dtype == np.uint8 and expected.dtype.kind == "V" and expected.dtype.itemsize == 1:
        value = value.view(expected.dtype)  # onnxruntime returns 8-bit floats as bytes
    if expected.dtype != value.dtype and not expected.dtype.kind == value.dtype.kind == "O":
        return f"type {value.dtype}, expected {expected.dtype}"
    if expected.dtype.kind in "OSU":
        equal = [str(item) for item in expected.ravel()] == [str(item) for item in value.ravel()]
        return "" if equal else "strings differ"
    if expected.dtype.kind not in "biufc":
        expected, value = expected.astype(np.float32), value.astype(np.float32)
    if np.allclose(value, expected, rtol=case.rtol, atol=case.atol, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"numbers differ by up to {np.nanmax(np.abs(value.astype(np.float64) - expected.astype(np.float64)))}"
