"""Reads inputs that the user gives, such as folders of test data, and checks them against what a model declares."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from reducelower.errors import SettingError, UnreadableModelError
from reducelower.model.schemas import element_type_name
from reducelower.model.value_info import StatedType, stated_type
from reducelower.numerics.measure import Array, element_type_of
from reducelower.text import counted, did_you_mean, shape_text
from reducelower.verification.inputs.declared import free_sizes, may_have

__all__ = [
    "TestDataSet",
    "check_given",
    "load_arrays",
    "load_test_data",
    "load_value",
]


def check_given(model: ModelProto, inputs: Mapping[str, Any], dims: Mapping[str, int]) -> None:
    """Raise a SettingError if values do not fit their inputs.

    Args:
        model: the model.
        inputs: values by input name.
        dims: sizes of symbolic dimensions, by symbol.

    Raises:
        SettingError: the model has no input or symbolic dimension of a name, or a value has another element type or
            shape than its input declares.
    """
    declared = {value.name: value.type for value in model.graph.input}
    sizes = free_sizes(model) if dims else []
    for kind, given, known in (("input", inputs, list(declared)), ("symbolic dimension", dims, sizes)):
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known) or f"; the model has {', '.join(map(repr, known)) or 'none'}"
                raise SettingError(f"there is no {kind} {name!r}{hint}")
    for name, value in inputs.items():
        if declared[name].HasField("tensor_type") and isinstance(value, np.ndarray):
            _check(name, value, stated_type(declared[name]), dims)


def _check(name: str, value: Array, stated: StatedType, chosen_sizes: Mapping[str, int]) -> None:
    expected, actual = element_type_name(stated.element_type), element_type_of(value)
    if stated.element_type and expected != actual:
        raise SettingError(f"input {name!r} takes {expected}, and {actual} was given; convert the array")
    declared = stated.sizes
    if declared is None:
        return
    mismatch = (
        f"input {name!r} has shape {shape_text(declared)}, and an array of shape {shape_text(value.shape)} was given"
    )
    if not may_have(declared, value.shape):
        raise SettingError(mismatch)
    for dim, size in zip(declared, value.shape, strict=True):
        if isinstance(dim, str) and chosen_sizes.get(dim, size) != size:
            raise SettingError(f"{mismatch}, but {dim} is {chosen_sizes[dim]} by --dim")


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
        UnreadableModelError: the file is missing, or is not a ``.npz`` file.
    """
    with _reading(path, "arrays"), np.load(path, allow_pickle=False) as arrays:
        return {name: np.asarray(arrays[name]) for name in arrays.files}


@contextmanager
def _reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever numpy, zipfile and protobuf raise into an UnreadableModelError."""
    try:
        yield
    except OSError as error:
        raise UnreadableModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:
        raise UnreadableModelError(f"{path}: cannot be read as {kind}: {error}") from error


def load_test_data(folder: str | os.PathLike[str], model: ModelProto) -> tuple[TestDataSet, ...]:
    """Every data set in a folder of ONNX's test-data layout.

    The layout is that of onnx/backend/test/data: ``test_data_set_0/input_0.pb``, ..., ``output_0.pb``; the number is
    the position among the graph's inputs without a default, or among its outputs. Outputs at the end may be missing.

    Args:
        folder: the folder that holds ``test_data_set_*``, or one of these.
        model: the model, for the names and types of its inputs and outputs.

    Raises:
        UnreadableModelError: there is no data set, a file is not readable, there are more files than inputs or outputs,
            or their numbers have a gap.
    """
    root, graph = Path(folder), model.graph
    # Fully numeric sorting, because test_data_set_10 comes after test_data_set_9.
    sets = [root] if (root / "input_0.pb").exists() else sorted(root.glob("test_data_set_*"), key=_number)
    if not sets:
        raise UnreadableModelError(f"{root}: holds no test_data_set_0 folder and no input_0.pb")
    defaults = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in defaults]
    if any(len(list(item.glob("input_*.pb"))) > len(inputs) for item in sets):
        inputs = list(graph.input)  # the folder gives values for defaults too
    return tuple(
        TestDataSet(
            item.name, dict(_values(item, "input", inputs)), tuple(dict(_values(item, "output", graph.output)).values())
        )
        for item in sets
    )


def _number(path: Path) -> tuple[int, str]:
    digits = path.stem.rpartition("_")[2]
    return (int(digits) if digits.isdigit() else -1, path.name)


def _values(folder: Path, kind: str, declared: Sequence[ValueInfoProto]) -> Iterator[tuple[str, Any]]:
    """The values of the first inputs or outputs by name: a file belongs to one by its number only."""
    files = sorted(folder.glob(f"{kind}_*.pb"), key=_number)
    if [file.name for file in files] != [f"{kind}_{at}.pb" for at in range(min(len(files), len(declared)))]:
        found = ", ".join(file.name for file in files)
        raise UnreadableModelError(
            f"{folder}: holds {found}; those of the model's {counted(len(declared), kind)} are numbered from 0 "
            "without a gap"
        )
    yield from ((value.name, load_value(file, value.type)) for value, file in zip(declared, files, strict=False))


# By kind of type: the message, what makes a value of it, and what that is.
_READ: Mapping[str | None, tuple[Any, Callable[[Any], Any], str]] = {
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list, "a sequence"),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional, "an optional value"),
}


def load_value(path: str | os.PathLike[str], kind: TypeProto | None = None, name: str = "") -> Any:
    """One value from a file: an array (``.npy``, ``.npz``), or a serialized tensor, sequence or optional (``.pb``).

    Args:
        path: the file.
        kind: the type of the value; a tensor if it is None.
        name: the array to read from a ``.npz`` file; if it has only one array, that one is read under any name.

    Raises:
        UnreadableModelError: the file is missing or holds something else, or several arrays but none of that name.
    """
    file = Path(path)
    if file.suffix == ".npz":
        arrays = load_arrays(file)
        if name not in arrays and len(arrays) != 1:
            raise UnreadableModelError(f"{file}: holds no array {name!r}, but {', '.join(map(repr, arrays)) or 'none'}")
        return arrays[name] if name in arrays else next(iter(arrays.values()))
    which = None if kind is None else kind.WhichOneof("value")
    message, made, words = _READ.get(which, (TensorProto, numpy_helper.to_array, "an array"))
    with _reading(file, words):
        if file.suffix == ".npy":
            return np.asarray(np.load(file, allow_pickle=False))
        return made(message.FromString(file.read_bytes()))
