"""The two judges, behind one function: onnxruntime with its optimizations off, and onnx's reference evaluator.

Both run as in verification, which knows operators that the evaluator gets wrong. Below opset 7, the evaluator gets the
versions of operators in `tools.fuzz.old_versions`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, inliner

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import opset_of
from reducelower.verification.running.evaluator import Evaluator
from reducelower.verification.running.reference import wrong_in_reference
from reducelower.verification.running.runtimes import OnnxRuntime
from reducelower.verification.running.source import CannotRunError, Source, as_declared
from tools.fuzz.case import runnable
from tools.fuzz.gaps import Facts, gap_of, is_single
from tools.fuzz.old_versions import old_operators

__all__ = ["NEWEST_OF_ONNXRUNTIME", "RUNTIMES", "Outcome", "run", "trusted_run"]

NEWEST_OF_ONNXRUNTIME = 26
"""The newest opset version that this onnxruntime says it reads."""

_OLDEST = 7
"""Below, the tables of verification say nothing about the evaluator."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        values: the outputs, None if it failed.
        error: why it failed, in one line.
        lacks: whether the runtime lacks the operator, version or element type, which proves nothing.
        single: whether it is known to compute doubles in single precision.
    """

    values: tuple[Any, ...] | None
    error: str = ""
    lacks: bool = False
    single: bool = False


def run(runtime: str, model: ModelProto, feeds: Mapping[str, Any]) -> Outcome:
    """Run a model with ``onnxruntime`` or ``reference``; a failure is an outcome too."""
    try:
        return Outcome(tuple(RUNTIMES[runtime](runnable(model), deepcopy(dict(feeds)))))
    except Exception as error:  # the evaluator raises whatever its operators raise
        text = " ".join(f"{type(error).__name__}: {error.__cause__ or error}".split())
        lacks = isinstance(error, CannotRunError) and error.unsupported
        return Outcome(None, text, lacks or runtime == "reference" or any(mark in text for mark in _LACKS))


def trusted_run(runtime: str, model: ModelProto, feeds: Mapping[str, Any], facts: Facts) -> Outcome:
    """The same, if the runtime is not known to get a model with these facts wrong."""
    gap = gap_of(runtime, facts)
    outcome = Outcome(None) if gap else run(runtime, model, feeds)
    if outcome.values is not None:
        gap = gap_of(runtime, facts.also(outcome.values))
    return Outcome(None, gap.reason, lacks=True) if gap else replace(outcome, single=is_single(runtime, facts))


_LACKS = (
    "Could not find an implementation", "is not supported", "is not a registered function/op", "nsupported type",
    "not supported", "is invalid", "only supports", "No Op registered", "must have the shape set",
    "type inference failed, inferred types",
)  # fmt: skip
"""Words of failures that only mean that onnxruntime is incomplete; the reference is so in many ways."""


onnxruntime.set_default_logger_severity(4)


def _by_onnxruntime(model: ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    if opset_of(model) > NEWEST_OF_ONNXRUNTIME:
        raise CannotRunError("onnxruntime does not read the opset version", unsupported=True)
    return OnnxRuntime().load(Source.of(model)).run(feeds)


def _by_reference(model: ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    # In functions, the evaluator would neither find old versions nor keep all attributes.
    model = inliner.inline_local_functions(model) if model.functions else model
    opset = opset_of(model)
    wrong = wrong_in_reference(model) if opset >= _OLDEST else ()
    if wrong:
        raise CannotRunError(f"the evaluator is known to get {', '.join(wrong)} wrong", unsupported=True)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = Evaluator(_with_all_outputs_named(model), new_ops=list(old_operators(opset)) or None)
        outputs = evaluator.run(None, dict(feeds))
        # numpy widens results in the reference
        return list(map(as_declared, outputs, model.graph.output))


def _with_all_outputs_named(model: ModelProto) -> ModelProto:
    """A copy in which all outputs have names: the reference confuses an empty name with an input that is left out."""
    if not any("" in node.input for node in all_nodes(model)):
        return model
    copy = ModelProto.FromString(model.SerializeToString())
    for number, node in enumerate(all_nodes(copy)):
        node.output[:] = [name or f"fuzz_unread_{number}_{place}" for place, name in enumerate(node.output)]
    return copy


RUNTIMES: Mapping[str, Callable[[ModelProto, Mapping[str, Any]], Sequence[Any]]] = {
    "onnxruntime": _by_onnxruntime,
    "reference": _by_reference,
}
