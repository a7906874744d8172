"""What the installed onnx is asked is what it says."""

from __future__ import annotations

import pytest
from onnx import defs

from reducelower.model.schemas import taken_types


def test_types_taken_are_those_of_the_parameters() -> None:
    schemas = defs.get_all_schemas_with_history()
    pairs = [(found, parameter) for found in schemas for parameter in (*found.inputs, *found.outputs)]
    try:
        told = [parameter.types for _, parameter in pairs]
    except TypeError:
        pytest.skip("this onnx cannot tell the types of a parameter (1.20)")
    assert [taken_types(found, parameter) for found, parameter in pairs] == told


def test_a_parameter_of_one_type_takes_that() -> None:
    shape = defs.get_schema("Reshape", 14, "").inputs[1]
    assert taken_types(defs.get_schema("Reshape", 14, ""), shape) == {"tensor(int64)"}


def test_a_type_variable_takes_what_its_constraint_lists() -> None:
    # The operator page of Mod, version 13, lists T: every numeric tensor type.
    found = defs.get_schema("Mod", 13, "")
    numbers = "bfloat16 double float float16 int16 int32 int64 int8 uint16 uint32 uint64 uint8"
    assert taken_types(found, found.inputs[0]) == {f"tensor({name})" for name in numbers.split()}
