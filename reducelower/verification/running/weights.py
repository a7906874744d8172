"""Weights beside their models: each is held once, however many copies of a model are made and loaded.

A model that is verified is loaded several times, and copied with other nodes. Its large initializers are taken out of
it as arrays, and name these from then on as if they lay in a file; what does lie in a file is mapped, and read when it
is used. Arrays that are equal have one name, so that the name stands for the value wherever two models are compared.
"""

from __future__ import annotations

import math
import mmap
from copy import deepcopy
from itertools import count
from weakref import WeakValueDictionary

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower.files.external import DataFolder, bytes_of, external_tensors
from reducelower.model.skeleton import DEFAULTS_SINCE, skeleton
from reducelower.numerics.measure import Array

__all__ = ["apart", "held_array", "held_by", "held_name", "is_held", "mapped", "restored"]

_LARGE = 1 << 16  # bytes
_LOOKED_AT = 4096  # bytes of a value that tell it from most others
_PLACE = "held in memory/"
_TYPES = frozenset(
    {
        TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8,
        TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16,
        TensorProto.UINT32, TensorProto.UINT64,
    }
)  # fmt: skip

_arrays: WeakValueDictionary[str, Array] = WeakValueDictionary()
"""By name. Equal values have one name; a model that names an array is of no use once nobody holds that."""


def apart(
    model: ModelProto, folder: DataFolder | None = None, *, has_external: bool = True
) -> tuple[ModelProto, list[Array]]:
    """A copy of a model without its large weights, and these, to be held by the caller as long as the copy is used.

    Of external data, what is not taken out is read into the copy. Defaults that a caller may
    override stay in the model; metadata is no part of the copy. A model with none of these is returned itself, without
    a look at its tensors where it is known that it has no external data.

    Raises:
        UnreadableModelError: a file of external data is missing, or not where it may lie.
        OSError: it cannot be read.
    """
    defaults = {value.name for value in model.graph.input} if model.ir_version >= DEFAULTS_SINCE else set()
    large = [_is_large(tensor) and tensor.name not in defaults for tensor in model.graph.initializer]
    arrays: list[Array] = []
    if not any(large) and not (has_external and any(True for _ in external_tensors(model))):
        return model, arrays
    copy = skeleton(model)
    del copy.graph.initializer[:]
    for tensor, is_large in zip(model.graph.initializer, large, strict=True):
        if not is_large:
            copy.graph.initializer.append(tensor)
            continue
        name, array = _named(_array_of(tensor, folder))
        arrays.append(array)
        placed = copy.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        placed.data_location = TensorProto.EXTERNAL
        placed.external_data.add(key="location", value=name)
    for tensor in external_tensors(copy):
        if not is_held(tensor):
            tensor.raw_data = bytes(mapped(tensor, folder))
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    return copy, arrays


def _is_large(tensor: TensorProto) -> bool:
    if tensor.data_type not in _TYPES or is_held(tensor):
        return False
    width = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return math.prod(tensor.dims) * width >= _LARGE


def _array_of(tensor: TensorProto, folder: DataFolder | None) -> Array:
    """The values of a tensor, without a copy where they are bytes in the right order."""
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if tensor.data_location == TensorProto.EXTERNAL:
        array = np.frombuffer(mapped(tensor, folder)[: bytes_of(tensor)], dtype)
        # Kernels expect numbers where such numbers may lie.
        return (array if array.flags.aligned else array.copy()).reshape(tensor.dims)
    data = tensor.raw_data if tensor.HasField("raw_data") else numpy_helper.to_array(tensor).tobytes()
    return np.frombuffer(data, dtype).reshape(tensor.dims)


_maps: WeakValueDictionary[object, mmap.mmap] = WeakValueDictionary()
"""Files as memory, as long as an array lies in them; both models of a comparison may lie in one."""


def mapped(tensor: TensorProto, folder: DataFolder | None) -> memoryview:
    """The bytes of external data, which are read when they are looked at."""
    assert folder is not None
    path = folder.find(tensor).path
    entries = {item.key: item.value for item in tensor.external_data}
    with path.open("rb") as file:
        status = path.stat()
        key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        if not status.st_size:
            return memoryview(b"")
        memory = _maps.get(key)
        if memory is None:
            memory = _maps[key] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = int(entries.get("offset", 0))
    length = int(entries.get("length", 0)) or bytes_of(tensor)
    return memoryview(memory)[start : start + length if length else None]


def _named(array: Array) -> tuple[str, Array]:
    """The name of a value, and the array that is held for it."""
    data = array.reshape(-1).view(np.uint8)
    some = hash(data[:: max(data.size // _LOOKED_AT, 1)].tobytes())
    for number in count():  # of different values that are alike where they were looked at
        name = f"{_PLACE}{array.dtype}{list(array.shape)}/{some:x}/{number}"
        known = _arrays.setdefault(name, array)
        if known.ctypes.data == array.ctypes.data or np.array_equal(known.reshape(-1).view(np.uint8), data):
            return name, known
    raise AssertionError


def is_held(tensor: TensorProto) -> bool:
    """Whether a tensor names an array instead of having values."""
    return tensor.data_location == TensorProto.EXTERNAL and _place(tensor).startswith(_PLACE)


def _place(tensor: TensorProto) -> str:
    return tensor.external_data[0].value if tensor.external_data else ""


def held_array(tensor: TensorProto) -> Array:
    """The array that a tensor names."""
    return _arrays[_place(tensor)]


def held_name(tensor: TensorProto) -> str:
    """The name that a tensor has for its value, or would have if it is large; empty where it is not."""
    if is_held(tensor):
        return _place(tensor)
    is_here = tensor.data_location != TensorProto.EXTERNAL and _arrays and _is_large(tensor)
    return _named(_array_of(tensor, None))[0] if is_here else ""


def held_by(model: ModelProto) -> dict[str, Array]:
    """The arrays that a model names, by name of the initializer."""
    return {tensor.name: held_array(tensor) for tensor in model.graph.initializer if is_held(tensor)}


def restored(model: ModelProto) -> ModelProto:
    """The model with the arrays that it names as values again; itself where it names none."""
    if not any(map(is_held, model.graph.initializer)):
        return model
    whole = deepcopy(model)
    for tensor in whole.graph.initializer:
        if is_held(tensor):
            tensor.CopyFrom(numpy_helper.from_array(held_array(tensor), tensor.name))
    return whole
