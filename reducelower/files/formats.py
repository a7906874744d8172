"""The file formats of a model, chosen by extension as in `onnx.load`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from google.protobuf.message import DecodeError
from onnx import ModelProto
from onnx.serialization import registry

from reducelower.errors import UnreadableModelError
from reducelower.model.document import Document
from reducelower.model.text import one_line

__all__ = [
    "LARGEST_MESSAGE",
    "WRITTEN",
    "check_writable",
    "format_of",
    "is_binary",
    "is_known_extension",
    "parse",
    "refuse_size",
    "serialize",
]

LARGEST_MESSAGE = 2**31 - 1
"""Size in bytes of the largest protobuf message, so of the largest model without external data."""

WRITTEN = (".onnx", ".pb", ".textproto", ".prototxt", ".pbtxt", ".txtpb", ".json", ".onnxjson")
"""Extensions of the formats that models are written in."""

_BINARY = "protobuf"
_READ_ONLY = "onnxtxt"
_COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zst", ".zip"})
_PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))

_NOT_ONNX: Sequence[tuple[int, bytes | tuple[bytes, ...], str]] = (
    (0, b"version https://git-lfs", "is a Git LFS pointer, not the model itself; run 'git lfs pull' first"),
    (0, b"PK\x03\x04", "is a zip archive, not an ONNX model; a PyTorch checkpoint has to be exported to ONNX first"),
    (0, b"\x1f\x8b", "is compressed with gzip; unpack it first"),
    (0, b"\x89HDF", "is an HDF5 file, not an ONNX model; a Keras model has to be exported to ONNX first"),
    (0, _PICKLES, "is a Python pickle, not an ONNX model; it has to be exported to ONNX first"),
    (0, (b"<!DOCTYPE", b"<html"), "is a web page, not an ONNX model; download it again"),
    (4, b"ORTM", "is in onnxruntime's own format; give the ONNX model it was made from"),
    (4, b"TFL3", "is a TensorFlow Lite model, not an ONNX model; convert it with tf2onnx first"),
)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format for a file's extension; unknown extensions mean binary protobuf."""
    return registry.get_format_from_file_extension(Path(path).suffix) or _BINARY


def is_known_extension(path: str | os.PathLike[str]) -> bool:
    """Whether a file's extension means a format, or something that `check_writable` refuses with a reason."""
    suffix = Path(path).suffix
    return suffix.lower() in (".onnx", *_COMPRESSED) or registry.get_format_from_file_extension(suffix) is not None


def is_binary(path: str | os.PathLike[str]) -> bool:
    """Whether a file's extension means protobuf's binary format."""
    return format_of(path) == _BINARY


def parse(data: bytes, path: str | os.PathLike[str]) -> Document:
    """Parse the content of a model file.

    Raises:
        UnreadableModelError: it is not an ONNX model; the message says what it looks like instead.
    """
    name = os.fspath(path)
    if not data:
        raise UnreadableModelError(f"{name} is empty; export or download the model again")
    for start, signature, what in _NOT_ONNX:
        if data.startswith(signature, start):
            raise UnreadableModelError(f"{name} {what}")
    form = format_of(path)
    model = _parse_binary(data, name) if form == _BINARY else _parse_text(data, name, form)
    if not model.HasField("graph") or not (model.opset_import or model.graph.node or model.graph.output):
        raise UnreadableModelError(f"{name} is not an ONNX model: it holds no graph")
    return Document(model, data if form == _BINARY else None)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse formats that cannot hold every model, and those in which nothing reads models.

    Raises:
        UnreadableModelError: the extension means such a format.
    """
    if Path(path).suffix.lower() in _COMPRESSED:
        raise UnreadableModelError(
            f"cannot write {os.fspath(path)}: models are not read compressed; write .onnx, and compress that"
        )
    if format_of(path) == _READ_ONLY:
        raise UnreadableModelError(
            f"cannot write {os.fspath(path)}: ONNX's text syntax loses part of a model; write .onnx or .textproto"
        )


def serialize(document: Document, path: str | os.PathLike[str]) -> bytes:
    """Serialize a model in the format for a file's extension.

    Raises:
        UnreadableModelError: the model exceeds protobuf's limit, or the format cannot hold it.
    """
    check_writable(path)
    try:
        if is_binary(path):
            return document.data
        return bytes(registry.get(format_of(path)).serialize_proto(document.message))
    except Exception:  # protobuf's EncodeError is no public name in every version
        if document.message.ByteSize() <= LARGEST_MESSAGE:
            raise
        refuse_size(path)


def refuse_size(path: str | os.PathLike[str]) -> NoReturn:
    """Refuse to write a model that nothing could read."""
    raise UnreadableModelError(
        f"cannot write {os.fspath(path)}: the model would be over 2 GiB, protobuf's limit; "
        "store its weights as external data first"
    ) from None


def _parse_binary(data: bytes, name: str) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        if "MaxDepth" in str(error) or "recursion" in str(error):
            reason = "nests subgraphs deeper than protobuf reads"
        else:
            reason = "is not an ONNX model, or is damaged or cut short; export or download it again"
        raise UnreadableModelError(f"{name} {reason}") from None
    return model


def _parse_text(data: bytes, name: str, form: str) -> ModelProto:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return registry.get(form).deserialize_proto(data, ModelProto())
    except RecursionError:
        raise UnreadableModelError(f"{name} nests subgraphs deeper than can be read") from None
    except Exception as error:  # four parsers, each with exceptions of its own
        reason = one_line(error).partition(" Available Fields")[0][:200]  # JSON's lists every field there is
        raise UnreadableModelError(f"{name} is not an ONNX model in {form} format: {reason}") from None
