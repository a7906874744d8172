"""The two judges, behind one function: onnxruntime with its optimizations off, and onnx's reference evaluator.

`tools.fuzz.old_versions` has the old versions of operators that the reference lacks.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, inliner
from onnx.reference import ReferenceEvaluator

from reducelower.model.schemas import opset_of
from tools.fuzz.case import all_nodes, runnable
from tools.fuzz.old_versions import old_operators
from tools.sessions import unoptimized

__all__ = ["NEWEST_OF_ONNXRUNTIME", "RUNTIMES", "Outcome", "run"]

NEWEST_OF_ONNXRUNTIME = 26
"""The newest opset version that this onnxruntime says it reads."""


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
    """Run a model with ``onnxruntime`` or ``reference``; a failure is an outcome too.

    The runtime gets copies, because training in onnxruntime overwrites its inputs.
    """
    try:
        return Outcome(tuple(RUNTIMES[runtime](runnable(model), deepcopy(dict(feeds)))))
    except Exception as error:  # runtimes raise any kind of exception
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(None, text, any(mark in text for mark in _LACKS[runtime]))


_LACKS: Mapping[str, Sequence[str]] = {
    "onnxruntime": (
        "NOT_IMPLEMENTED", "NotImplemented", "Could not find an implementation", "is not supported", "NewerOpset",
        "is not a registered function/op", "Unsupported type", "unsupported type", "not supported", "is invalid",
        "only supports", "No Op registered", "must have the shape set",
        "type inference failed, inferred types",
    ),
    "reference": ("",),
}  # fmt: skip
"""Words of failures that only mean that the runtime is incomplete, as the reference is in many ways."""


class NewerOpsetError(Exception):
    """The runtime does not read the model's opset version."""


onnxruntime.set_default_logger_severity(4)
_quiet = onnxruntime.RunOptions()
_quiet.log_severity_level = 4


def _by_onnxruntime(model: ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    if opset_of(model) > NEWEST_OF_ONNXRUNTIME:
        raise NewerOpsetError
    session = unoptimized(model)
    types = [_element_type(value.type) for value in model.graph.output]
    strange = (TensorProto.BFLOAT16, TensorProto.FLOAT4E2M1, *_EIGHT_BITS)
    if any(_element_type(value.type) in strange for value in (*model.graph.input, *model.graph.output)):
        return _with_bindings(session, feeds, types)
    return list(session.run(None, dict(feeds), _quiet))


_EIGHT_BITS = (
    TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ,
)  # fmt: skip


def _with_bindings(session: onnxruntime.InferenceSession, feeds: Mapping[str, Any], types: Sequence[int]) -> list[Any]:
    """Run with element types that numpy lacks."""
    inputs = {}
    for name, value in feeds.items():
        element_type = helper.np_dtype_to_tensor_dtype(value.dtype)
        if element_type == TensorProto.BFLOAT16 or element_type in _EIGHT_BITS:
            raw = value.view(np.uint16 if element_type == TensorProto.BFLOAT16 else np.uint8)
            inputs[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
                np.ascontiguousarray(raw), element_type
            )
        else:
            inputs[name] = onnxruntime.OrtValue.ortvalue_from_numpy(value)
    outputs = session.run_with_ort_values(None, inputs, _quiet)
    return [_as_array(one, element_type) for one, element_type in zip(outputs, types, strict=True)]


def _as_array(value: Any, element_type: int) -> Any:
    if element_type == TensorProto.FLOAT4E2M1:
        # A byte holds two, the first in the lower half. The runtime's own conversion assumes one, and reads too far.
        count = int(np.prod(value.shape()))
        raw = np.frombuffer(ctypes.string_at(value.data_ptr(), (count + 1) // 2) if count else b"", np.uint8)
        halves = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[:count]
        return halves.view(helper.tensor_dtype_to_np_dtype(element_type)).reshape(tuple(value.shape()))
    if element_type == TensorProto.BFLOAT16 or element_type in _EIGHT_BITS:
        dtype = helper.tensor_dtype_to_np_dtype(element_type)
        shape = tuple(value.shape())
        count = int(np.prod(shape)) * dtype.itemsize
        raw = ctypes.string_at(value.data_ptr(), count) if count else b""
        return np.frombuffer(raw, dtype).reshape(shape)
    return value.numpy()


def _element_type(value_type: Any) -> int:
    return int(value_type.tensor_type.elem_type)


def _by_reference(model: ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    # In functions, the evaluator would neither find old versions nor keep all attributes.
    model = inliner.inline_local_functions(model) if model.functions else model
    if any("" in node.input for node in all_nodes(model.graph)):
        model = _with_all_outputs_named(model)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = ReferenceEvaluator(model, new_ops=list(old_operators(opset_of(model)))).run(None, dict(feeds))
    return [
        _typed(value, _element_type(stated.type)) for value, stated in zip(outputs, model.graph.output, strict=True)
    ]


def _with_all_outputs_named(model: ModelProto) -> ModelProto:
    """A copy in which all outputs have names: the reference confuses an empty name with an input that is left out."""
    copy = ModelProto.FromString(model.SerializeToString())
    for number, node in enumerate(all_nodes(copy.graph)):
        node.output[:] = [name or f"fuzz_unread_{number}_{place}" for place, name in enumerate(node.output)]
    return copy


def _typed(value: Any, element_type: int) -> Any:
    """The value in the type that the model states, because numpy widens results in the reference."""
    if isinstance(value, list) or value is None or not element_type:
        return value
    array = np.asarray(value)
    if element_type == TensorProto.STRING:
        return array.astype(object)
    with np.errstate(all="ignore"):
        return array.astype(helper.tensor_dtype_to_np_dtype(element_type))


RUNTIMES: Mapping[str, Callable[[ModelProto, Mapping[str, Any]], Sequence[Any]]] = {
    "onnxruntime": _by_onnxruntime,
    "reference": _by_reference,
}
