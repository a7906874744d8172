"""External data: the files with a model's tensors, and whether they are safe to open."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath

from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.errors import RefusedError, UnreadableModelError
from reducelower.model.numbers import Array
from reducelower.text import one_line

_NARROW = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}
"""Bits of the element types narrower than a byte; numpy uses a whole byte for each element."""

_HOLDERS = frozenset(
    f"{name}Proto" for name in ("Graph", "TrainingInfo", "Function", "Node", "Attribute", "SparseTensor", "Tensor")
)
"""Messages that are tensors or may contain some."""
_WITHOUT_TENSORS = frozenset(
    getattr(AttributeProto, name) for name in ("FLOAT", "FLOATS", "INT", "INTS", "STRING", "STRINGS")
)

__all__ = [
    "DataFolder",
    "ExternalFile",
    "all_tensors",
    "bytes_of",
    "external_files",
    "external_tensors",
    "loaded",
    "read_tensor",
]


@dataclass(frozen=True)
class ExternalFile:
    """A file with tensor data; the location is relative to the model's folder, the size in bytes."""

    location: str
    path: Path
    size: int


@dataclass(frozen=True)
class DataFolder:
    """Where the external data of a model may be; every reader of external data uses this.

    Locations are relative to the folder `path`. With all links resolved, a file must be in one of the folders `roots`:
    that one, or the folder of the file to which the model's own link leads. So model and data may both be links, as in
    the cache of a model hub. onnxruntime has the same rule.
    """

    path: Path
    roots: frozenset[Path]

    @staticmethod
    def of(place: str | os.PathLike[str]) -> DataFolder:
        """The data folder for a model file, or for a folder if the model's file name is unknown."""
        if os.path.isfile(place):  # noqa: PTH113 (False for a name that is too long)
            return DataFolder.beside(place)
        return DataFolder(_absolute(place), frozenset({Path(os.path.realpath(place))}))

    @staticmethod
    def beside(path: str | os.PathLike[str]) -> DataFolder:
        """The data folder for a model file."""
        folder = _absolute(path).parent
        return DataFolder(folder, frozenset({Path(os.path.realpath(folder)), Path(os.path.realpath(path)).parent}))

    def find(
        self, tensor: TensorProto, source: str = "", known: MutableMapping[str, ExternalFile] | None = None
    ) -> ExternalFile:
        """Find the file with a tensor's data, without opening it; `known` has those found before, by location.

        `source` is the beginning of error messages.

        Raises:
            UnreadableModelError: its location is absolute, leaves the folder, is missing, not a regular file, or too
                small.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        prefix = _message_start(source, tensor, location)
        known = {} if known is None else known
        if location not in known:
            known[location] = _locate(location, self, prefix)
        file = known[location]
        _check_extent(entries, file.size, bytes_of(tensor), prefix)
        return file

    def read(self, tensor: TensorProto) -> bytes:
        """A tensor's data.

        Raises:
            UnreadableModelError: see `find`, or it cannot be read.
        """
        file = self.find(tensor)
        entries = {entry.key: entry.value for entry in tensor.external_data}
        start, length = int(entries.get("offset", 0)), int(entries.get("length", 0)) or bytes_of(tensor)
        try:
            with file.path.open("rb") as opened:
                opened.seek(start)
                return opened.read(length)
        except OSError as error:
            prefix = _message_start("", tensor, file.location)
            raise UnreadableModelError(prefix + f"which cannot be read: {error.strerror}") from None


def _absolute(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 (resolve() would follow links)


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor with external data, at any depth."""
    return (tensor for tensor in all_tensors(model) if tensor.data_location == TensorProto.EXTERNAL)


def external_files(
    model: ModelProto, path: Path, is_inline: Callable[[TensorProto], object] = lambda _: False
) -> tuple[ExternalFile, ...]:
    """Find the files with a model's tensors, without opening any; see `DataFolder`.

    `is_inline` recognizes tensors that refer to the model's own file.

    Raises:
        UnreadableModelError: a location is absolute, leaves the folder, is missing, not a regular file, or too small.
    """
    folder, files = DataFolder.beside(path), dict[str, ExternalFile]()
    for tensor in external_tensors(model):
        if not is_inline(tensor):
            folder.find(tensor, f"{path}: ", files)
    return tuple(files.values())


def _message_start(source: str, tensor: TensorProto, location: str) -> str:
    return f"{source}tensor {tensor.name!r} has its data in {location!r}, "


def _check_location(location: str, prefix: str) -> None:
    if not isinstance(location, str) or not location or "\0" in location:
        raise UnreadableModelError(prefix + "which is no file name")
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor:
        raise UnreadableModelError(prefix + "an absolute path; external data has to lie in the model's folder")
    if ".." in PurePosixPath(location).parts or ".." in PureWindowsPath(location).parts:
        raise UnreadableModelError(
            prefix + "a path with '..', which may lead outside the model's folder; name a file in that folder"
        )


def _locate(location: str, folder: DataFolder, prefix: str) -> ExternalFile:
    _check_location(location, prefix)
    path = folder.path / location
    try:
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(root) for root in folder.roots):
            raise UnreadableModelError(prefix + "a link that leads out of the model's folder")
        status = path.stat()
    except FileNotFoundError:
        raise UnreadableModelError(prefix + "and there is no such file; put it beside the model") from None
    except OSError as error:
        raise UnreadableModelError(prefix + f"which cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableModelError(prefix + "which is not a regular file")
    return ExternalFile(location, path, status.st_size)


def bytes_of(tensor: TensorProto) -> int:
    """The size of a tensor's data in bytes; 0 if unknown, as for an element type that onnx does not know."""
    if tensor.data_type == TensorProto.STRING or any(size < 0 for size in tensor.dims):
        return 0
    try:
        bits = _NARROW.get(TensorProto.DataType.Name(tensor.data_type)) or (
            8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        )
    except (KeyError, ValueError):
        return 0
    return (bits * prod(tensor.dims) + 7) // 8


def _check_extent(entries: dict[str, str], size: int, needed: int, prefix: str) -> None:
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", 0))
    except ValueError:
        raise UnreadableModelError(prefix + "at an offset or length that is not a number") from None
    if offset < 0 or length < 0:
        raise UnreadableModelError(prefix + "at a negative offset or length")
    if length and length < needed:
        raise UnreadableModelError(prefix + f"at a length of {length} bytes, and the tensor takes {needed}")
    if offset + max(length, needed) > size:
        raise UnreadableModelError(prefix + f"which ends before the tensor does ({size} bytes); it may be cut short")


def all_tensors(message: Message) -> Iterator[TensorProto]:
    """Every tensor inside a message, including those of sparse tensors."""
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.name not in _HOLDERS:
            continue
        for inner in [value] if isinstance(value, Message) else value:
            if isinstance(inner, TensorProto):
                yield inner
            elif isinstance(inner, NodeProto):  # nodes are most of a model, and few have tensors
                for attribute in inner.attribute:
                    if attribute.type == AttributeProto.TENSOR:
                        yield attribute.t
                    elif attribute.type not in _WITHOUT_TENSORS:
                        yield from all_tensors(attribute)
            else:
                yield from all_tensors(inner)


def loaded(tensor: TensorProto, folder: DataFolder) -> TensorProto:
    """A copy of a tensor with its external data in it.

    Raises:
        UnreadableModelError: it cannot be read.
    """
    made = TensorProto.FromString(tensor.SerializeToString())
    made.raw_data = folder.read(tensor)
    made.ClearField("external_data")
    made.ClearField("data_location")
    return made


def read_tensor(tensor: TensorProto, folder: DataFolder | None = None) -> Array:
    """The value of a tensor, whose data may be in a file.

    Raises:
        RefusedError: it cannot be read.
    """
    if folder is None and tensor.data_location == TensorProto.EXTERNAL:
        raise RefusedError(f"the tensor {tensor.name!r} has its data in another file", "store its values in the model")
    try:
        return numpy_helper.to_array(tensor if folder is None else loaded(tensor, folder))
    except UnreadableModelError as error:
        raise RefusedError(str(error)) from error
    except Exception as error:  # numpy and onnx raise several types
        reason = one_line(error)
        raise RefusedError(f"the tensor {tensor.name!r} cannot be read: {reason}", "correct the model") from error
