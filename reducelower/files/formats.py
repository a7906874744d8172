"""The bytes of a model file: parse them, and recognize files that are no models."""

from __future__ import annotations

import os
from collections.abc import Sequence

from google.protobuf.message import DecodeError
from onnx import ModelProto

from reducelower.errors import UnreadableModelError
from reducelower.model.document import Document

__all__ = ["LARGEST_MESSAGE", "WRITTEN", "parse"]

LARGEST_MESSAGE = 2**31 - 1
"""Size in bytes of the largest protobuf message, and so of the largest model file."""

WRITTEN = (".onnx", ".pb")
"""Extensions of models."""

_TEXTS = (b"{", b"<", b"ir_version")
"""Beginnings of models as text, which onnx reads and writes, but no runtime."""

_PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))

_NOT_ONNX: Sequence[tuple[int, bytes | tuple[bytes, ...], str]] = (
    (0, b"version https://git-lfs", "is a Git LFS pointer, not the model itself; run 'git lfs pull' first"),
    (0, b"PK\x03\x04", "is a zip archive, not an ONNX model; a PyTorch checkpoint has to be exported to ONNX first"),
    (0, b"\x1f\x8b", "is compressed with gzip; unpack it first"),
    (0, b"\x89HDF", "is an HDF5 file, not an ONNX model; a Keras model has to be exported to ONNX first"),
    (0, _PICKLES, "is a Python pickle, not an ONNX model; it has to be exported to ONNX first"),
    (0, (b"<!DOCTYPE", b"<html"), "is a web page, not an ONNX model; download it again"),
    (0, _TEXTS, "is text; write the model that it holds with onnx.save(onnx.load(...)) as .onnx"),
    (4, b"ORTM", "is in onnxruntime's own format; give the ONNX model it was made from"),
    (4, b"TFL3", "is a TensorFlow Lite model, not an ONNX model; convert it with tf2onnx first"),
)


def parse(data: bytes, path: str | os.PathLike[str]) -> Document:
    """Parse the content of a model file.

    Raises:
        UnreadableModelError: it is not an ONNX model; the message says what it seems to be.
    """
    name = os.fspath(path)
    if not data:
        raise UnreadableModelError(f"{name} is empty; export or download the model again")
    for start, signature, what in _NOT_ONNX:
        if data.startswith(signature, start):
            raise UnreadableModelError(f"{name} {what}")
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        if "MaxDepth" in str(error) or "recursion" in str(error):
            reason = "nests subgraphs deeper than protobuf reads"
        else:
            reason = "is not an ONNX model, or is damaged or cut short; export or download it again"
        raise UnreadableModelError(f"{name} {reason}") from None
    if not model.HasField("graph") or not (model.opset_import or model.graph.node or model.graph.output):
        raise UnreadableModelError(f"{name} is not an ONNX model: it holds no graph")
    return Document(model, data)
