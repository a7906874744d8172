"""What a verification is run on, as far as the user says: values, sizes, folders of test data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from reducelower.failures import SettingError
from reducelower.model.text import did_you_mean

if TYPE_CHECKING:
    from reducelower.options import Settings
    from reducelower.verification import TestDataSet

__all__ = ["read_data_sets", "read_inputs"]


def read_data_sets(settings: Settings, model: ModelProto) -> tuple[TestDataSet, ...]:
    """Read everything that models are to be run on; one set without values when nothing is said.

    Raises:
        UnreadableModelError: a file holds no array, or a folder no test data.
        SettingError: the model has no input or no symbolic dimension of a name, or a value does not fit its input.
    """
    from reducelower.verification import TestDataSet, free_sizes, load_test_data

    if settings.dims:
        _known(settings.dims, free_sizes(model), "symbolic dimension")
    values = read_inputs(settings.inputs, model)
    if not settings.test_data:
        return (_fitting(TestDataSet("", values, ()), settings, model),)
    # An output belongs to the inputs beside it, and says nothing about others.
    return tuple(
        _fitting(TestDataSet(item.name, {**item.inputs, **values}, () if values else item.outputs), settings, model)
        for item in load_test_data(settings.test_data, model)
    )


def _fitting(data: TestDataSet, settings: Settings, model: ModelProto) -> TestDataSet:
    """A set of values that fits the model's inputs: another type or shape is a mistake, and not to be run."""
    from reducelower.verification import check_given

    try:
        check_given(model, data.inputs, settings.dims)
    except ValueError as error:
        place = f"{data.name}: " if data.name else ""
        raise SettingError(f"{place}{error}") from None
    return data


def read_inputs(files: Mapping[str, str], model: ModelProto) -> dict[str, Any]:
    """Read arrays for a model's inputs.

    Args:
        files: ``.npy`` or serialized tensor files by name of the input, and ``.npz`` files by their own name, which
            hold arrays by names of inputs.
        model: the model that they are for.

    Raises:
        UnreadableModelError: a file holds no array.
        SettingError: the model has no input of a name.
    """
    if not files:
        return {}
    from reducelower.verification import load_array, load_arrays

    names = [value.name for value in model.graph.input]
    _known([name for name, path in files.items() if name != path], names, "input")
    found: dict[str, Any] = {}
    for name, path in files.items():
        if name == path:
            found |= load_arrays(path)
        else:
            found[name] = load_array(path, name)
    _known(found, names, "input")
    return found


def _known(given: Iterable[str], names: list[str], what: str) -> None:
    for name in given:
        if name not in names:
            raise SettingError(f"there is no {what} {name!r}{did_you_mean(name, names)}")
