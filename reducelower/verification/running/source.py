"""A model to run, without copies of its weights, and with its local functions in place of their calls."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from onnx import ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto, helper

from reducelower.files.external import DataFolder, external_tensors
from reducelower.legalization.functions import called_function, find_call_defect, functions_of, inline
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import opset_of
from reducelower.numerics.measure import Array
from reducelower.verification.running.weights import is_held, with_weights, without_weights

__all__ = [
    "CannotRunError",
    "OutOfTimeError",
    "RunError",
    "Session",
    "Source",
    "as_declared",
    "default_opset",
    "inlined",
    "with_outputs",
]

_LONG_SPELLING = "ai.onnx"


class RunError(Exception):
    """A run that did not come about, with a reason that ends a sentence."""

    def __init__(self, reason: str) -> None:
        """Keep the reason."""
        self.reason = reason
        super().__init__(reason)


class CannotRunError(RunError):
    """A model that a runtime cannot load or run.

    It is unsupported if the runtime lacks something (a kernel, an opset version, an element type), rather than finds
    the model wrong.
    """

    def __init__(self, reason: str, *, unsupported: bool = False) -> None:
        """Keep the reason; `unsupported` is for gaps of the runtime."""
        self.unsupported = unsupported
        super().__init__(reason)


class OutOfTimeError(RunError):
    """A run that was stopped or not started because the time is over (`conditions`); nothing else is to be tried."""


class Session(Protocol):
    """A loaded model."""

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Run once on one array per graph input, and return the outputs in the order of the graph.

        Raises:
            CannotRunError: the runtime failed on these inputs.
            OutOfTimeError: the time was over, or ended in a runtime that can be stopped.
        """


@dataclass(frozen=True)
class Source:
    """A model to run.

    Attributes:
        proto: the model; large weights may lie beside it (`weights.without_weights`).
        weights: the arrays that it refers to, kept alive here.
    """

    proto: ModelProto
    weights: Sequence[Array] = ()

    @staticmethod
    def of(model: ModelProto | Document, folder: str | os.PathLike[str] | None = None) -> Source:
        """A model with large and external weights beside it.

        Both sides of a comparison keep weights this way, since onnxruntime sums in another order otherwise. `folder` is
        where the external data lies, or the model's file; without one, the data stays where it is.

        Raises:
            UnreadableModelError: external data is missing or elsewhere than it may lie.
        """
        proto = model.message if isinstance(model, Document) else model
        is_beside = folder is not None and any(True for _ in external_tensors(proto))
        return Source(*without_weights(proto, DataFolder.of(folder) if folder is not None and is_beside else None))

    def inlined(self) -> Source:
        """The same without local functions."""
        return replace(self, proto=inlined(self.proto))

    def serialized(self) -> bytes:
        """The model as bytes, for runtimes that take it from memory.

        Raises:
            CannotRunError: the model is over protobuf's 2 GiB, or its external data is out of reach.
        """
        try:
            data = self.complete().SerializeToString()
        except Exception as error:  # protobuf's EncodeError is no public type in every version
            raise CannotRunError("it is larger than the 2 GiB a protobuf message holds", unsupported=True) from error
        # External data has a location; to search the bytes takes less time than to ask every tensor.
        if b"location" in data and not all(map(is_held, external_tensors(self.proto))):
            raise CannotRunError(
                "its external data is in files beside it; save the model and give its path, or say base_dir",
                unsupported=True,
            )
        return data

    def refuse_endless(self) -> None:
        """Raise CannotRunError for functions that stand for too many nodes, since no time limit ends their inlining."""
        defect = find_call_defect(self.proto) if self.proto.functions else ""
        if defect:
            raise CannotRunError(defect, unsupported=True)

    def complete(self) -> ModelProto:
        """The model with its weights as values again, for runtimes that take no others."""
        return with_weights(self.proto)


def inlined(model: ModelProto) -> ModelProto:
    """A copy without local functions, in which the default domain is spelled as onnx's own tools do: as empty string.

    The model itself if it is so already. A function that cannot be inlined stays, in a domain that only models with the
    same functions have.
    """
    if not model.functions and all(item.domain != _LONG_SPELLING for item in _with_domain(model)):
        return model
    copy = deepcopy(model)
    inline(copy)
    for item in _with_domain(copy):
        item.domain = "" if item.domain == _LONG_SPELLING else item.domain
    _rename_rest(copy)
    return copy


def _rename_rest(model: ModelProto) -> None:
    functions = functions_of(model)
    if not functions:
        return
    whole = b"".join(function.SerializeToString(deterministic=True) for function in functions.values())
    mark = hashlib.sha256(whole).hexdigest()[:8]
    calls: list[Any] = [node for node in all_nodes(model) if called_function(node) in functions]
    imports: list[Any] = [
        *model.opset_import,
        *(entry for function in model.functions for entry in function.opset_import),
    ]
    domains = {domain for domain, _, _ in functions}
    for item in (*calls, *model.functions, *(entry for entry in imports if entry.domain in domains)):
        item.domain = f"{item.domain} {mark}"


def default_opset(model: ModelProto) -> int:
    """Opset version of the default domain; 1 if the model does not import it, as ONNX says."""
    return opset_of(model, default=1)


def with_outputs(model: ModelProto, names: Iterable[str], *, after_outputs: bool = False) -> ModelProto:
    """A copy whose outputs are intermediate values without types, instead of or after its own outputs."""
    copy = deepcopy(model)
    if not after_outputs:
        copy.graph.ClearField("output")
    for name in names:
        copy.graph.output.add(name=name)
    return copy


def as_declared(value: Any, declared: ValueInfoProto) -> Any:
    """A result in its declared element type: some runtimes return small integers and floats in wider types."""
    element_type = declared.type.tensor_type.elem_type
    if not isinstance(value, (np.generic, np.ndarray)):
        return value
    array = np.asarray(value)
    if not element_type or array.dtype.kind in "OSUT":
        return array
    return array.astype(helper.tensor_dtype_to_np_dtype(element_type), copy=False)


def _with_domain(model: ModelProto) -> Iterator[NodeProto | OperatorSetIdProto]:
    yield from model.opset_import
    for function in model.functions:
        yield from function.opset_import
    yield from all_nodes(model)
