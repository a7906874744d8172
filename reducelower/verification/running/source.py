"""A model to run, from memory or disk, without copies of its weights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, OperatorSetIdProto, TensorProto, helper

from reducelower.errors import UnreadableModelError
from reducelower.files.external import DataFolder, external_files, external_tensors
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import opset_of
from reducelower.numerics.measure import Array
from reducelower.verification.running.inlined import inlined
from reducelower.verification.running.weights import is_held, with_weights, without_weights

__all__ = [
    "CannotRunError",
    "OutOfTimeError",
    "Session",
    "Source",
    "as_declared",
    "default_opset",
    "plainly_spelled",
]

_LONG_SPELLING = "ai.onnx"


class CannotRunError(Exception):
    """A model that a runtime cannot load or run, with a reason that ends a sentence.

    It is unsupported if the runtime lacks something (a kernel, an opset version, an element type), rather than finds
    the model wrong.
    """

    def __init__(self, reason: str, *, unsupported: bool = False) -> None:
        """Keep the reason; `unsupported` is for gaps of the runtime."""
        self.reason = reason
        self.unsupported = unsupported
        super().__init__(reason)


class OutOfTimeError(CannotRunError):
    """A run that was stopped or not started because its time is over; it says nothing against the model."""


class Session(Protocol):
    """A loaded model."""

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """Run once and return the outputs in the order of the graph.

        Args:
            feeds: one array per graph input.
            timeout: seconds after which to stop, in runtimes that can be stopped.

        Raises:
            CannotRunError: the runtime failed on these inputs.
        """


@dataclass(frozen=True)
class Source:
    """A model and where it came from.

    Attributes:
        folder: where its external data lies; None if unknown.
        data: the bytes of a model in memory, if available.
        weights: arrays that the model refers to by name (`weights.without_weights`), kept alive here.
    """

    proto: ModelProto
    folder: DataFolder | None = None
    data: bytes | None = None
    weights: Sequence[Array] = ()

    @staticmethod
    def of(
        model: ModelProto | Document | str | os.PathLike[str], folder: str | os.PathLike[str] | None = None
    ) -> Source:
        """Wrap a model, or read one from a file without its external data.

        `folder` is where the external data of a model in memory lies, or the model's file.

        Raises:
            UnreadableModelError: the file is missing or not an ONNX model, or its external data is missing or elsewhere
                than it may lie.
        """
        data_folder = None if folder is None else DataFolder.of(folder)
        if isinstance(model, Document):
            return Source(model.message, data_folder, model.searchable)
        if isinstance(model, ModelProto):
            return Source(model, data_folder)
        path = Path(model)
        try:
            proto = onnx.load(path, load_external_data=False)
        except Exception as error:  # protobuf, onnx and the file system each raise their own kinds
            raise UnreadableModelError(f"{path}: cannot be read as an ONNX model: {error}") from error
        if not proto.HasField("graph"):
            raise UnreadableModelError(f"{path}: holds no graph, so it is not an ONNX model")
        external_files(proto, path)
        return Source(proto, DataFolder.beside(path))

    @cached_property
    def _external(self) -> Sequence[TensorProto]:
        return list(external_tensors(self.proto))

    @property
    def _lies_elsewhere(self) -> bool:
        return not all(map(is_held, self._external))

    def light(self) -> Source:
        """The same with large weights beside the model; itself if the folder of external data is unknown.

        Both sides of a comparison keep weights this way, since onnxruntime sums in another order otherwise.

        Raises:
            UnreadableModelError: external data is missing or elsewhere than it may lie.
        """
        if self.folder is None and self._lies_elsewhere:
            return self
        proto, weights = without_weights(self.proto, self.folder, has_external=bool(self._external))
        return self if proto is self.proto else Source(proto, weights=weights)

    def inlined(self) -> Source:
        """The same without local functions; itself if it has none."""
        proto = inlined(self.proto)
        return self if proto is self.proto else Source(proto, self.folder, weights=self.weights)

    def serialized(self) -> bytes:
        """The model as bytes, for runtimes that take it from memory.

        Raises:
            CannotRunError: the model is over protobuf's 2 GiB, or its external data is out of reach.
        """
        if self._lies_elsewhere:
            raise CannotRunError(
                "its external data is in files beside it; save the model and give its path, or say base_dir",
                unsupported=True,
            )
        if self.data is not None:
            return self.data
        try:
            data: bytes = with_weights(self.proto).SerializeToString()
            return data
        except Exception as error:  # protobuf's EncodeError is no public type in every version
            raise CannotRunError("it is larger than the 2 GiB a protobuf message holds", unsupported=True) from error

    def complete(self) -> ModelProto:
        """The model with its weights as values again, for runtimes that take no others."""
        light = self.light()  # its weights live as long as this
        return with_weights(light.proto)


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


def as_declared(value: Any, element_type: int) -> Any:
    """A result in its declared element type: some runtimes return small integers and floats in wider types."""
    if not isinstance(value, (np.generic, np.ndarray)):
        return value
    array = np.asarray(value)
    if not element_type or array.dtype.kind in "OSUT":
        return array
    return array.astype(helper.tensor_dtype_to_np_dtype(element_type), copy=False)


def plainly_spelled(model: ModelProto) -> ModelProto:
    """The model with the default domain as the empty string, since onnx's own tools do not know it as ``ai.onnx``.

    Only a model that spells it ``ai.onnx`` is copied.
    """
    if not any(item.domain == _LONG_SPELLING for item in _with_domain(model)):
        return model
    plain = deepcopy(model)
    for item in _with_domain(plain):
        if item.domain == _LONG_SPELLING:
            item.domain = ""
    return plain


def _with_domain(model: ModelProto) -> Iterator[NodeProto | OperatorSetIdProto]:
    yield from model.opset_import
    for function in model.functions:
        yield from function.opset_import
    yield from all_nodes(model)
