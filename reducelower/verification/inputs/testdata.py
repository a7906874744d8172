"""Reads inputs from files: .npy arrays, tensor files, and folders in the layout of ONNX's test data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper

from reducelower.errors import UnreadableModelError
from reducelower.numerics.measure import Array
from reducelower.verification.running.source import Source

__all__ = ["TestDataSet", "load_array", "load_arrays", "load_test_data"]


@dataclass(frozen=True)
class TestDataSet:
    """One ``test_data_set_N`` folder.

    Attributes:
        name: name of the folder.
        inputs: by name of the graph input.
        outputs: expected values in the order of the graph outputs; empty when the folder has none.
    """

    __test__ = False  # the name is ONNX's; pytest should not collect it

    name: str
    inputs: dict[str, Any]
    outputs: tuple[Any, ...]


def load_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Every array of a ``.npz`` file, by name.

    Raises:
        UnreadableModelError: the file is missing or no such file.
    """
    file = Path(path)
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name]) for name in arrays.files}
    except Exception as error:  # numpy and the file system each raise their own kinds
        raise UnreadableModelError(f"{file}: cannot be read as arrays: {error}") from error


def load_array(path: str | os.PathLike[str], name: str = "") -> Array:
    """One array from a ``.npy`` file, a ``.npz`` file or a serialized tensor (``.pb``).

    Args:
        path: the file.
        name: of a ``.npz`` file, the array that is meant; its only one where it has none of that name.

    Raises:
        UnreadableModelError: the file is missing or none of these, or holds several arrays and none of that name.
    """
    file = Path(path)
    if file.suffix == ".npz":
        arrays = load_arrays(file)
        if name not in arrays and len(arrays) != 1:
            raise UnreadableModelError(f"{file}: holds no array {name!r}, but {', '.join(map(repr, arrays)) or 'none'}")
        return arrays[name] if name in arrays else next(iter(arrays.values()))
    try:
        if file.suffix == ".npy":
            return np.asarray(np.load(file, allow_pickle=False))
        return numpy_helper.to_array(TensorProto.FromString(file.read_bytes()))
    except Exception as error:  # numpy, protobuf and the file system each raise their own kinds
        raise UnreadableModelError(f"{file}: cannot be read as an array: {error}") from error


def load_test_data(
    folder: str | os.PathLike[str], model: ModelProto | str | os.PathLike[str]
) -> tuple[TestDataSet, ...]:
    """Every data set in a folder of ONNX's test-data layout.

    The layout is that of onnx/backend/test/data: ``test_data_set_0/input_0.pb``, ..., ``output_0.pb``; the number is
    the position among the graph's inputs without a default, or among its outputs. The last outputs may be missing.

    Args:
        folder: the folder that holds ``test_data_set_*``, or one of these itself.
        model: the model, for the names and types of its inputs and outputs.

    Raises:
        UnreadableModelError: there is no data set, a file is not readable, there are more files than inputs or outputs,
            or the numbers of the outputs have a gap.
    """
    root = Path(folder)
    proto = Source.of(model).proto
    # Fully numeric sorting, because test_data_set_10 comes after test_data_set_9.
    sets = [root] if (root / "input_0.pb").exists() else sorted(root.glob("test_data_set_*"), key=_number)
    if not sets:
        raise UnreadableModelError(f"{root}: holds no test_data_set_0 folder and no input_0.pb")
    defaults = {tensor.name for tensor in proto.graph.initializer}
    inputs = [value for value in proto.graph.input if value.name not in defaults]
    if any(_files(item, "input", len(proto.graph.input))[len(inputs) :] for item in sets):
        inputs = list(proto.graph.input)  # the folder gives values for defaults too
    return tuple(
        TestDataSet(
            item.name,
            {value.name: _read(file, value.type) for value, file in _paired(item, "input", inputs)},
            tuple(_read(file, value.type) for value, file in _expected(item, list(proto.graph.output))),
        )
        for item in sets
    )


def _number(path: Path) -> tuple[int, str]:
    digits = path.stem.rpartition("_")[2]
    return (int(digits) if digits.isdigit() else -1, path.name)


def _files(folder: Path, kind: str, limit: int) -> list[Path]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=_number)
    if len(files) > limit:
        raise UnreadableModelError(f"{folder}: has {len(files)} {kind} files, the model has {limit} {kind}s")
    return files


def _expected(folder: Path, outputs: list[onnx.ValueInfoProto]) -> list[tuple[onnx.ValueInfoProto, Path]]:
    """The outputs that there are files for: the first ones, since their values are told apart by position alone."""
    files = [file for file in _files(folder, "output", len(outputs)) if _number(file)[0] >= 0]
    numbers = [_number(file)[0] for file in files]
    missing = next((at for at in range(len(files)) if at not in numbers), None)
    if missing is not None:
        raise UnreadableModelError(
            f"{folder}: has {files[-1].name} but no output_{missing}.pb; only the last may be missing"
        )
    return _paired(folder, "output", outputs)


def _paired(folder: Path, kind: str, values: list[onnx.ValueInfoProto]) -> list[tuple[onnx.ValueInfoProto, Path]]:
    files = _files(folder, kind, len(values))
    return [(values[_number(file)[0]], file) for file in files if 0 <= _number(file)[0] < len(values)]


def _read(file: Path, kind: onnx.TypeProto) -> Any:
    readers: dict[str | None, Any] = {
        "sequence_type": lambda data: numpy_helper.to_list(onnx.SequenceProto.FromString(data)),
        "optional_type": lambda data: numpy_helper.to_optional(onnx.OptionalProto.FromString(data)),
    }
    reader = readers.get(kind.WhichOneof("value"))
    if reader is None:
        return load_array(file)
    try:
        return reader(file.read_bytes())
    except Exception as error:  # as in load_array
        raise UnreadableModelError(f"{file}: cannot be read: {error}") from error
