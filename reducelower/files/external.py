"""External data: the files that hold a model's tensors, and whether they are safe to open."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath

from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

from reducelower.errors import UnreadableModelError

_NARROW = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}
"""Bits of the element types that are narrower than a byte, which numpy holds in one each."""

_HOLDERS = frozenset(
    f"{name}Proto" for name in ("Graph", "TrainingInfo", "Function", "Node", "Attribute", "SparseTensor", "Tensor")
)
"""Messages that are tensors or lead to some."""
_OF_NUMBERS_AND_TEXTS = frozenset(
    getattr(AttributeProto, name) for name in ("FLOAT", "FLOATS", "INT", "INTS", "STRING", "STRINGS")
)

__all__ = [
    "DataFolder",
    "ExternalFile",
    "all_tensors",
    "bytes_of",
    "external_files",
    "external_tensors",
    "locations",
]


@dataclass(frozen=True)
class ExternalFile:
    """A file with tensor data; the location is relative to the model's folder, the size in bytes."""

    location: str
    path: Path
    size: int


@dataclass(frozen=True)
class DataFolder:
    """Where the external data of a model may lie; everything that reads it asks here.

    Locations are relative to the folder of the model's path. With all links resolved, a file has to lie in that
    folder, or in the folder of the file to which the model's own link leads. So the data may be a link beside the
    model's, as in the cache of a model hub. onnxruntime has the same rule.

    Attributes:
        path: the folder that locations are relative to.
        roots: the folders that files have to lie in.
    """

    path: Path
    roots: frozenset[Path]

    @staticmethod
    def of(place: str | os.PathLike[str]) -> DataFolder:
        """That of a model's file, or of a model that lies in a folder under a name that is not known."""
        if os.path.isfile(place):  # noqa: PTH113 (a name that is too long for the system is none)
            return DataFolder.beside(place)
        return DataFolder(_absolute(place), frozenset({Path(os.path.realpath(place))}))

    @staticmethod
    def beside(path: str | os.PathLike[str]) -> DataFolder:
        """That of a model's file."""
        folder = _absolute(path).parent
        return DataFolder(folder, frozenset({Path(os.path.realpath(folder)), Path(os.path.realpath(path)).parent}))

    def find(
        self, tensor: TensorProto, source: str = "", known: MutableMapping[str, ExternalFile] | None = None
    ) -> ExternalFile:
        """The file with a tensor's data, which is not opened.

        Args:
            tensor: a tensor with external data.
            source: put before what is wrong.
            known: files that were found already, by location, to which this one is added.

        Raises:
            UnreadableModelError: its location is absolute, leaves the folder, is missing, not a regular file, or too
                small.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        what = _says(source, tensor, location)
        known = {} if known is None else known
        if location not in known:
            known[location] = _locate(location, self, what)
        found = known[location]
        _check_extent(entries, found.size, bytes_of(tensor), what)
        return found

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
            what = _says("", tensor, file.location)
            raise UnreadableModelError(what + f"which cannot be read: {error.strerror}") from None


def _absolute(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 (resolve() would follow links)


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor with external data, at any depth."""
    return (tensor for tensor in all_tensors(model) if tensor.data_location == TensorProto.EXTERNAL)


def external_files(
    model: ModelProto, path: Path, is_inline: Callable[[TensorProto], bool] = lambda _: False
) -> tuple[ExternalFile, ...]:
    """Find the files with a model's tensors, without opening any; see `DataFolder`.

    `is_inline` recognizes tensors that refer to the model's own file.

    Raises:
        UnreadableModelError: a location is absolute, leaves the folder, is missing, not a regular file, or too small.
    """
    folder, found = DataFolder.beside(path), dict[str, ExternalFile]()
    for tensor in external_tensors(model):
        if not is_inline(tensor):
            folder.find(tensor, f"{path}: ", found)
    return tuple(found.values())


def locations(model: ModelProto, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The locations of a model's external data, relative to its folder; the files need not exist.

    Raises:
        UnreadableModelError: a location is absolute or leaves the folder.
    """
    found: dict[str, None] = {}
    for tensor in external_tensors(model):
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        _check_location(location, _says(f"{os.fspath(path)}: ", tensor, location))
        found[location] = None
    return tuple(found)


def _says(source: str, tensor: TensorProto, location: str) -> str:
    return f"{source}tensor {tensor.name!r} has its data in {location!r}, "


def _check_location(location: str, what: str) -> None:
    if not isinstance(location, str) or not location or "\0" in location:
        raise UnreadableModelError(what + "which is no file name")
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor:
        raise UnreadableModelError(what + "an absolute path; external data has to lie in the model's folder")
    if ".." in PurePosixPath(location).parts or ".." in PureWindowsPath(location).parts:
        raise UnreadableModelError(
            what + "a path with '..', which may lead outside the model's folder; name a file in that folder"
        )


def _locate(location: str, folder: DataFolder, what: str) -> ExternalFile:
    _check_location(location, what)
    path = folder.path / location
    try:
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(root) for root in folder.roots):
            raise UnreadableModelError(what + "a link that leads out of the model's folder")
        status = path.stat()
    except FileNotFoundError:
        raise UnreadableModelError(what + "and there is no such file; put it beside the model") from None
    except OSError as error:
        raise UnreadableModelError(what + f"which cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableModelError(what + "which is not a regular file")
    return ExternalFile(location, path, status.st_size)


def bytes_of(tensor: TensorProto) -> int:
    """How many bytes a tensor's data takes; 0 if that is not known, for an element type that onnx does not know."""
    if tensor.data_type == TensorProto.STRING or any(size < 0 for size in tensor.dims):
        return 0
    try:
        bits = _NARROW.get(TensorProto.DataType.Name(tensor.data_type)) or (
            8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        )
    except (KeyError, ValueError):
        return 0
    return (bits * prod(tensor.dims) + 7) // 8


def _check_extent(entries: dict[str, str], size: int, needed: int, what: str) -> None:
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", 0))
    except ValueError:
        raise UnreadableModelError(what + "at an offset or length that is not a number") from None
    if offset < 0 or length < 0:
        raise UnreadableModelError(what + "at a negative offset or length")
    if length and length < needed:
        raise UnreadableModelError(what + f"at a length of {length} bytes, and the tensor takes {needed}")
    if offset + max(length, needed) > size:
        raise UnreadableModelError(what + f"which ends before the tensor does ({size} bytes); it may be cut short")


def all_tensors(message: Message) -> Iterator[TensorProto]:
    """Every tensor inside a message, those of sparse tensors too."""
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.name not in _HOLDERS:
            continue
        for inner in [value] if isinstance(value, Message) else value:
            if isinstance(inner, TensorProto):
                yield inner
            elif isinstance(inner, NodeProto):  # most of a model, and few of them have any
                for attribute in inner.attribute:
                    if attribute.type == AttributeProto.TENSOR:
                        yield attribute.t
                    elif attribute.type not in _OF_NUMBERS_AND_TEXTS:
                        yield from all_tensors(attribute)
            else:
                yield from all_tensors(inner)
