"""Keeps large weights beside their models, each once, however many copies of a model are made and loaded.

Verification loads a model several times, and copies it with other nodes. Its large initializers become arrays, and the
model refers to them by name as if they were in a file; those that are in a file are mapped, and read when used. Equal
arrays have the same name, so two models can be compared by these names.
"""

from __future__ import annotations

import mmap
from copy import deepcopy
from itertools import count
from math import prod
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower.files.external import DataFolder, bytes_of, external_tensors, loaded
from reducelower.model.numbers import value_of_tensor
from reducelower.model.skeleton import DEFAULTS_SINCE, skeleton
from reducelower.numerics.measure import Array

__all__ = ["held_by", "held_name", "in_files", "is_held", "value_of", "with_weights", "without_weights"]

_LARGE = 1 << 16  # bytes
_WIDEST = 16  # bytes of an element
_PIECES, _PIECE = 16, 256  # bytes of a value, enough to tell it from most others, in few pages of its file
_PREFIX = "held in memory/"

_arrays: WeakValueDictionary[str, Array] = WeakValueDictionary()
"""Arrays by name. A model that refers to an array is of no use once nobody keeps that array."""

_places: dict[str, tuple[Path, object, int]] = {}
"""The file of some of them, its state, and the position in it, by name."""


def without_weights(model: ModelProto, folder: DataFolder | None = None) -> tuple[ModelProto, list[Array]]:
    """A copy of a model without its large weights, and these, which the caller keeps as long as it uses the copy.

    Other external data is read into the copy; without a folder, it stays where it is. Defaults that a caller may
    override stay in the model. A model without large weights and external data in a folder is returned itself.

    Raises:
        UnreadableModelError: a file of external data is missing, or not where it may lie.
        OSError: it cannot be read.
    """
    defaults = {value.name for value in model.graph.input} if model.ir_version >= DEFAULTS_SINCE else set()
    large = [
        (folder is not None or tensor.data_location != TensorProto.EXTERNAL)
        and _is_large(tensor)
        and tensor.name not in defaults
        for tensor in model.graph.initializer
    ]
    for name in _places.keys() - _arrays.keys():
        del _places[name]
    arrays: list[Array] = []
    if not any(large) and folder is None:
        return model, arrays
    copy = skeleton(model)
    del copy.graph.initializer[:]
    for tensor, is_large in zip(model.graph.initializer, large, strict=True):
        if not is_large:
            copy.graph.initializer.append(tensor)
            continue
        name, array = _named(_array_of(tensor, folder))
        arrays.append(array)
        if tensor.data_location == TensorProto.EXTERNAL and folder is not None:
            path = folder.find(tensor).path
            _places[name] = path, _state(path), _entry(tensor, "offset")
        placed = copy.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        placed.doc_string = tensor.doc_string
        placed.metadata_props.extend(tensor.metadata_props)
        placed.data_location = TensorProto.EXTERNAL
        placed.external_data.add(key="location", value=name)
    if folder is not None:
        for tensor in external_tensors(copy):
            if not is_held(tensor):
                tensor.CopyFrom(loaded(tensor, folder))
    return copy, arrays


def _is_large(tensor: TensorProto) -> bool:
    if _WIDEST * prod(tensor.dims) < _LARGE or bytes_of(tensor) < _LARGE or is_held(tensor):
        return False
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return dtype.kind in "biuf" and dtype.isbuiltin == 1  # numpy's own, which onnxruntime takes


def _array_of(tensor: TensorProto, folder: DataFolder | None) -> Array:
    """The values of a tensor, without a copy if they are stored as bytes."""
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if tensor.data_location == TensorProto.EXTERNAL:
        array = np.frombuffer(mapped(tensor, folder)[: bytes_of(tensor)], dtype)
        # Kernels expect aligned numbers.
        return (array if array.flags.aligned else array.copy()).reshape(tensor.dims)
    data = tensor.raw_data if tensor.HasField("raw_data") else numpy_helper.to_array(tensor).tobytes()
    return np.frombuffer(data, dtype).reshape(tensor.dims)


_maps: WeakValueDictionary[object, mmap.mmap] = WeakValueDictionary()
"""Mapped files, as long as an array uses them; both models of a comparison may use the same file."""


def mapped(tensor: TensorProto, folder: DataFolder | None) -> memoryview:
    """The bytes of external data, read from the file on use."""
    assert folder is not None
    path = folder.find(tensor).path
    with path.open("rb") as file:
        if not path.stat().st_size:
            return memoryview(b"")
        key = _state(path)
        memory = _maps.get(key)
        if memory is None:
            memory = _maps[key] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start, length = _entry(tensor, "offset"), _entry(tensor, "length") or bytes_of(tensor)
    return memoryview(memory)[start : start + length if length else None]


def _state(path: Path) -> object:
    """Another one once something else is in the file."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _entry(tensor: TensorProto, key: str) -> int:
    """A number in what a tensor says of its external data; 0 if it says nothing."""
    return next((int(item.value) for item in tensor.external_data if item.key == key), 0)


def _named(array: Array) -> tuple[str, Array]:
    """The name of a value, and the array that is kept for it."""
    data = array.reshape(-1).view(np.uint8)
    step = max(data.size // _PIECES, 1)
    digest = hash(b"".join(data[at : at + _PIECE].tobytes() for at in range(0, data.size, step)))
    for number in count():  # different values may have the same hash
        name = f"{_PREFIX}{array.dtype}{list(array.shape)}/{digest:x}/{number}"
        kept = _arrays.setdefault(name, array)
        if kept.ctypes.data == array.ctypes.data or np.array_equal(kept.reshape(-1).view(np.uint8), data):
            return name, kept
    raise AssertionError


def is_held(tensor: TensorProto) -> bool:
    """Whether a tensor refers to an array instead of holding values."""
    return tensor.data_location == TensorProto.EXTERNAL and _location(tensor).startswith(_PREFIX)


def _location(tensor: TensorProto) -> str:
    return tensor.external_data[0].value if tensor.external_data else ""


def held_array(tensor: TensorProto) -> Array:
    """The array that a tensor refers to."""
    return _arrays[_location(tensor)]


def value_of(tensor: TensorProto) -> Array | None:
    """The value of a tensor; None if it is in another file or damaged."""
    return held_array(tensor) if is_held(tensor) else value_of_tensor(tensor)


def held_name(tensor: TensorProto) -> str:
    """The name of a large tensor's value, even if the tensor holds it; empty for small tensors."""
    if is_held(tensor):
        return _location(tensor)
    has_values = tensor.data_location != TensorProto.EXTERNAL and _arrays and _is_large(tensor)
    return _named(_array_of(tensor, None))[0] if has_values else ""


def held_by(model: ModelProto) -> dict[str, Array]:
    """The arrays that a model refers to, by name of the initializer."""
    return {tensor.name: held_array(tensor) for tensor in model.graph.initializer if is_held(tensor)}


def in_files(model: ModelProto) -> tuple[ModelProto, Path | None]:
    """The model with references to a file in place of arrays that are mapped from one, and the folder of these files.

    onnxruntime copies arrays that it is given, and maps files. None if no array is from a file.
    """
    places = {
        _location(tensor): _places.get(_location(tensor)) for tensor in model.graph.initializer if is_held(tensor)
    }
    kept = {name: (place[0], place[2]) for name, place in places.items() if place and _is_there(*place[:2])}
    if not kept:
        return model, None
    folder = next(iter(kept.values()))[0].parent
    copy = deepcopy(model)
    for tensor in copy.graph.initializer:
        path, offset = kept.get(_location(tensor), (folder, 0))
        if is_held(tensor) and path.parent == folder:
            del tensor.external_data[:]
            for key, value in (("location", path.name), ("offset", offset), ("length", bytes_of(tensor))):
                tensor.external_data.add(key=key, value=str(value))
    return copy, folder


def _is_there(path: Path, state: object) -> bool:
    return path.exists() and _state(path) == state


def with_weights(model: ModelProto) -> ModelProto:
    """The model with values in place of references to arrays; itself if it has none."""
    if not any(map(is_held, model.graph.initializer)):
        return model
    complete = deepcopy(model)
    for tensor in complete.graph.initializer:
        if is_held(tensor):
            tensor.CopyFrom(numpy_helper.from_array(held_array(tensor), tensor.name))
    return complete
